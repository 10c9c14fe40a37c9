"""Scoreboards reassigned: who gets which, who waits, and that the checker agrees with all of it."""

import random
from collections.abc import Callable

import pytest

from cuasmrl.binary.cubin import Cubin
from cuasmrl.binary.sass import Control, disassemble_kernel
from cuasmrl.checker import Checker
from cuasmrl.optimize.gate.hazards import new_hazards
from cuasmrl.schedule import Board, Reason, Scoreboards
from cuasmrl.schedule.operations import traffic_of
from cuasmrl.schedule.slots import Slots
from tests.assembly import listing
from tests.schedule.test_board import FLOATS
from tests.traced_kernels import traced

_LONG = "\n".join(["B------:R-:W-:Y:S12  FADD R20, R21, R22"] * 8)
"""Short blocks keep their scoreboards."""

ALTERNATING = f"""
B------:R-:W-:-:S04  FADD R24, R25, R26
B------:R-:W0:-:S04  LDS R4, [R2]
B0-----:R-:W-:-:S04  FADD R5, R4, R4
B------:R-:W0:-:S04  LDS R6, [R2+0x4]
B0-----:R-:W-:-:S04  FADD R7, R6, R6
{_LONG}
B------:R-:W-:-:S05  EXIT
"""


def reassigning(text: str) -> Board:
    return Board(listing(text), FLOATS, Scoreboards.REASSIGNED)


def announced(board: Board) -> list[tuple[int | None, int | None, tuple[int, ...]]]:
    """Write barrier, read barrier and waits by instruction, where there are any."""
    found = [(c.write_barrier, c.read_barrier, tuple(c.waits)) for c in board.controls]
    return [entry for entry in found if entry != (None, None, ())]


def anew_for(text: str, first: list[int]) -> list[tuple[int | None, int | None, tuple[int, ...]]]:
    """What is assigned for an order that begins so, whether or not the compiler's would do."""
    board = Board(listing(text), FLOATS)
    block = board.blocks[0]
    traffic = traffic_of(block, board.originals)
    assert traffic is not None
    window = [*first, *range(len(first), len(block))]
    times = board.bounds.earliest(block, window)
    assert times is not None
    found = Slots(block, traffic, board.originals).assign(window, times)
    assert found is not None
    entries = [
        (
            None if write < 0 else write,
            None if read < 0 else read,
            tuple(k for k in range(6) if waits >> k & 1),
        )
        for write, read, waits in found.T.tolist()
    ]
    return [entry for entry in entries if entry != (None, None, ())]


def test_a_kept_scoreboard_holds_the_second_load_behind_the_wait_for_the_first() -> None:
    assert min(Board(listing(ALTERNATING), FLOATS).reach(3)) == 3
    assert min(reassigning(ALTERNATING).reach(3)) == 1


def test_a_load_above_the_wait_for_another_gets_its_own_scoreboard() -> None:
    board = reassigning(ALTERNATING)
    assert board.move(3, 2)
    assert board.order[:5] == [0, 1, 3, 2, 4]
    assert announced(board) == [(0, None, ()), (None, None, (0,)), (1, None, ()), (None, None, (1,))]


def test_loads_of_one_queue_share_where_that_costs_nothing() -> None:
    """Whoever waits for the second has the first as well, so the reader of the first waits no more."""
    board = reassigning(ALTERNATING)
    assert board.move(3, 1)
    assert announced(board) == [(0, None, ()), (None, None, (0,)), (0, None, ())]


@pytest.mark.parametrize("name", ["gemm_leaky_relu", "softmax"])
def test_orders_that_the_compilers_scoreboards_allow_keep_them(name: str) -> None:
    kept, new = (Board(traced(name).listing, scoreboards=how) for how in Scoreboards)
    rng, moved = random.Random(7), 0
    while moved < 40:
        i = rng.randrange(len(kept.code))
        to = rng.choice(kept.reach(i))
        if kept.move(i, to):
            moved += 1
            assert new.move(i, to)
            assert new.schedule() == kept.schedule()


def test_a_source_is_announced_where_it_is_overwritten_before_the_result_is_needed() -> None:
    text = f"""
    B------:R1:W0:-:S04  LDS R4, [R2]
    B-1----:R-:W-:-:S04  FADD R2, R8, R9
    B0-----:R-:W-:-:S04  FADD R5, R4, R4
    {_LONG}
    B------:R-:W-:-:S05  EXIT
    """
    assert anew_for(text, [0, 1, 2]) == [(0, 1, ()), (None, None, (1,)), (None, None, (0,))]
    # Behind the wait for the result the sources are read anyway.
    assert anew_for(text, [0, 2, 1]) == [(0, None, ()), (None, None, (0,))]


def test_what_another_block_waits_for_keeps_its_scoreboard() -> None:
    text = f"""
    B------:R-:W3:-:S04  LDS R4, [R2]
    {_LONG}
    B------:R-:W-:-:S05  BRA `(.L_x_1)
    .L_x_1:
    B---3--:R-:W-:-:S04  FADD R5, R4, R4
    B------:R-:W-:-:S05  EXIT
    """
    board = reassigning(text)
    assert board.reassigns(0)
    assert not board.reassigns(1)
    assert board.move(0, 5)
    assert announced(board) == [(3, None, ()), (None, None, (3,))]


