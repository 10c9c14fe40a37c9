"""Climbs that propose ahead of the answers take the same way on any number of cores."""

from __future__ import annotations

import random

import pytest

from cuasmrl.agents.greedy import Greedy
from cuasmrl.agents.lookahead import Lookahead
from cuasmrl.agents.proposals import Mix, Walk
from cuasmrl.game import Clock, Evaluation, Game
from cuasmrl.gpu.devices import VirtualTimer
from tests.climbing import kernel as small_gemm

BUDGET = 60


def climbed(workers: int, budget: int = BUDGET) -> tuple[Clock, list[Evaluation]]:
    """With steps aside, which forget what was proposed ahead."""
    kernel, seen = small_gemm(), list[Evaluation]()
    timer = VirtualTimer(kernel, iterations=2, seeds=(1, 2), workers=workers)
    clock = Clock(timer, kernel.original, budget, listener=seen.append)
    Greedy(patience=15).play(lambda: Game(kernel.listing, clock, kernel), seed=0)
    return clock, seen


@pytest.mark.parametrize("workers", [2, 4])
def test_the_way_does_not_depend_on_the_number_of_workers(workers: int) -> None:
    (one, first), (many, second) = climbed(1), climbed(workers)
    assert first == second
    assert one.best == many.best
    assert one.spent == many.spent == BUDGET


def test_a_budget_smaller_than_what_is_proposed_ahead_is_kept() -> None:
    assert climbed(4, 2)[1] == climbed(1, 2)[1]


def test_what_was_proposed_behind_a_kept_move_is_forgotten() -> None:
    """Whatever becomes of the proposals, the next ones are those that a walk on one core would make."""
    kernel = small_gemm()
    visited = []
    for workers in (1, 3):
        timer = VirtualTimer(kernel, iterations=2, seeds=(1,), workers=workers)
        game = Game(kernel.listing, Clock(timer, kernel.original, BUDGET), kernel)
        walk = Walk(game, random.Random(1), Mix())
        ahead, keys = Lookahead(walk), []
        for number in range(20):
            time = ahead.propose(4 if number % 7 == 6 else 1)
            assert time is not None
            keys.append(walk.proposed.key)
            if number % 3:
                ahead.take_back()
                assert game.schedule == walk.schedule
            else:
                ahead.keep(time)
                assert game.schedule == walk.proposed
        visited.append(keys)
    assert visited[0] == visited[1]
