"""The timer of a real GPU on a pretended one, in a process of its own."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from cuasmrl.errors import CuasmrlError
from cuasmrl.gpu.devices import CandidateError, Timer, cuda
from cuasmrl.gpu.devices.cuda import SITTING_ROUNDS, SITTINGS, CudaTimer
from cuasmrl.gpu.devices.driver import Status
from cuasmrl.gpu.devices.worker import Connect
from cuasmrl.gpu.launches.launch import Launch
from cuasmrl.gpu.timing import L2
from cuasmrl.schedule import Schedule
from tests.gpu.devices.fake_driver import FakeDriver, Scene, name_of
from tests.gpu.devices.launched import launch_of
from tests.traced_kernels import rescheduled, traced

KERNEL = "softmax"


def connect_to(scene: Scene, seed: int = 0) -> Connect:
    """In the parameters of this kernel the output comes first."""
    return partial(FakeDriver, replace(scene, output=0), seed)


def named(schedule: Schedule) -> str:
    return name_of(schedule.apply(traced(KERNEL).cubin).data)


def timer_on(scene: Scene, patience: float = 30.0, seed: int = 0) -> CudaTimer:
    connect = connect_to(scene, seed)
    return CudaTimer(traced(KERNEL), 0, launch_of(KERNEL), connect, patience, pause=0.0)


def backwards() -> Schedule:
    """As illegal as can be."""
    original = traced(KERNEL).original
    return Schedule(original.listing, original.order[::-1], original.controls)


@pytest.fixture(autouse=True)
def fewer_launches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of them copies the buffers of a whole kernel."""
    monkeypatch.setattr(cuda, "SOAK", 100)
    monkeypatch.setattr(cuda, "_DOUBTED", 10)


@pytest.fixture(scope="module")
def timer() -> Iterator[CudaTimer]:
    gains = {named(rescheduled(KERNEL, 0)): 0.04}
    made = timer_on(Scene(time=40.0, drift=0.02, gains=gains, crashes=frozenset({named(backwards())})))
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
    assert (len(gain.members), gain.rounds) == (SITTINGS, SITTINGS * SITTING_ROUNDS)
    assert gain.compared >= 100
    assert (gain.l2, gain.method, gain.conditions) == (L2.COLD, "events", None)
    assert gain.other is not None
    assert gain.other.l2 is L2.AGAIN
    assert gain.other.median == pytest.approx(0.04, abs=0.01)
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


def test_a_driver_that_is_too_old_is_refused() -> None:
    with pytest.raises(CuasmrlError, match=r"is for CUDA 11.8, and the oldest that will do is for 12.0"):
        timer_on(Scene(version=11080))


def test_a_finalist_that_fails_is_named_so_that_the_others_can_be_picked_from() -> None:
    original = traced(KERNEL).original
    faulty, flaky, good, better = (rescheduled(KERNEL, seed) for seed in range(4))
    timer = timer_on(
        Scene(
            gains={named(good): 0.02, named(better): 0.04, named(flaky): 0.06},
            # Once to be admitted, and 4 launches for each sitting of the search.
            faults_late={named(faulty): 5},
            flaky={named(flaky): 50},
        )
    )
    finalists = [faulty, flaky, good, better]
    with pytest.raises(CandidateError) as e:
        timer.pick(original, finalists)
    assert e.value.key == faulty.key
    assert timer.pick(original, finalists[1:]) in (flaky, better)
    assert timer.pick(original, finalists[2:]) == better
    with pytest.raises(
        CandidateError, match=r"does not compute what the original does|computes something else in"
    ):
        timer.confirm(original, flaky)
    assert timer.confirm(original, better).survives
    timer.close()


def test_memory_that_others_take_for_a_while_is_nobodys_fault(tmp_path: Path) -> None:
    trouble = tmp_path / "trouble"
    timer = timer_on(Scene(trouble=trouble))
    trouble.write_text(f"{Status.OUT_OF_MEMORY:d} 2")
    assert timer.time(rescheduled(KERNEL, 0)) == pytest.approx(timer.ready.time, rel=0.05)
    assert trouble.read_text() == f"{Status.OUT_OF_MEMORY:d} 0"
    timer.close()


def test_a_gpu_that_is_lost_is_said_to_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda, "_ATTEMPTS", 1)
    trouble = tmp_path / "trouble"
    timer = timer_on(Scene(trouble=trouble))
    trouble.write_text("999 1000")
    with pytest.raises(
        CuasmrlError, match="does not run the original any more: cuModuleLoadData .* --resume"
    ) as e:
        timer.time(rescheduled(KERNEL, 0))
    assert not isinstance(e.value, CandidateError)
    trouble.unlink()
    assert timer.time(rescheduled(KERNEL, 0)) == pytest.approx(timer.ready.time, rel=0.05)
    timer.close()


def test_an_original_that_goes_wrong_now_and_then_is_nobodys_gain() -> None:
    original, new = traced(KERNEL).original, rescheduled(KERNEL, 0)
    timer = timer_on(Scene(flaky={named(original): 30, named(new): 30}, gains={named(new): 0.05}), seed=3)
    gain = timer.confirm(original, new)
    assert not gain.survives
    assert gain.refusal is not None
    assert gain.refusal.startswith("outputs of the original itself differ in")
    timer.close()


def test_nothing_is_claimed_while_the_gpu_slows_itself_down() -> None:
    original, new = traced(KERNEL).original, rescheduled(KERNEL, 0)
    timer = timer_on(Scene(gains={named(new): 0.05}, throttle=("thermal slowdown",)))
    gain = timer.confirm(original, new)
    assert (gain.refusal or "").startswith(
        "the GPU slowed itself down in 100 of 200 rounds (thermal slowdown)"
    )
    assert gain.conditions is not None
    assert gain.conditions.sm_mhz[:2] in ((1410, 1200), (1200, 1410))
    timer.close()
