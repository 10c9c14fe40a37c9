"""Winning schedules taken apart and put together again."""

import random
from dataclasses import replace

import pytest

from cuasmrl.checker import Checker
from cuasmrl.errors import CuasmrlError
from cuasmrl.explain.moves import Decomposition
from cuasmrl.explain.moves.changes import Relocate, Replace, Retime
from cuasmrl.schedule import Board, Schedule, Scoreboards, SetReuse, SetStall, SetYield
from tests.explain.moves.schedules import KINDS, random_schedule
from tests.traced_kernels import traced

KERNELS = ("softmax", "gemm_leaky_relu", "vector_add")
PLAYS = {
    "shifts": ("shift",),
    "drags": ("shift", "drag"),
    "swaps": ("swap", "inherit"),
    "edits": ("stall", "yield", "reuse"),
    "all": KINDS,
}


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("play", PLAYS)
@pytest.mark.parametrize("seed", range(3))
def test_random_schedules_come_apart_and_together(name: str, play: str, seed: int) -> None:
    original = traced(name).original
    winner = random_schedule(name, seed, PLAYS[play], (8, 40, 150)[seed])
    found = Decomposition(original, winner)
    whole = found.build(found.changes)
    assert whole is not None
    assert whole.schedule.key == winner.key
    assert whole.changes == frozenset(found.changes)
    nothing = found.build(())
    assert nothing is not None
    assert nothing.schedule.key == original.key


@pytest.mark.parametrize("seed", range(2))
def test_moves_of_one_kind_need_no_block_as_a_whole(seed: int) -> None:
    for kinds in (("shift", "drag"), ("swap",), ("yield", "reuse")):
        winner = random_schedule("gemm_leaky_relu", seed, kinds, 60)
        assert not Decomposition(traced("gemm_leaky_relu").original, winner).replaced


@pytest.mark.parametrize("seed", range(3))
def test_schedules_with_other_scoreboards_come_apart_and_together(seed: int) -> None:
    kernel = traced("gemm_leaky_relu")
    winner = random_schedule(
        kernel.name, seed, ("shift", "drag", "yield", "reuse"), 80, Scoreboards.REASSIGNED
    )
    assert any(
        now.write_barrier != was.write_barrier
        for now, was in zip(winner.controls, kernel.original.controls, strict=True)
    )
    found = Decomposition(kernel.original, winner)
    assert not found.replaced
    checker, rng = Checker(kernel.cubin), random.Random(seed)
    some = found.build(rng.sample(found.changes, len(found.changes) // 2))
    if some is not None:
        checker.check(some.schedule.apply(kernel.cubin))


@pytest.mark.parametrize(("name", "play"), [("softmax", "all"), ("gemm_leaky_relu", "shifts")])
def test_any_selection_is_certified(name: str, play: str) -> None:
    kernel = traced(name)
    checker, rng = Checker(kernel.cubin), random.Random(0)
    found = Decomposition(kernel.original, random_schedule(name, 1, PLAYS[play], 60))
    built = 0
    for size in range(1, len(found.changes), max(1, len(found.changes) // 6)):
        chosen = frozenset(rng.sample(found.changes, size))
        part = found.build(chosen)
        if part is not None:
            built += 1
            assert part.changes <= chosen
            checker.check(part.schedule.apply(kernel.cubin))
    assert built


def test_changes_say_what_was_done() -> None:
    kernel = traced("gemm_leaky_relu")
    board = Board(kernel.listing)
    loop = next(block for block in board.blocks if block.number in block.successors and len(block) > 1)
    load = next(i for i in range(loop.start, loop.end) if board.code[i].opcode == "LDSM")
    assert board.move(load, min(board.reach(load)))
    changes = set(Decomposition(kernel.original, board.schedule()).changes)
    assert changes == {Retime(loop.number), Relocate(loop.number, (load,))}
    plain = next(i for i in range(loop.start, loop.end) if board.set_yield(i, not board.yields[i]))
    kept = next(i for i in range(loop.start, loop.end) if board.reuse(i) and board.set_reuse(i, False))
    assert board.set_stall(load, board.stall[load] + 3)
    changes |= {
        SetYield(plain, board.yields[plain]),
        SetReuse(kept, False),
        SetStall(load, board.stall[load]),
    }
    assert set(Decomposition(kernel.original, board.schedule()).changes) == changes


def test_an_exchange_keeps_the_stalls_of_the_compiler() -> None:
    """No retiming where control codes only travelled."""
    board = Board(traced("softmax").listing)
    assert board.swap(board.legal_swaps()[0])
    (change,) = Decomposition(traced("softmax").original, board.schedule()).changes
    assert isinstance(change, Relocate)


def test_padding_goes_with_what_it_pads() -> None:
    kernel = traced("gemm_leaky_relu")
    board = Board(kernel.listing)
    units = [i for i in board.glued if board.glued[i] == i]
    moved = next(i for i in units if any(board.drag(i, to) for to in range(i + 1, i + 12)))
    changes = Decomposition(kernel.original, board.schedule()).changes
    for change in changes:
        if isinstance(change, Relocate) and moved in change.unit:
            assert len(change.unit) > 1
    assert not any(isinstance(change, Replace) for change in changes)


def test_what_single_changes_do_not_reach_is_one_change() -> None:
    """Bits that no move gives: the block comes as a whole, and is said to."""
    kernel = traced("softmax")
    controls = list(kernel.original.controls)
    i = next(i for i, control in enumerate(controls) if control.wait_mask == 0 and control.stall > 4)
    controls[i] = replace(controls[i], stall=1)
    winner = Schedule(kernel.listing, kernel.original.order, tuple(controls))
    found = Decomposition(kernel.original, winner)
    assert found.replaced
    whole = found.build(found.changes)
    assert whole is not None
    assert whole.schedule.key == winner.key


def test_other_code_is_refused() -> None:
    with pytest.raises(CuasmrlError, match="beside the one it was made from"):
        Decomposition(traced("softmax").original, traced("gemm_leaky_relu").original)
