"""Races on a pretended GPU: what is in a sample, and what is not."""

from dataclasses import replace

import numpy as np
import pytest

from cuasmrl.errors import CuasmrlError
from cuasmrl.gpu.devices.bench import Bench, granularity
from cuasmrl.gpu.devices.driver import DriverError, Together
from cuasmrl.gpu.devices.monitor import Reading
from cuasmrl.gpu.devices.packed import PackedLaunch, Pointer, Region
from cuasmrl.gpu.devices.rounds import MeasuredGain, judge, relative_time
from cuasmrl.gpu.timing import L2
from tests.gpu.devices.fake_driver import FakeDriver, Scene, name_of

OLD, NEW = b"old", b"new"


def packed(dtype: type = np.float32, shared: int = 0) -> PackedLaunch:
    """Two buffers; the second is written."""
    given = np.arange(64).astype(dtype).view(np.uint8)
    element = np.dtype(dtype).name
    regions = tuple(Region(given.copy(), (n,), element.startswith("float"), element) for n in (0, 1))
    pointers = Pointer(0, 0, 0), Pointer(16, 1, 0)
    return PackedLaunch("kernel", (2, 3, 4), (64, 1, 1), shared, 0, regions, bytes(24), pointers)


def bench(
    scene: Scene = Scene(),  # noqa: B008
    seed: int = 0,
    what: PackedLaunch | None = None,
    l2: L2 = L2.COLD,
) -> Bench:
    return Bench(FakeDriver(scene, seed), 0, what or packed(), OLD, l2)


def confirmed(scene: Scene, seed: int = 0) -> MeasuredGain:
    opened = bench(scene, seed)
    return judge([opened.sit([OLD, NEW, OLD], 10, seed * 20 + k).times for k in range(20)])


def test_the_original_tells_what_it_writes_and_how_long_it_takes() -> None:
    ready = bench().ready
    assert ready.outputs == (1,)
    assert ready.unsteady == ready.incomparable == ()
    assert ready.batch == 1
    assert ready.is_steady
    assert not ready.by_activity
    assert ready.time == pytest.approx(50.0, rel=0.01)


def test_no_time_of_the_host_is_in_a_sample() -> None:
    # Queueing a sample takes the host longer than a flush takes the GPU, so more flushes are needed.
    slow = bench(Scene(host=40.0, noise=0.0))
    assert slow.ready.time == pytest.approx(50.0, rel=1e-4)


def test_a_host_that_cannot_keep_up_is_an_error() -> None:
    with pytest.raises(CuasmrlError, match="too slow to keep the GPU busy"):
        bench(Scene(host=1e5))


@pytest.mark.parametrize("l2", L2)
def test_short_kernels_are_timed_in_batches(l2: L2) -> None:
    short = bench(Scene(time=3.3, step=0.5, noise=0.02), l2=l2)
    assert short.ready.batch == pytest.approx(31, abs=2)
    assert short.ready.time == pytest.approx(3.3, rel=0.01)
    times = short.sit([OLD, NEW], 15, 0).times
    assert relative_time([times]) == pytest.approx(1.0, abs=0.01)


def test_every_launch_of_a_batch_finds_l2_as_it_is_named() -> None:
    scene = Scene(time=4.0, cold=0.5, step=0.5, noise=0.0)
    cold, warm = bench(scene), bench(scene, l2=L2.WARM)
    assert cold.ready.time == pytest.approx(6.0, rel=0.05)
    assert warm.ready.time == pytest.approx(4.0, rel=0.05)
    assert np.median(cold.sit([OLD], 5, 0, L2.WARM).times) == pytest.approx(4.0, rel=0.05)


def test_records_of_the_gpu_leave_out_what_lies_between_launches() -> None:
    scene = Scene(time=3.0, cold=0.5, gap=4.0, step=0.5, noise=0.0)
    assert bench(scene).ready.time == pytest.approx(8.5, rel=0.05)
    for l2, time in ((L2.COLD, 4.5), (L2.WARM, 3.0)):
        recorded = bench(replace(scene, records=True), l2=l2)
        assert recorded.ready.by_activity
        assert recorded.ready.batch == 1
        assert recorded.ready.time == pytest.approx(time, rel=1e-6)


