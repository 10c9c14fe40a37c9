"""The searches: deterministic, within budget, and never leaving what is legal."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Any

import pytest

from cuasmrl.agents import AGENTS, match
from cuasmrl.agents.evolve import repaired
from cuasmrl.agents.list_scheduling import Latencies, Scheduler, latency
from cuasmrl.agents.proposals import Mix, Proposals, Walk
from cuasmrl.checker import Checker
from cuasmrl.game import Clock, Evaluation, Game
from cuasmrl.gpu.devices import VirtualTimer
from cuasmrl.gpu.traced import TracedKernel
from cuasmrl.schedule import Board, Reason, Scoreboards
from tests.assembly import listing
from tests.climbing import kernel as small_gemm
from tests.game.play import new_game
from tests.traced_kernels import traced

SEARCHES = ("random", "greedy", "anneal", "evolve", "list")
KERNELS: dict[str, Callable[[], TracedKernel]] = {"softmax": lambda: traced("softmax"), "gemm": small_gemm}


def played(
    name: str, kernel: str, budget: int, seed: int = 0, scoreboards: Scoreboards = Scoreboards.KEPT
) -> tuple[Clock, list[Evaluation]]:
    traced_kernel, seen = KERNELS[kernel](), list[Evaluation]()
    timer = VirtualTimer(traced_kernel, iterations=2, seeds=(1,))
    clock = match(AGENTS.named(name), traced_kernel, timer, budget, seed, None, seen.append, scoreboards)
    return clock, seen


@lru_cache
def checker(kernel: str) -> Checker:
    return Checker(KERNELS[kernel]().cubin)


@pytest.mark.parametrize("scoreboards", Scoreboards)
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("name", SEARCHES)
def test_a_search_spends_its_budget_and_ends_with_a_certified_schedule(
    name: str, kernel: str, scoreboards: Scoreboards
) -> None:
    clock, seen = played(name, kernel, 80, scoreboards=scoreboards)
    assert clock.spent == len(seen) == 80
    assert len({evaluation.key for evaluation in seen}) == 80
    assert clock.best_time == min(clock.start, *(evaluation.time for evaluation in seen))
    checker(kernel).check(clock.best.apply(KERNELS[kernel]().cubin))


@pytest.mark.parametrize("name", SEARCHES)
def test_the_same_seed_visits_the_same_schedules(name: str) -> None:
    first, second, other = (played(name, "gemm", 40, seed) for seed in (3, 3, 4))
    assert [e.key for e in first[1]] == [e.key for e in second[1]]
    assert first[0].best.key == second[0].best.key
    assert [e.key for e in first[1]] != [e.key for e in other[1]]


@pytest.mark.parametrize("budget", [1, 10])
@pytest.mark.parametrize("name", SEARCHES)
def test_small_budgets_are_kept(name: str, budget: int) -> None:
    clock, seen = played(name, "softmax", budget)
    assert clock.spent == len(seen) == budget


@pytest.mark.parametrize("name", [name for name in SEARCHES if name != "random"])
def test_choosing_beats_playing_at_random(name: str) -> None:
    assert played(name, "gemm", 200)[0].gain > played("random", "gemm", 200)[0].gain


def test_a_search_stops_when_there_is_nothing_new() -> None:
    """A kernel of a few instructions has fewer schedules than the budget allows to time."""
    game = new_game("softmax", 10)()
    walk = Walk(game, random.Random(0), Mix())
    walk.proposals.play = lambda: "shift"  # type: ignore[method-assign]
    times = [walk.propose() for _ in range(2001)]
    assert times[0] == game.clock.start
    assert times[-1] is None


@pytest.mark.parametrize("kind", Mix().weights())
def test_every_kind_of_proposal_keeps_the_schedule_legal(kind: str) -> None:
    kernel = small_gemm()
    clock = Clock(VirtualTimer(kernel, iterations=2, seeds=(1,)), kernel.original, 1)
    game = Game(kernel.listing, clock, kernel)
    weights: dict[str, Any] = dict.fromkeys(Mix().weights(), 0.0) | {kind: 1.0}
    proposals = Proposals(game, random.Random(0), replace(Mix(), **weights))
    played = sum(proposals.play() == kind for _ in range(200))
    assert played > 20
    checker("gemm").check(game.schedule.apply(kernel.cubin))


@pytest.mark.parametrize("scoreboards", Scoreboards)
def test_list_scheduling_finds_legal_orders(scoreboards: Scoreboards) -> None:
    kernel, rng = small_gemm(), random.Random(0)
    board = Board(kernel.listing, scoreboards=scoreboards)
    longest = max(board.blocks, key=len)
    scheduler = Scheduler(board, longest, Latencies())
    done = [scheduler.arrange({i: rng.gauss(0, 40) for i in scheduler.instructions}) for _ in range(10)]
    assert any(done)
    checker("gemm").check(board.schedule().apply(kernel.cubin))


def test_repairing_an_order_leaves_a_legal_one_alone() -> None:
    board = Board(small_gemm().listing)
    for block in board.blocks:
        window = board.order[block.start : block.end]
        assert repaired(window, board.graphs[block.number]) == window
        mixed = random.Random(0).sample(window, len(window))
        fixed = repaired(mixed, board.graphs[block.number])
        place = {i: k for k, i in enumerate(fixed)}
        assert sorted(fixed) == sorted(window)
        assert all(
            place[p] < place[i]
            for i in fixed
            for p in board.graphs[block.number].predecessors[i]
            if p in place
        )


def test_what_a_scoreboard_announces_takes_as_long_as_its_kind() -> None:
    """Whatever scoreboards the compiler gave: a load from shared memory, and the sources it reads."""
    code = listing("""
    B------:R-:W-:-:S04  LDS R4, [R2]
    B------:R-:W-:-:S04  FADD R5, R4, R4
    B------:R-:W-:-:S04  FADD R2, R8, R9
    """).instructions
    reasons, latencies = {Reason.ANNOUNCED}, Latencies()
    assert latency(code[0], code[1], 2, reasons, latencies) == latencies.shared
    assert latency(code[0], code[2], 2, reasons, latencies) == latencies.sources
