"""What does nothing is left out, what matters stays, and the result is no slower than noise allows."""

from collections.abc import Iterator
from itertools import pairwise

import pytest

from cuasmrl.explain.moves import Decomposition, minimise
from cuasmrl.explain.moves.changes import Relocate, Retime
from cuasmrl.explain.moves.judge import Judge, of_model, sampler
from cuasmrl.explain.moves.story import shares_of, steps_of
from cuasmrl.schedule import Schedule
from tests.climbing import faster, kernel
from tests.explain.moves.schedules import SEEDS, judge, planted, random_schedule, timer
from tests.traced_kernels import traced


def test_a_useless_move_is_dropped_and_a_good_one_stays() -> None:
    good, useless, winner = planted()
    found = Decomposition(traced("gemm_leaky_relu").original, winner)
    units = {change.unit for change in found.changes if isinstance(change, Relocate)}
    assert (good,) in units
    assert len(units) > len(useless) // 2
    judged = judge("gemm_leaky_relu", winner)
    minimum = minimise(found, judged, judged)
    (mover,) = (change for change in minimum.changes if isinstance(change, Relocate))
    assert mover.unit == (good,)
    assert minimum.changes == {mover, Retime(mover.block)}


@pytest.mark.parametrize("name", ["softmax", "gemm_leaky_relu"])
@pytest.mark.parametrize("seed", range(3))
def test_the_minimum_is_not_slower_than_the_noise(name: str, seed: int) -> None:
    """Whether the schedule is a good one or not."""
    winner = random_schedule(name, seed, ("shift",), 25)
    judged = judge(name, winner)
    minimum = minimise(Decomposition(traced(name).original, winner), judged, judged)
    assert judged.time(minimum.built.schedule) <= judged.time(winner) + judged.tolerance
    if judged.gain <= judged.tolerance:
        assert not minimum.changes


def climbed() -> tuple[Decomposition, Judge]:
    judged = Judge(of_model(kernel().model, SEEDS), kernel().original, faster())
    return Decomposition(kernel().original, faster()), judged


def test_of_the_minimum_nothing_can_go() -> None:
    found, judged = climbed()
    minimum = minimise(found, judged, judged)
    assert judged.gain > 0
    assert 0 < len(minimum.changes) < len(found.changes)
    for change in minimum.changes:
        less = found.build(minimum.changes - {change})
        if less is not None and less.schedule.key != minimum.built.schedule.key:
            assert not judged.is_as_good(less.schedule)


def test_the_story_leads_to_the_minimum_by_legal_steps() -> None:
    found, judged = climbed()
    minimum = minimise(found, judged, judged)
    steps = steps_of(found, minimum.changes, judged)
    assert [change for step in steps for change in step.changes if change not in minimum.changes] == []
    assert sum(len(step.changes) for step in steps) == len(minimum.changes)
    assert steps[0].before.key == kernel().original.key
    assert steps[-1].after.key == minimum.built.schedule.key
    assert all(a.after.key == b.before.key for a, b in pairwise(steps))
    gain = judged.time(kernel().original) - judged.time(minimum.built.schedule)
    assert sum(shares_of(found, steps, judged)) == pytest.approx(gain)


def test_noise_is_the_standard_error_or_a_small_part_of_the_gain() -> None:
    original, winner = traced("softmax").original, random_schedule("softmax", 0, ("shift",), 20)

    def sample(times: tuple[float, float]) -> Judge:
        return Judge(lambda schedule: iter(times if schedule is winner else (100, 102)), original, winner)

    assert sample((90.0, 92.0)).tolerance == pytest.approx(0.5)
    assert sample((90.0, 88.0)).tolerance == pytest.approx(2.0)


def test_who_is_far_behind_is_asked_once() -> None:
    original, winner = traced("softmax").original, random_schedule("softmax", 0, ("shift",), 20)
    slow = random_schedule("softmax", 1, ("shift",), 20)
    times = {original.key: (100, 103), winner.key: (90, 92), slow.key: (94, 60)}
    asked: list[bytes] = []

    def sample(schedule: Schedule) -> Iterator[float]:
        for time in times[schedule.key]:
            asked.append(schedule.key)
            yield time

    assert not Judge(sample, original, winner).is_as_good(slow)
    assert asked.count(slow.key) == 1


def test_a_device_without_seeds_is_asked_several_times() -> None:
    class Noisy:
        device, unit = "bench", "us"
        calls = 0

        def time(self, schedule: Schedule) -> float:
            self.calls += 1
            return float(self.calls)

    original = traced("softmax").original
    assert list(sampler(Noisy())(original)) == [1, 2, 3, 4, 5, 6]  # type: ignore[arg-type]
    assert len(list(sampler(timer("softmax"), seeds=(1, 2))(original))) == 2