@pytest.mark.parametrize("l2", L2)
def test_graphs_bring_short_kernels_near_their_own_time(l2: L2) -> None:
    """Without CUPTI: within a graph less lies between two events, and the host queues it at once."""
    scene = Scene(time=3.0, cold=0.5, gap=4.0, inner_gap=0.5, step=0.5, noise=0.0, host=40.0, graphs=True)
    short = bench(scene, l2=l2)
    assert short.ready.by_graphs
    assert short.ready.batch > 1
    assert short.ready.time == pytest.approx((4.5 if l2 is L2.COLD else 3.0) + 0.5, rel=0.05)
    times = short.sit([OLD, NEW], 15, 0).times
    assert relative_time([times]) == pytest.approx(1.0, abs=0.01)
    assert not bench(replace(scene, time=500.0), l2=l2).ready.by_graphs, "one launch is long enough"


def test_a_fault_in_a_graph_is_found() -> None:
    scene = Scene(time=3.0, step=0.5, graphs=True, faults=frozenset({name_of(NEW)}))
    opened = bench(scene)
    with pytest.raises(DriverError, match="CUDA_ERROR_ILLEGAL_ADDRESS"):
        opened.sit([OLD, NEW], 5, 0)


def test_blocks_that_run_together_are_launched_so() -> None:
    driver = FakeDriver(Scene())
    Bench(driver, 0, replace(packed(), cooperative=True, cluster=(2, 1, 1)), OLD)
    assert driver.together == Together(True, (2, 1, 1))


def test_the_gpu_is_warmed_until_times_are_steady() -> None:
    # At first everything takes three times as long, and it takes half a second until that has faded.
    assert bench(Scene(ramp=2.0, noise=0.002)).ready.time == pytest.approx(50.0, rel=0.01)
    assert not bench(Scene(drift=1.0, noise=0.0)).ready.is_steady


def test_the_step_of_the_clock_is_seen_in_times() -> None:
    assert granularity([24.0, 24.5, 24.5, 26.0]) == 0.5
    assert granularity([24.0, 24.032, 24.128]) == pytest.approx(0.032)
    assert granularity([24.0, 24.0, 24.0000002]) == 0.5
    assert granularity([24.0, 30.0]) == 0.5


def test_a_kernel_that_adds_to_its_output_always_finds_the_same() -> None:
    adding = bench(Scene(adds=True))
    assert adding.sit([OLD, NEW], 5, 0).difference is None
    assert adding.check(NEW) is None


@pytest.mark.parametrize("l2", L2)
def test_a_kernel_that_takes_tickets_always_finds_fresh_ones(l2: L2) -> None:
    taking = bench(Scene(tickets=True, time=3.3, step=0.5), what=packed(np.int32), l2=l2)
    assert taking.ready.batch > 1
    assert taking.sit([OLD, NEW], 5, 0).difference is None
    assert taking.check(NEW) is None
    assert taking.soak(NEW, 30, 10.0).differing == 0


def test_other_results_are_a_difference() -> None:
    checked = bench(Scene(wrong=frozenset({name_of(NEW)})))
    assert checked.check(OLD) is None
    assert checked.check(NEW) == "argument 1 differs in 128 of 256 bytes, first in byte 0"


def test_what_goes_wrong_once_in_a_hundred_launches_shows_in_many_of_them() -> None:
    flaky = bench(Scene(flaky={name_of(NEW): 100}))
    assert flaky.check(NEW) is None
    soak = flaky.soak(NEW, 1000, 60.0)
    assert soak.compared == 1000
    assert 1 <= soak.differing <= 30
    assert soak.first == "argument 1 differs in 128 of 256 bytes, first in byte 0"
    assert flaky.doubt(300, 60.0).differing == 0


def test_outputs_are_compared_after_timed_rounds_too() -> None:
    flaky = bench(Scene(flaky={name_of(NEW): 2}))
    found = [flaky.sit([OLD, NEW], 2, seed) for seed in range(20)]
    assert {one.compared for one in found if one.difference} == {1}
    assert {one.compared for one in found} == {0, 1}


