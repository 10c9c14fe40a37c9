"""Moves on the board: what is legal, what changes, and that nothing changes when a move is refused."""

import random
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cuasmrl.binary.cubin import Cubin
from cuasmrl.binary.sass import Distances, Hazard, Row, disassemble, disassemble_kernel
from cuasmrl.errors import CuasmrlError
from cuasmrl.schedule import Board, Schedule, SetStall, Shift, Swap, SwapInheriting, play
from cuasmrl.schedule.moves import edits, shifts, swaps
from tests.assembly import listing
from tests.schedule.campaign import random_move

ANY = "*"


def table(*rows: tuple[Hazard, str, str, str, str, str, int]) -> Distances:
    """A distance table for sm_90 with plenty of evidence for every row."""
    return Distances(
        90, [Row(90, h, f, p, pr, c, cr, d, d, 100, 100, "by hand") for h, f, p, pr, c, cr, d in rows]
    )  # fmt: skip


FLOATS = table(
    (Hazard.RAW, "R", "FADD", "data", "FADD", "data", 4),
    (Hazard.RAW, "R", "FADD", "data", "STG", "data", 5),
    (Hazard.WAW, "R", "FADD", "data", "FADD", "data", 4),
    (Hazard.WAR, "R", "FADD", "data", ANY, "", 1),
    (Hazard.RAW, "P", "ISETP", "data", "FADD", "guard", 13),
    (Hazard.SPACING, "", "FADD", "", ANY, "", 1),
    (Hazard.STALL, "", "FADD", "", ANY, "", 1),
    (Hazard.RELEASE, "", "LDG", "", ANY, "", 2),
    (Hazard.STALL, "", "LDG", "", ANY, "", 1),
    (Hazard.SPACING, "", "LDS", "", ANY, "", 4),
    (Hazard.SPACING, "", "LDGSTS", "", ANY, "", 4),
)

CHAIN = """
B------:R-:W-:-:S01  FADD R1, R8, R9
B------:R-:W-:-:S01  FADD R2, R8, R9
B------:R-:W-:-:S02  FADD R3, R8, R9
B------:R-:W-:-:S04  FADD R4, R1, R9
B------:R-:W-:-:S05  EXIT
"""


def test_a_swap_needs_its_distance() -> None:
    board = Board(listing(CHAIN), FLOATS)
    # R1 is read at 0+4: it may move down by one cycle no more than there is slack.
    assert not board.swap(0)
    assert board.swap(1)
    assert [board.order[p] for p in range(4)] == [0, 2, 1, 3]


def test_control_codes_travel_with_a_swap() -> None:
    board = Board(listing(CHAIN), FLOATS)
    assert board.swap(1)
    schedule = board.schedule()
    assert [schedule.controls[i].stall for i in schedule.order[:4]] == [1, 2, 1, 4]


def test_a_dependent_pair_is_never_swapped() -> None:
    board = Board(listing(CHAIN), FLOATS)
    assert 2 not in board.legal_swaps() or board.order[2] != 0
    assert all(place < board.position[3] for place in board.reach(0))


def test_a_swap_keeps_what_a_wait_counts_on_behind_whom_it_counts_for() -> None:
    """Three cycles are too few for R1; the wait for R6 passes the rest if LDG is not issued earlier."""
    board = Board(listing("""
        B------:R-:W0:-:S01  LDG.E R6, [R10]
        B------:R-:W-:-:S01  FADD R1, R8, R9
        B------:R-:W-:-:S01  FADD R3, R8, R9
        B0-----:R-:W-:-:S01  FADD R2, R6, R9
        B------:R-:W-:-:S01  STG.E [R12], R1
        B------:R-:W-:-:S05  EXIT
    """))  # fmt: skip
    assert board.swap(0)
    assert board.set_stall(0, 2)
    # Back again LDG would be two cycles ahead of the FADD, where it was one.
    assert not board.swap(0)
    assert board.set_stall(0, 1)
    assert board.swap(0)


@pytest.mark.parametrize(("boards", "is_legal"), [("R-:W-", True), ("R0:W0", False)])
def test_what_raises_a_scoreboard_is_under_way_even_with_a_fixed_latency(boards: str, is_legal: bool) -> None:
    """Eight cycles are enough for R16 to be read, but not known to be where a scoreboard announces that."""
    # In a long block only the pair itself is in the way.
    lines = [f"B------:R-:W-:Y:S15  FADD R{n}, R8, R9" for n in range(8)]
    lines += [
        f"B------:{boards}:-:S08  HMMA.16816.F32 R40, R16, R24, R40",
        f"B------:{boards}:-:S08  HMMA.16816.F32 R36, R16, R14, R36",
        f"B------:{boards}:-:S08  HMMA.16816.F32 R16, R16, R12, R20",
        "B0-----:R-:W-:-:S05  EXIT",
    ]
    board = Board(listing("\n".join(lines), arch=89))
    assert board.swap(8) is is_legal


