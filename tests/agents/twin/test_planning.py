"""Plans: climbs in the twin that cost the device nothing, and go where a policy wants to."""

from __future__ import annotations

import random
from functools import lru_cache

import numpy as np
import pytest

from cuasmrl.agents.proposals import Mix
from cuasmrl.agents.ranking import Float, Int
from cuasmrl.agents.twin.guess import Guess
from cuasmrl.agents.twin.numbers import drawn
from cuasmrl.agents.twin.planning import Planner, TwinTimer
from cuasmrl.checker import Checker
from cuasmrl.errors import CuasmrlError
from cuasmrl.game import Clock, Game
from cuasmrl.gpu.devices import VirtualTimer
from cuasmrl.gpu.profile import Profile
from cuasmrl.schedule import Board
from tests.climbing import kernel


class Indifferent:
    """A policy that is asked, and likes all moves alike."""

    def __init__(self) -> None:
        self.asked = 0

    def look(self, board: Board, profile: Profile) -> Indifferent:
        return self

    def odds(self, instructions: Int, targets: Int) -> Float:
        self.asked += len(instructions)
        return np.zeros(len(instructions), np.float32)


@lru_cache
def guesses() -> tuple[Guess, ...]:
    nominal = Guess(kernel().part(4))
    return nominal, *(nominal.changed(numbers) for numbers in drawn(nominal.numbers, 2, random.Random(0)))


def planner(ranker: Indifferent | None = None) -> tuple[Planner, Clock]:
    clock = Clock(VirtualTimer(kernel(), iterations=2, seeds=(1,)), kernel().original, 10)
    game = Game(kernel().listing, clock, kernel())
    return Planner(game, random.Random(0), Mix(), 1, ranker), clock


def test_a_plan_is_faster_in_the_twin_and_costs_the_device_nothing() -> None:
    made, clock = planner()
    plan = made.plan(kernel().original, guesses()[:1], 5, 200)
    assert clock.spent == 0
    assert plan.schedule.key != kernel().original.key
    Checker(kernel().cubin).check(plan.schedule.apply(kernel().cubin))


def test_a_plan_is_good_under_all_its_guesses_together() -> None:
    made, _ = planner()
    made.learn_noise(guesses())
    assert made.noise > 0
    plan = made.plan(kernel().original, guesses(), 8, 400)
    assert sum(guess.predict(plan.schedule) for guess in guesses()) < 0


def test_a_plan_says_whether_its_replays_were_too_few() -> None:
    made, _ = planner()
    assert made.plan(kernel().original, guesses()[:1], 1, 400).ran_out is False
    assert made.plan(kernel().original, guesses()[:1], 1000, 20).ran_out is True


def test_an_escape_begins_somewhere_else() -> None:
    made, _ = planner()
    plain = made.plan(kernel().original, guesses()[:1], 0, 10)
    aside = made.plan(kernel().original, guesses()[:1], 0, 10, aside=8)
    assert plain.schedule.key == kernel().original.key != aside.schedule.key


def test_neighbours_are_different_and_a_move_away() -> None:
    made, _ = planner()
    found = made.neighbours(kernel().original, 10, guesses()[0])
    assert len({schedule.key for schedule in found} | {kernel().original.key}) == 11
    assert made.game.schedule.key == kernel().original.key


def test_a_policy_chooses_among_the_moves_of_a_plan() -> None:
    policy = Indifferent()
    made, _ = planner(policy)
    plan = made.plan(kernel().original, guesses()[:1], 3, 60)
    assert policy.asked > 0
    Checker(kernel().cubin).check(plan.schedule.apply(kernel().cubin))


def test_only_the_device_picks_and_confirms() -> None:
    timer = TwinTimer(planner()[0]._panel(guesses()[:1]))
    for decide in (lambda: timer.pick(kernel().original, []),
                   lambda: timer.confirm(kernel().original, kernel().original)):  # fmt: skip
        with pytest.raises(CuasmrlError, match="only the device"):
            decide()
