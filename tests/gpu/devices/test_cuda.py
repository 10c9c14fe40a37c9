"""The timer of a real GPU on a pretended one, in a process of its own."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import pytest

from cuasmrl.errors import CuasmrlError
from cuasmrl.gpu.devices import CandidateError, Timer
from cuasmrl.gpu.devices.cuda import CudaTimer
from cuasmrl.gpu.devices.worker import Connect
from cuasmrl.gpu.launches.launch import Launch
from cuasmrl.schedule import Schedule
from tests.gpu.devices.fake_driver import FakeDriver, Scene, name_of
from tests.gpu.devices.launched import launch_of
from tests.traced_kernels import rescheduled, traced

KERNEL = "softmax"


def connect_to(scene: Scene) -> Connect:
    """In the parameters of this kernel the output comes first."""
    return partial(FakeDriver, replace(scene, output=0))


def named(schedule: Schedule) -> str:
    return name_of(schedule.apply(traced(KERNEL).cubin).data)


def timer_on(scene: Scene, patience: float = 30.0) -> CudaTimer:
    return CudaTimer(traced(KERNEL), 0, launch_of(KERNEL), connect_to(scene), patience)


def backwards() -> Schedule:
    """As illegal as can be."""
    original = traced(KERNEL).original
    return Schedule(original.listing, original.order[::-1], original.controls)


@pytest.fixture(scope="module")
def timer() -> Iterator[CudaTimer]:
    gains = {named(rescheduled(KERNEL, 0)): 0.04}
    made = timer_on(Scene(time=40.0, drift=0.5, gains=gains, crashes=frozenset({named(backwards())})))
    yield made
    made.close()


def test_times_are_relative_to_the_original(timer: Timer) -> None:
    original = timer.time(traced(KERNEL).original)
    assert original == timer.time(traced(KERNEL).original) == pytest.approx(40.0, rel=0.05)
    assert timer.time(rescheduled(KERNEL, 0)) == pytest.approx(original / 1.04, rel=0.01)
    assert timer.time(rescheduled(KERNEL, 1)) == pytest.approx(original, rel=0.01)
    assert (timer.device, timer.unit) == ("cuda:0", "microseconds")


def test_a_gain_is_confirmed(timer: CudaTimer) -> None:
    original, faster = traced(KERNEL).original, rescheduled(KERNEL, 0)
    gain = timer.confirm(original, faster)
    assert gain.survives
    assert gain.median == pytest.approx(0.04, abs=0.005)
    assert (gain.gpu, gain.arch) == (timer.gpu.name, timer.gpu.arch)
    assert len(gain.members) == 200
    assert not timer.confirm(faster, rescheduled(KERNEL, 1)).survives
    assert timer.confirm(original, original).refusal == "both schedules are the same"


def test_nothing_uncertified_reaches_the_gpu(timer: Timer) -> None:
    with pytest.raises(CandidateError, match="is not certified"):
        timer.time(backwards())


def test_candidates_that_fail_do_no_harm() -> None:
    faulty, hanging, crashing, wrong, good = (rescheduled(KERNEL, seed) for seed in range(5))
    scene = Scene(
        faults=frozenset({named(faulty)}),
        hangs=frozenset({named(hanging)}),
        crashes=frozenset({named(crashing)}),
        wrong=frozenset({named(wrong)}),
    )
    timer = timer_on(scene, patience=30.0)
    original = timer.ready.time
    with pytest.raises(CandidateError, match="does not run: .*CUDA_ERROR_ILLEGAL_ADDRESS"):
        timer.time(faulty)
    with pytest.raises(CandidateError, match="does not run: the process on the GPU was ended by signal 6"):
        timer.time(crashing)
    with pytest.raises(CandidateError, match="does not compute what the original does: argument 0 differs"):
        timer.time(wrong)
    assert timer.time(good) == pytest.approx(original, rel=0.02)
    timer.patience = 0.2
    with pytest.raises(CandidateError, match="does not run: no answer in 0 s"):
        timer.time(hanging)
    # Asked again, it is not run again.
    with pytest.raises(CandidateError, match="no answer"):
        timer.confirm(traced(KERNEL).original, hanging)
    timer.close()


@pytest.mark.parametrize("arch", [75, 90, 120])
def test_a_gpu_of_another_architecture_is_refused(arch: int) -> None:
    with pytest.raises(CuasmrlError, match=rf"sm_80, which cuda:0 \(Fake GPU, sm_{arch}\) cannot run"):
        timer_on(Scene(arch=arch))


def test_an_original_that_fails_is_no_candidate() -> None:
    with pytest.raises(
        CuasmrlError, match="does not run on cuda:0 .Fake GPU. as it is: .*ILLEGAL_ADDRESS"
    ) as e:
        timer_on(Scene(faults=frozenset({named(traced(KERNEL).original)})))
    assert not isinstance(e.value, CandidateError)


def test_trouble_of_the_host_is_not_blamed_on_the_kernel() -> None:
    with pytest.raises(CuasmrlError, match="^this process is too slow to keep the GPU busy"):
        timer_on(Scene(host=1e5))


def test_another_launch_than_the_traced_one_is_refused() -> None:
    launch = launch_of(KERNEL)
    other = Launch((1, 1, 1), launch.block, launch.shared_bytes, launch.arguments)
    with pytest.raises(CuasmrlError, match="time the launch that was traced"):
        CudaTimer(traced(KERNEL), 0, other, connect_to(Scene()))