def seen_after(cycles: int) -> Distances:
    """A table in which a scoreboard that a load has raised is seen so much later."""
    return table(
        (Hazard.RAW, "R", "FADD", "data", "FADD", "data", 4),
        (Hazard.WAW, "R", "FADD", "data", "FADD", "data", 4),
        (Hazard.WAR, "R", "FADD", "data", ANY, "", 1),
        (Hazard.SPACING, "", "FADD", "", ANY, "", 1),
        (Hazard.STALL, "", "FADD", "", ANY, "", 1),
        (Hazard.SPACING, "", "LDG", "", ANY, "", 1),
        (Hazard.STALL, "", "LDG", "", ANY, "", 1),
        (Hazard.RELEASE, "", "LDG", "", ANY, "", cycles),
    )


@pytest.mark.parametrize(("cycles", "is_legal"), [(2, True), (24, False)])
def test_a_new_wait_leaves_scoreboards_of_earlier_blocks_time_to_be_seen(cycles: int, is_legal: bool) -> None:
    board = Board(listing("""
        B------:R-:W0:-:S01  LDG.E R6, [R10]
        .L_x_1:
        B------:R-:W-:-:S04  FADD R1, R8, R9
        B0-----:R-:W-:-:S01  FADD R2, R6, R9
        B------:R-:W-:-:S04  FADD R3, R6, R9
        B------:R-:W-:-:S05  @P0 BRA `(.L_x_1)
        B------:R-:W-:-:S05  EXIT
    """), seen_after(cycles))  # fmt: skip
    assert board.swap_inheriting(2) is is_legal


@pytest.mark.parametrize(("cycles", "is_legal"), [(2, True), (24, False)])
@pytest.mark.parametrize("border", ["", ".L_x_1:"])
def test_the_second_to_wait_is_not_the_first_if_that_is_too_soon(
    border: str, cycles: int, is_legal: bool
) -> None:
    """That the second one waits so soon shows nothing, since the first has waited before."""
    board = Board(listing(f"""
        B------:R-:W0:-:S01  LDG.E R6, [R10]
        {border or ".L_x_2:"}
        B------:R-:W-:-:S04  FADD R1, R8, R9
        B0-----:R-:W-:-:S01  FADD R2, R6, R9
        B0-----:R-:W-:-:S04  FADD R3, R6, R9
        B------:R-:W-:-:S01  FADD R4, R8, R9
        B------:R-:W-:-:S05  @P0 BRA `({border[:-1] or ".L_x_3"})
        .L_x_3:
        B------:R-:W-:-:S05  EXIT
    """), seen_after(cycles))  # fmt: skip
    board.set_stall(1, 5)
    assert board.swap(2) is is_legal


def test_an_unknown_latency_keeps_the_compilers_distance() -> None:
    board = Board(listing(CHAIN), table())
    before = board.time[3] - board.time[0]
    for p in range(3):
        board.swap(p)
    board.retime(0)
    assert board.time[3] - board.time[0] >= before


def test_retime_finds_the_smallest_stalls() -> None:
    code = listing("""
    B------:R-:W-:Y:S12  FADD R1, R8, R9
    B------:R-:W-:-:S09  FADD R2, R1, R9
    B------:R-:W-:-:S05  EXIT
    """)
    board = Board(code, FLOATS)
    assert board.retime(0)
    assert board.stall[0] == 4
    assert board.stall[1] <= 9


def test_a_move_recomputes_stalls() -> None:
    board = Board(listing(CHAIN), FLOATS)
    assert board.move(0, 2)
    assert [board.order[p] for p in range(4)] == [1, 2, 0, 3]
    assert board.time[3] - board.time[0] == 4


def test_a_branch_stays_and_nothing_passes_it() -> None:
    board = Board(listing(CHAIN), FLOATS)
    assert board.is_fixed(4)
    assert board.reach(4) == [4]
    assert not board.swap(3)


def test_an_unknown_opcode_pins_its_block() -> None:
    code = listing(CHAIN.replace("FADD R2, R8, R9", "FROB R2, R8, R9"))
    board = Board(code, FLOATS)
    assert [i.text for i in code.unknown] == ["FROB R2, R8, R9"]
    assert board.legal_swaps() == []
    assert all(board.reach(i) == [i] for i in range(5))


