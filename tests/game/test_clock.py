"""The clock: every schedule once, a budget, the best that was visited."""

import pytest

from cuasmrl.errors import CuasmrlError
from cuasmrl.game import BudgetSpentError, Clock, Evaluation
from cuasmrl.gpu.devices import VirtualTimer
from tests.traced_kernels import rescheduled, traced


def clock(budget: int, **more: object) -> Clock:
    kernel = traced("softmax")
    return Clock(VirtualTimer(kernel, seeds=(1,)), kernel.original, budget, **more)  # type: ignore[arg-type]


def test_a_schedule_costs_once() -> None:
    game = clock(5)
    first = game.time(rescheduled("softmax"))
    assert game.time(rescheduled("softmax")) == first
    assert game.time(traced("softmax").original) == game.start
    assert game.spent == 1


def test_a_spent_budget_refuses_only_what_is_new() -> None:
    game = clock(1)
    game.time(rescheduled("softmax"))
    assert game.is_over
    game.time(rescheduled("softmax"))
    with pytest.raises(BudgetSpentError):
        game.time(rescheduled("softmax", seed=1))


def test_the_best_schedule_is_kept_and_reported() -> None:
    heard: list[Evaluation] = []
    game = clock(10, listener=heard.append)
    times = {seed: game.time(rescheduled("softmax", seed=seed)) for seed in range(6)}
    assert [evaluation.time for evaluation in heard] == list(times.values())
    assert game.best_time == min(game.start, *times.values())
    best = [evaluation for evaluation in heard if evaluation.is_best]
    assert not best or best[-1].key == game.best.key


def test_finalists_are_the_best_and_some_on_the_way_to_it() -> None:
    game = clock(20)
    schedules = [rescheduled("softmax", seed=seed) for seed in range(6)]
    gains = (1, 3, 2, 6, 8, 10)
    game.known = {s.key: game.start - gain for s, gain in zip(schedules, gains, strict=True)}
    assert game.finalists(3) == []
    for schedule in schedules:
        game.time(schedule)
    assert game.finalists(1) == [schedules[5]]
    assert game.finalists(3) == [schedules[5], schedules[4], schedules[3]]
    assert game.finalists(6) == [schedules[5], schedules[4], schedules[3]]
    assert game.finalists(8) == [schedules[n] for n in (5, 4, 3, 1, 2)]


def test_the_fastest_are_kept_and_of_equals_the_last() -> None:
    schedules = {s.key: s for s in (rescheduled("softmax", seed=seed) for seed in range(90))}
    game = clock(100)
    game.known = {key: game.start - 1 - (n % 2) for n, key in enumerate(schedules)}
    for schedule in schedules.values():
        game.time(schedule)
    first, *others = game.finalists(64)
    assert first == game.best
    times = [game.time(schedule) for schedule in others]
    fast = sum(n % 2 for n in range(len(schedules)))
    assert len(others) > fast
    assert times == [game.start - 2] * (fast - 1) + [game.start - 1] * (len(others) - fast + 1)
    slow = [list(schedules).index(schedule.key) for schedule in others[fast - 1 :]]
    assert slow == sorted(slow, reverse=True)


def test_known_times_are_taken_and_counted() -> None:
    schedule = rescheduled("softmax")
    game = clock(2, known={schedule.key: 1.0})
    assert game.time(schedule) == 1.0
    assert game.spent == 1


def test_no_budget_no_game() -> None:
    with pytest.raises(CuasmrlError, match="budget of 0"):
        clock(0)


def test_a_batch_is_as_one_after_the_other() -> None:
    schedules = [rescheduled("softmax", seed=seed) for seed in (0, 1, 0, 2, 3, 4)]
    one, many = clock(4), clock(4)
    heard: list[tuple[list[Evaluation], Clock]] = [([], one), ([], many)]
    for evaluations, game in heard:
        game.listener = evaluations.append
        game.time(schedules[1])
    rival = schedules[1]
    expected = [one.time(schedule, rival) for schedule in schedules[:5]]
    assert many.times(schedules, rival) == expected
    assert heard[0][0] == heard[1][0]
    assert (many.best, many.best_time, many.spent) == (one.best, one.best_time, 4)
    assert many.times(schedules[:5]) == expected
    with pytest.raises(BudgetSpentError):
        many.times(schedules[5:])
    assert many.times([]) == []


def test_a_batch_asks_only_for_what_is_not_known() -> None:
    schedules = [rescheduled("softmax", seed=seed) for seed in range(3)]
    known = {schedules[1].key: 5.0}
    game = clock(3, known=known)
    assert game.times(schedules) == [clock(1).time(schedules[0]), 5.0, clock(1).time(schedules[2])]
    assert game.best == schedules[1]