def test_an_original_that_differs_from_itself_is_found_out() -> None:
    flaky = bench(Scene(flaky={name_of(OLD): 300}))
    assert flaky.doubt(3000, 60.0).differing > 0


def test_code_and_data_lie_elsewhere_in_each_sitting() -> None:
    driver = FakeDriver(Scene())
    opened = Bench(driver, 0, packed(), OLD)
    places = []
    for seed in range(4):
        before = len(driver.images)
        opened.sit([OLD, NEW], 1, seed)
        places.append((tuple(driver.images[before:]), tuple(driver.memory)))
    assert len({images for images, _ in places}) > 1
    assert len({memory for _, memory in places}) > 1


def test_what_the_gpu_says_of_itself_is_read_in_every_round() -> None:
    readings = bench(Scene(throttle=("power cap",))).sit([OLD, NEW], 6, 0).readings
    assert len(readings) == 6
    assert readings[0] == Reading(1410, 1215, 250.0, 60, ())
    assert readings[1].throttle == ("power cap",)
    assert bench().sit([OLD], 2, 0).readings == ()


@pytest.mark.parametrize(("dtype", "left"), [(np.float32, 0xA5), (np.int32, 0)])
def test_outputs_are_poisoned_unless_they_may_be_locks(dtype: type, left: int) -> None:
    what = packed(dtype)
    driver = FakeDriver(Scene())
    Bench(driver, 0, what, OLD).check(OLD)
    opened = list(driver.memory)
    output = driver.memory[opened[1]]
    # The kernel writes every other byte.
    assert output[1] == left
    assert output[0] == 7


def test_what_changes_beyond_all_bounds_is_not_compared() -> None:
    unsteady = bench(Scene(unsteady=True))
    assert unsteady.ready.unsteady == (1,)
    assert unsteady.check(NEW) is None


def test_the_same_values_in_another_order_are_the_same() -> None:
    scene = Scene(shuffles=True)
    shuffled = bench(scene, what=packed(np.int32))
    assert shuffled.ready.unsteady == (1,)
    assert shuffled.ready.incomparable == ()
    assert shuffled.check(NEW) is None
    wrong = bench(replace(scene, wrong=frozenset({name_of(NEW)})), what=packed(np.int32))
    assert wrong.check(NEW) == "argument 1 holds other values, whatever their order"


def test_much_shared_memory_is_asked_for() -> None:
    driver = FakeDriver(Scene())
    Bench(driver, 0, packed(shared=49_153), OLD)
    assert driver.shared == {0: 49_153}
    assert set(driver.launches) == {((2, 3, 4), (64, 1, 1), 49_153)}
    assert not bench(what=packed(shared=49_152)).driver.shared  # type: ignore[attr-defined]


def test_the_order_within_rounds_is_random_and_balanced() -> None:
    # A drift so steep that whoever runs first in a round is faster: it must not help anybody.
    times = bench(Scene(noise=0.0, drift=5.0)).sit([OLD, NEW], 200, 0).times
    first_wins = float((times[:, 0] < times[:, 1]).mean())
    assert 0.4 < first_wins < 0.6


def test_equal_speed_is_not_claimed() -> None:
    scenes = Scene(), Scene(placement=0.01), Scene(drift=1.0, noise=0.001)
    found = [confirmed(scene, seed).survives for scene in scenes for seed in range(2)]
    assert not any(found)


@pytest.mark.parametrize("drift", [0.0, 1.0])
def test_two_percent_are_found(drift: float) -> None:
    # All times grow by a tenth while the race lasts, if they drift.
    scene = Scene(gains={name_of(NEW): 0.02}, noise=0.01, drift=drift, placement=0.005)
    found = confirmed(scene)
    assert found.survives
    assert found.median == pytest.approx(0.02, abs=0.008)


def test_two_speeds_of_the_original_are_refused() -> None:
    found = confirmed(Scene(gains={name_of(NEW): 0.02}, modes=0.15))
    assert not found.survives
    assert "two speeds" in (found.refusal or "")