def test_a_call_out_of_the_kernel_freezes_it() -> None:
    code = listing(CHAIN.replace("FADD R2, R8, R9", "CALL.ABS.NOINC R20"))
    board = Board(code, FLOATS)
    assert board.is_opaque
    assert board.legal_swaps() == []
    assert not any(play(board, move) for i in range(len(code.instructions)) for move in edits(board, i))
    assert not board.retime(0)


def test_a_guard_waits_for_its_predicate() -> None:
    code = listing("""
    B------:R-:W-:Y:S13  ISETP.GE.AND P0, PT, R8, RZ, PT
    B------:R-:W-:-:S04  @P0 FADD R1, R8, R9
    B------:R-:W-:-:S05  EXIT
    """)
    board = Board(code, FLOATS)
    assert not play(board, SetStall(0, 12))
    assert play(board, SetStall(0, 15))
    assert board.controls[0].yield_


def test_no_access_passes_a_block_barrier_but_arithmetic_does() -> None:
    code = listing("""
    B------:R-:W0:-:S04  LDS R4, [R2]
    B------:R-:W-:-:S06  BAR.SYNC.DEFER_BLOCKING 0x0
    B------:R-:W-:-:S04  FADD R1, R8, R9
    B------:R-:W1:-:S04  LDS R5, [R2+0x4]
    B------:R-:W-:-:S05  EXIT
    """)
    board = Board(code, FLOATS)
    assert 0 not in board.legal_swaps()
    assert min(board.reach(2)) == 0
    assert min(board.reach(3)) == 2
    assert max(board.reach(0)) == 0


def test_a_consumer_cannot_leave_the_shelter_of_a_wait_unless_it_inherits() -> None:
    code = listing("""
    B------:R-:W0:-:S08  LDG.E R4, desc[UR4][R2.64]
    B0-----:R-:W-:-:S04  FADD R6, R4, R9
    B------:R-:W-:-:S04  FADD R7, R4, R8
    B------:R-:W-:-:S05  EXIT
    """)
    board = Board(code, FLOATS)
    assert 1 not in board.legal_swaps()
    assert 1 in board.inheritable_swaps()
    assert play(board, SwapInheriting(1))
    assert board.order[:3] == [0, 2, 1]
    assert board.controls[2].waits == (0,)
    assert board.controls[1].waits == (0,)


def test_a_covered_load_stays_ahead_of_its_cover() -> None:
    code = listing("""
    B------:R-:W-:-:S04  LDS R4, [R2]
    B------:R-:W1:-:S04  LDS R5, [R2+0x4]
    B-1----:R-:W-:-:S04  FADD R6, R4, R5
    B------:R-:W-:-:S05  EXIT
    """)
    board = Board(code, FLOATS)
    assert 0 not in board.legal_swaps()
    assert board.reach(0) == [0]


def test_padding_loads_stay_with_what_they_pad() -> None:
    code = listing("""
    B------:R-:W-:-:S04  FADD R1, R8, R9
    B------:R-:W-:-:S04  @!PT LDS RZ, [RZ]
    B------:R-:W-:-:S04  @!PT LDS RZ, [RZ]
    B------:R0:W-:-:S04  LDGSTS.E.128 [R2], desc[UR4][R6.64]
    B------:R-:W-:-:S04  FADD R11, R1, R9
    B------:R-:W-:-:S05  EXIT
    """)
    board = Board(code, FLOATS)
    assert not set(board.legal_swaps()) & {0, 1, 2, 3}
    assert board.reach(4) == [1, 4]
    assert board.move(4, 1)
    assert board.order[:5] == [0, 4, 1, 2, 3]


def test_reuse_flags_stay_only_with_their_neighbour(built: Callable[[str, str, int], Cubin]) -> None:
    board = Board(disassemble_kernel(built("gemm_leaky_relu", "m64n64k32_w4_s3", 80)))
    flagged = [i for i in range(len(board.code)) if board.code[i].control.reuse]
    assert flagged
    assert all(board.reuse(i) == board.code[i].control.reuse for i in flagged)
    p = next(p for p in board.legal_swaps() if board.code[board.order[p]].control.reuse)
    a = board.order[p]
    board.swap(p)
    assert board.reuse(a) == 0
    assert board.schedule().controls[a].reuse == 0


def test_a_block_takes_any_order_that_respects_its_dependences() -> None:
    board = Board(listing(CHAIN), FLOATS)
    assert board.reorder(0, [2, 1, 0, 3, 4])
    assert board.time[3] - board.time[0] == 4
    board.reset()
    for wrong in ([3, 1, 2, 0, 4], [0, 1, 2, 4, 3], [0, 1, 2, 3], [0, 0, 1, 2, 4]):
        assert not board.reorder(0, wrong)
    assert board.schedule() == Schedule.original(board.listing)


