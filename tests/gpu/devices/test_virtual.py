"""The virtual GPU as a timer."""

import math

import pytest

from cuasmrl.gpu.devices import CandidateError, Objective, Rival, VirtualTimer
from cuasmrl.gpu.devices.objective import (
    PICKING_SEEDS,
    REFERENCE_SEEDS,
    SEARCH_SEEDS,
    UNSEEN_SEEDS,
    confirming_members,
    picking_members,
    reference_members,
    searching_members,
)
from cuasmrl.gpu.timing.uncertainty import compare, measure
from cuasmrl.schedule import Schedule
from tests.traced_kernels import rescheduled, traced


def test_on_the_nominal_chip_a_timer_gives_the_mean_over_its_seeds() -> None:
    kernel = traced("softmax")
    single = [VirtualTimer(kernel, seeds=(seed,)).time(kernel.original) for seed in (1, 2)]
    assert VirtualTimer(kernel, seeds=(1, 2)).time(kernel.original) == sum(single) / 2


def test_enough_iterations_are_the_whole_kernel() -> None:
    kernel = traced("gemm_leaky_relu")
    whole = VirtualTimer(kernel, iterations=1000, seeds=(0,)).time(kernel.original)
    assert whole == kernel.model.simulate(kernel.original, 0, kernel.model.resident).cycles
    assert VirtualTimer(kernel, iterations=2, seeds=(0,)).time(kernel.original) < whole


def test_a_schedule_gains_nothing_over_itself() -> None:
    kernel = traced("softmax")
    gain = VirtualTimer(kernel, members=3).confirm(kernel.original, kernel.original)
    assert gain.members == (0.0, 0.0, 0.0)
    assert gain.share_above_zero == 0


def test_the_pick_is_the_one_that_gains_most_where_the_search_has_not_looked() -> None:
    kernel = traced("gemm_leaky_relu")
    timer = VirtualTimer(kernel)
    candidates = [rescheduled("gemm_leaky_relu", seed=seed) for seed in range(3)]
    assert timer.pick(kernel.original, candidates[:1]) is candidates[0]
    members = picking_members(kernel.model.parameters, 8)
    gains = [
        compare(kernel.model, kernel.original, schedule, PICKING_SEEDS, members) for schedule in candidates
    ]
    best = max(zip(gains, candidates, strict=True), key=lambda pair: pair[0].nominal + pair[0].median)
    assert timer.pick(kernel.original, candidates) is best[1]


def test_of_many_the_fastest_come_to_the_ensemble() -> None:
    kernel = traced("softmax")
    timer = VirtualTimer(kernel)
    candidates = [rescheduled("softmax", seed=seed) for seed in range(30)]
    times = [measure(kernel.model, schedule, PICKING_SEEDS, timer._blocks).value for schedule in candidates]
    short = [schedule for _, schedule in sorted(zip(times, candidates, strict=True), key=lambda p: p[0])[:12]]
    assert timer.pick(kernel.original, candidates) is timer.pick(kernel.original, short)


def test_nobody_sees_the_seeds_of_another() -> None:
    sets = [set(seeds) for seeds in (SEARCH_SEEDS, PICKING_SEEDS, REFERENCE_SEEDS, UNSEEN_SEEDS)]
    assert len(set.union(*sets)) == sum(map(len, sets))


def test_nobody_sees_the_chips_of_another() -> None:
    nominal = traced("softmax").model.parameters
    groups = [
        confirming_members(nominal, 12)[1:],
        picking_members(nominal, 12)[1:],
        reference_members(Objective.ROBUST, nominal, 12),
        searching_members(Objective.ROBUST, nominal, 12, game=0),
        searching_members(Objective.ROBUST, nominal, 12, game=1),
    ]
    latencies = [member["l2_latency"] for group in groups for member in group]
    assert len(set(latencies)) == len(latencies)
    assert nominal["l2_latency"] not in latencies


def test_the_nominal_objective_has_one_chip() -> None:
    nominal = traced("softmax").model.parameters
    assert set(map(id, searching_members(Objective.NOMINAL, nominal, 5, game=0))) == {id(nominal)}


@pytest.mark.parametrize("objective", Objective)
def test_the_effort_is_measured_before_play(objective: Objective) -> None:
    kernel = traced("gemm_leaky_relu")
    timer = VirtualTimer(kernel, objective)
    effort = timer.effort
    assert effort == VirtualTimer(kernel, objective).effort
    assert effort.agreement is not None
    assert -1 <= effort.agreement <= 1
    assert len(timer.panel.conditions) == effort.conditions
    assert f"{effort.iterations} iterations" in effort.sentence


def test_a_game_has_chips_of_its_own() -> None:
    kernel = traced("gemm_leaky_relu")
    times = [VirtualTimer(kernel, game=game).panel.start for game in (0, 1)]
    assert times[0] != times[1]


def test_a_rival_makes_no_difference_to_a_faster_schedule() -> None:
    kernel = traced("gemm_leaky_relu")
    timer = VirtualTimer(kernel)
    slow, fast = sorted(
        (rescheduled("gemm_leaky_relu", seed=seed) for seed in range(4)), key=timer.panel.time
    )[::-3]
    fresh = VirtualTimer(kernel)
    rival = Rival(slow, fresh.time(slow))
    assert fresh.time(fast, rival) == timer.time(fast)


def test_times_do_not_depend_on_the_number_of_workers() -> None:
    kernel = traced("gemm_leaky_relu")
    schedules = [rescheduled("gemm_leaky_relu", seed=seed) for seed in range(8)]
    one, two, three = (VirtualTimer(kernel, workers=workers) for workers in (1, 2, 3))
    rival = Rival(schedules[0], one.time(schedules[0]))
    expected = [one.time(schedule, rival) for schedule in schedules]
    for timer in (one, two, three):
        assert timer.times(schedules, rival) == expected
        assert timer.times(schedules) == [one.time(schedule) for schedule in schedules]


def test_a_schedule_that_cannot_be_timed_takes_for_ever() -> None:
    kernel = traced("gemm_leaky_relu")
    bad, good = rescheduled("gemm_leaky_relu", seed=0), rescheduled("gemm_leaky_relu", seed=1)

    class Refusing(VirtualTimer):
        def time(self, schedule: Schedule, rival: Rival | None = None) -> float:
            if schedule == bad:
                raise CandidateError("refused")
            return super().time(schedule, rival)

    for workers in (1, 2):
        timer = Refusing(kernel, workers=workers)
        assert timer.times([bad, good]) == [math.inf, timer.time(good)]