def test_what_a_depbar_names_is_not_given_out() -> None:
    text = ALTERNATING.replace(
        "B------:R-:W-:-:S05  EXIT", "B------:R-:W-:-:S05  DEPBAR.LE SB1, 0x0\nB------:R-:W-:-:S05  EXIT"
    )
    board = reassigning(text)
    assert board.move(3, 2)
    assert board.write_barrier[3] == 2


def test_six_are_enough_or_some_are_shared() -> None:
    loads = "".join(f"B------:R-:W{k % 6}:-:S04  LDS R{10 + k}, [R2+{4 * k:#x}]\n" for k in range(6))
    adds = "".join(
        f"B{'-' * k}{k}{'-' * (5 - k)}:R-:W-:-:S04  FADD R{30 + k}, R{10 + k}, R{10 + k}\n" for k in range(6)
    )
    more = "B------:R-:W0:-:S04  LDS R40, [R2+0x40]\nB0-----:R-:W-:-:S04  FADD R41, R40, R40\n"
    board = reassigning(f"{loads}{adds}{more}{_LONG}\nB------:R-:W-:-:S05  EXIT")
    assert board.move(12, 3)
    assert {board.write_barrier[i] for i in (*range(6), 12)} <= set(range(6))
    assert all(board.controls[i].waits for i in range(6, 12))


@pytest.mark.parametrize("name", ["gemm_leaky_relu", "softmax"])
def test_only_the_order_decides(name: str) -> None:
    """However a board came to an order: what it gives out is the same."""
    board, rng = Board(traced(name).listing, scoreboards=Scoreboards.REASSIGNED), random.Random(3)
    moved = 0
    while moved < 60:
        i = rng.randrange(len(board.code))
        moved += board.move(i, rng.choice(board.reach(i)))
    other = Board(traced(name).listing, scoreboards=Scoreboards.REASSIGNED)
    for block in board.blocks:
        if board.reassigns(block.number):
            assert other.reorder(block.number, board.order[block.start : block.end])
            assert board.retime(block.number)
            here = slice(block.start, block.end)
            assert [_boards(c) for c in other.controls[here]] == [_boards(c) for c in board.controls[here]]


def test_a_schedule_comes_back_with_its_scoreboards() -> None:
    board, rng = (
        Board(traced("gemm_leaky_relu").listing, scoreboards=Scoreboards.REASSIGNED),
        random.Random(5),
    )
    for _ in range(100):
        i = rng.randrange(len(board.code))
        board.move(i, rng.choice(board.reach(i)))
    found = board.schedule()
    board.reset()
    assert board.schedule() != found
    board.restore(found)
    assert board.schedule() == found


def test_where_scoreboards_are_given_out_only_moves_that_retime_are_left() -> None:
    board = reassigning(ALTERNATING)
    assert board.reassigns(0)
    assert board.legal_swaps() == []
    assert board.inheritable_swaps() == []
    assert not board.set_stall(0, 9)


def test_more_is_within_reach() -> None:
    kernel = traced("gemm_leaky_relu")
    kept, new = Board(kernel.listing), Board(kernel.listing, scoreboards=Scoreboards.REASSIGNED)
    loop = next(block for block in new.blocks if block.number in block.successors and len(block) > 60)
    assert new.reassigns(loop.number)
    loads = [i for i in range(loop.start, loop.end) if kept.code[i].opcode == "LDSM"]
    assert sum(len(new.reach(i)) for i in loads) > 1.2 * sum(len(kept.reach(i)) for i in loads)
    reasons = {reason for i in loads for edge in new.graphs[loop.number].successors[i].values()
               for reason in edge.reasons}  # fmt: skip
    assert Reason.ANNOUNCED in reasons
    assert not reasons & {Reason.WAIT, Reason.QUEUE}


@pytest.mark.parametrize("arch", [75, 80, 89, 90, 120])
def test_every_order_is_certified(built: Callable[[str, str, int], Cubin], arch: int) -> None:
    cubin = built("gemm_leaky_relu", "m32n32k32_w2_s2", arch)
    board, checker = Board(disassemble_kernel(cubin), scoreboards=Scoreboards.REASSIGNED), Checker(cubin)
    rng = random.Random(arch)
    changed = 0
    for _ in range(6):
        for _ in range(40):
            i = rng.randrange(len(board.code))
            block = board.blocks[board.block_of[i]]
            board.drag(i, rng.randrange(block.start, block.end))
        checker.check(board.schedule().apply(cubin))
        changed += sum(
            _boards(a) != _boards(b.control) for a, b in zip(board.controls, board.code, strict=True)
        )
    assert changed


@pytest.mark.parametrize("seed", range(3))
def test_no_register_is_touched_too_early_in_time(seed: int) -> None:
    kernel, rng = traced("gemm_leaky_relu"), random.Random(seed)
    board = Board(kernel.listing, scoreboards=Scoreboards.REASSIGNED)
    for _ in range(150):
        i = rng.randrange(len(board.code))
        block = board.blocks[board.block_of[i]]
        board.drag(i, rng.randrange(block.start, block.end))
    changed = board.schedule()
    assert any(_boards(a) != _boards(b.control) for a, b in zip(changed.controls, board.code, strict=True))
    assert new_hazards(kernel.model, kernel.original, changed) == []


def _boards(control: Control) -> tuple[int | None, int | None, int]:
    return control.write_barrier, control.read_barrier, control.wait_mask