def test_nothing_is_reordered_across_a_pin() -> None:
    code = listing("""
    B------:R-:W-:-:S04  FADD R1, R8, R9
    B------:R-:W-:-:S04  NOP
    B------:R-:W-:-:S04  FADD R2, R8, R9
    B------:R-:W-:-:S05  EXIT
    """)
    assert not Board(code, FLOATS).reorder(0, [2, 1, 0, 3])


def test_a_refused_move_changes_nothing() -> None:
    board = Board(listing(CHAIN), FLOATS)
    before = board.schedule()
    assert not play(board, Swap(0))
    assert not play(board, Shift(3, 0))
    assert not play(board, SetStall(0, 16))
    assert board.schedule() == before


def test_a_schedule_is_a_value(built: Callable[[str, str, int], Cubin]) -> None:
    cubin = built("softmax", "w4", 80)
    code = disassemble_kernel(cubin)
    first, second = Schedule.original(code), Schedule.original(code)
    assert first == second
    assert hash(first) == hash(second)
    assert first.digest == second.digest
    assert first.apply(cubin).data == cubin.data


def test_a_schedule_fits_only_its_own_code(built: Callable[[str, str, int], Cubin]) -> None:
    schedule = Schedule.original(disassemble_kernel(built("softmax", "w4", 80)))
    with pytest.raises(CuasmrlError, match="other code"):
        schedule.apply(built("softmax", "w8", 80))


CUBINS = [("gemm_leaky_relu", "m64n64k32_w4_s3", 80), ("softmax", "w4", 90), ("reduction", "t128", 120)]


@pytest.mark.parametrize(("name", "config", "arch"), CUBINS)
def test_compiler_output_has_no_negative_slack(
    built: Callable[[str, str, int], Cubin], name: str, config: str, arch: int
) -> None:
    for code in disassemble(built(name, config, arch)).values():
        board = Board(code)
        assert any(board.mask)
        assert min(board.exchanges.slack_in) >= 0
        assert min(board.exchanges.slack_out) >= 0


@pytest.mark.parametrize(("name", "config", "arch"), CUBINS)
def test_retiming_compiler_output_never_makes_it_longer(
    built: Callable[[str, str, int], Cubin], name: str, config: str, arch: int
) -> None:
    for code in disassemble(built(name, config, arch)).values():
        board = Board(code)
        before = list(board.length)
        for block in board.blocks:
            board.retime(block.number)
        assert all(after <= then for after, then in zip(board.length, before, strict=True))


@given(seed=st.integers(0, 2**32))
@settings(max_examples=15, deadline=None)
def test_the_mask_stays_what_a_fresh_look_would_give(
    built: Callable[[str, str, int], Cubin], seed: int
) -> None:
    board = Board(disassemble_kernel(built("softmax", "w4", 80)))
    rng = random.Random(seed)
    for _ in range(60):
        random_move(board, rng)
    mask, slack = bytes(board.mask), (list(board.exchanges.slack_in), list(board.exchanges.slack_out))
    for block in board.blocks:
        board.exchanges.forget(block)
    assert bytes(board.mask) == mask
    assert (board.exchanges.slack_in, board.exchanges.slack_out) == slack
    board.reset()
    assert board.schedule() == Schedule.original(board.listing)


@given(seed=st.integers(0, 2**32))
@settings(max_examples=15, deadline=None)
def test_a_board_restored_is_as_it_was(built: Callable[[str, str, int], Cubin], seed: int) -> None:
    board = Board(disassemble_kernel(built("softmax", "w4", 80)))
    rng = random.Random(seed)
    for _ in range(30):
        random_move(board, rng)
    schedule, mask, times, lengths = board.schedule(), bytes(board.mask), list(board.time), list(board.length)
    for _ in range(30):
        random_move(board, rng)
    board.restore(schedule)
    assert board.schedule() == schedule
    if any(c.wait_mask != i.control.wait_mask for c, i in zip(schedule.controls, board.code, strict=True)):
        # With inherited waits the graph comes from the order it was built in, which is now the restored one.
        mask = bytes(board.mask)
        for _ in range(30):
            random_move(board, rng)
        board.restore(schedule)
    assert bytes(board.mask) == mask
    assert (list(board.time), list(board.length)) == (times, lengths)


def test_listed_moves_are_legal(built: Callable[[str, str, int], Cubin]) -> None:
    board = Board(disassemble_kernel(built("reduction", "t128", 80)))
    for move in [*swaps(board), *(m for i in range(20) for m in shifts(board, i))]:
        if isinstance(move, Swap):
            assert play(board, move), move
            board.reset()
    assert any(play(board, move) for i in range(len(board.code)) for move in edits(board, i))
