"""Races on a pretended GPU: what is in a sample, and what is not."""

import numpy as np
import pytest

from cuasmrl.errors import CuasmrlError
from cuasmrl.gpu.devices.bench import Bench, granularity
from cuasmrl.gpu.devices.packed import PackedLaunch, Pointer, Region
from cuasmrl.gpu.devices.rounds import MeasuredGain, judge, relative_time
from tests.gpu.devices.fake_driver import FakeDriver, Scene, name_of

OLD, NEW = b"old", b"new"


def packed(dtype: type = np.float32, shared: int = 0) -> PackedLaunch:
    """Two buffers; the second is written."""
    given = np.arange(64).astype(dtype).view(np.uint8)
    regions = tuple(Region(given.copy(), (n,), np.issubdtype(dtype, np.floating)) for n in (0, 1))
    pointers = Pointer(0, 0, 0), Pointer(16, 1, 0)
    return PackedLaunch("kernel", (2, 3, 4), (64, 1, 1), shared, 0, regions, bytes(24), pointers)


def bench(scene: Scene = Scene(), seed: int = 0, what: PackedLaunch | None = None) -> Bench:  # noqa: B008
    return Bench(FakeDriver(scene, seed), 0, what or packed(), OLD)


def confirmed(scene: Scene, seed: int = 0) -> MeasuredGain:
    times = bench(scene, seed).race([OLD, NEW, OLD], 200, seed)
    return judge(*times.T.tolist())


def test_the_original_tells_what_it_writes_and_how_long_it_takes() -> None:
    ready = bench().ready
    assert ready.outputs == (1,)
    assert ready.unsteady == ()
    assert ready.batch == 1
    assert ready.time == pytest.approx(50.0, rel=0.01)


def test_no_time_of_the_host_is_in_a_sample() -> None:
    # Queueing a sample takes the host longer than a flush takes the GPU, so more flushes are needed.
    slow = bench(Scene(host=40.0, noise=0.0))
    assert slow.ready.time == pytest.approx(50.0, rel=1e-4)


def test_a_host_that_cannot_keep_up_is_an_error() -> None:
    with pytest.raises(CuasmrlError, match="too slow to keep the GPU busy"):
        bench(Scene(host=1e5))


def test_short_kernels_are_timed_in_batches() -> None:
    short = bench(Scene(time=3.3, step=0.5, noise=0.02))
    assert short.batch == pytest.approx(31, abs=2)
    assert short.ready.time == pytest.approx(3.3, rel=0.01)
    times = short.race([OLD, NEW], 15, 0)
    assert relative_time(times) == pytest.approx(1.0, abs=0.01)


def test_the_step_of_the_clock_is_seen_in_times() -> None:
    assert granularity([24.0, 24.5, 24.5, 26.0]) == 0.5
    assert granularity([24.0, 24.032, 24.128]) == pytest.approx(0.032)
    assert granularity([24.0, 24.0, 24.0000002]) == 0.5
    assert granularity([24.0, 30.0]) == 0.5


def test_a_kernel_that_adds_to_its_output_always_finds_the_same() -> None:
    adding = bench(Scene(adds=True))
    adding.race([OLD, NEW], 5, 0)
    assert adding.check(NEW) is None


def test_other_results_are_a_difference() -> None:
    checked = bench(Scene(wrong=frozenset({name_of(NEW)})))
    assert checked.check(OLD) is None
    assert checked.check(NEW) == "argument 1 differs in 128 of 256 bytes, first in byte 0"


@pytest.mark.parametrize(("dtype", "left"), [(np.float32, 0xA5), (np.int32, 0)])
def test_outputs_are_poisoned_unless_they_may_be_locks(dtype: type, left: int) -> None:
    what = packed(dtype)
    driver = FakeDriver(Scene())
    Bench(driver, 0, what, OLD).check(OLD)
    output = list(driver.memory.values())[1]
    # The kernel writes every other byte.
    assert output[1] == left
    assert output[0] == 7


def test_what_changes_from_launch_to_launch_is_not_compared() -> None:
    unsteady = bench(Scene(unsteady=True))
    assert unsteady.ready.unsteady == (1,)
    assert unsteady.check(NEW) is None


def test_much_shared_memory_is_asked_for() -> None:
    driver = FakeDriver(Scene())
    Bench(driver, 0, packed(shared=49_153), OLD)
    assert driver.shared == {0: 49_153}
    assert set(driver.launches) == {((2, 3, 4), (64, 1, 1), 49_153)}
    assert not bench(what=packed(shared=49_152)).driver.shared  # type: ignore[attr-defined]


def test_the_order_within_rounds_is_random_and_balanced() -> None:
    # A drift so steep that whoever runs first in a round is faster: it must not help anybody.
    times = bench(Scene(noise=0.0, drift=5.0)).race([OLD, NEW], 200, 0)
    first_wins = float((times[:, 0] < times[:, 1]).mean())
    assert 0.4 < first_wins < 0.6


def test_equal_speed_is_not_claimed() -> None:
    scenes = Scene(), Scene(noise=0.02), Scene(drift=1.0, noise=0.001)
    found = [confirmed(scene, seed).survives for scene in scenes for seed in range(5)]
    assert sum(found) <= 1


@pytest.mark.parametrize("drift", [0.0, 1.0])
def test_two_percent_are_found(drift: float) -> None:
    # All times grow by a tenth while the race lasts, if they drift.
    scene = Scene(gains={name_of(NEW): 0.02}, noise=0.01, drift=drift)
    found = confirmed(scene)
    assert found.survives
    assert found.median == pytest.approx(0.02, abs=0.004)


def test_two_speeds_of_the_original_are_refused() -> None:
    found = confirmed(Scene(gains={name_of(NEW): 0.02}, modes=0.15))
    assert not found.survives
    assert "two speeds" in (found.refusal or "")
