"""Streams that others have timed on hardware: Huerta et al., MICRO 2025, tables and listings."""

import pytest

from cuasmrl.errors import CuasmrlError
from tests.gpu.timing.programs import issues, run, stream


def between_clocks(*lines: str) -> int:
    """Cycles from the first clock to the second."""
    result = run(stream("CS2R.32 R40, SR_CLOCKLO", *lines, "CS2R.32 R42, SR_CLOCKLO"))
    cycles = issues(result)
    return cycles[len(lines) + 1] - cycles[0]


@pytest.mark.parametrize(("x", "y", "elapsed"), [(19, 21, 5), (18, 21, 6), (18, 20, 7)])
def test_read_ports(x: int, y: int, elapsed: int) -> None:
    """Listing 1: three even sources first, then one even and two others."""
    found = between_clocks("NOP", "FFMA R11, R10, R12, R14", f"FFMA R13, R16, R{x}, R{y}", "NOP")
    assert found == elapsed


def test_issue_does_not_see_port_conflicts() -> None:
    found = between_clocks("NOP", "FFMA R11, R10, R12, R14", "FFMA R13, R16, R18, R20")
    assert found == 4


@pytest.mark.parametrize(("stall", "elapsed"), [(1, 5), (4, 8)])
def test_stall_count(stall: int, elapsed: int) -> None:
    """Listing 2: only the stall count keeps a dependent instruction away."""
    found = between_clocks(
        "NOP", f"B------:R-:W-:-:S{stall:02}  FADD R1, R2, R3", "FFMA R5, R1, R1, R1", "NOP"
    )
    assert found == elapsed


@pytest.mark.parametrize(
    ("instruction", "bubbles"),
    [("FMUL R{}, R10, R12", 1), ("FMUL R{}, R10, R13", 0), ("FFMA R{}, R10, R12, R14", 2)],
)
def test_steady_streams(instruction: str, bubbles: int) -> None:
    cycles = issues(run(stream(*[instruction.format(50 + 2 * (k % 8)) for k in range(40)])))
    assert cycles[39] - cycles[29] == 10 * (1 + bubbles)


def test_yield_costs_a_lone_warp_one_cycle() -> None:
    cycles = issues(run(stream("B------:R-:W-:Y:S01  NOP", "NOP")))
    assert cycles[1] == 2


def test_no_stall_with_yield_stops_for_long() -> None:
    assert issues(run(stream("B------:R-:W-:Y:S00  NOP", "NOP")))[1] == 45


def test_a_scoreboard_is_seen_after_two_cycles() -> None:
    """The next instruction slips through if the load stalls one cycle only."""
    load = "B------:R-:W0:-:S{:02}  LDS R4, [R2]"
    seen = issues(run(stream(load.format(2), "B0-----:R-:W-:-:S01  IADD3 R5, R4, R4, RZ")))
    missed = issues(run(stream(load.format(1), "B0-----:R-:W-:-:S01  IADD3 R5, R4, R4, RZ")))
    assert seen[1] == 24
    assert missed[1] == 1


@pytest.mark.parametrize(
    ("cores", "first", "last"),
    [
        (1, [13, 17, 21], [13, 17, 21]),
        (2, [13, 17, 21], [15, 19, 23]),
        (3, [13, 19, 25], [17, 23, 29]),
        (4, [13, 21, 29], [19, 27, 35]),
    ],
)
def test_memory_queue(cores: int, first: list[int], last: list[int]) -> None:
    """Table 1: independent loads, one warp on each active sub-core; the table counts from 2."""
    result = run(stream(*[f"LDG.E R{20 + 2 * k}, [R2.64]" for k in range(8)]), warps=cores)
    for warp, expected in ((0, first), (cores - 1, last)):
        cycles = [cycle + 2 for cycle in issues(result, warp)]
        assert cycles[:5] == [2, 3, 4, 5, 6]
        assert cycles[5:8] == expected


LATENCIES = [
    ("LDG.E R20, [R2.64]", 32, 11), ("LDG.E.64 R20, [R2.64]", 34, 11), ("LDG.E.128 R20, [R2.64]", 38, 11),
    ("LDG.E R20, [UR4]", 29, 9), ("LDG.E.64 R20, [UR4]", 31, 9), ("LDG.E.128 R20, [UR4]", 35, 9),
    ("LDS R20, [R2]", 24, 9), ("LDS.64 R20, [R2]", 24, 9), ("LDS.128 R20, [R2]", 26, 9),
    ("LDS R20, [UR4]", 23, 9), ("LDS.64 R20, [UR4]", 23, 9), ("LDS.128 R20, [UR4]", 25, 9),
    ("STG.E [R2.64], R20", None, 14), ("STG.E.64 [R2.64], R20", None, 16),
    ("STG.E.128 [R2.64], R20", None, 20),
    ("STG.E [UR4], R20", None, 10), ("STG.E.64 [UR4], R20", None, 12), ("STG.E.128 [UR4], R20", None, 16),
    ("STS [R2], R20", None, 12), ("STS.64 [R2], R20", None, 14), ("STS.128 [R2], R20", None, 18),
    ("STS [UR4], R20", None, 10), ("STS.64 [UR4], R20", None, 12), ("STS.128 [UR4], R20", None, 16),
]  # fmt: skip


@pytest.mark.parametrize(("instruction", "raw", "war"), LATENCIES, ids=[case[0] for case in LATENCIES])
def test_memory_latencies(instruction: str, raw: int | None, war: int) -> None:
    """Table 2: from issue to the earliest consumer, and to the earliest overwriter of a source."""
    released = issues(run(stream(f"B------:R1:W-:-:S02  {instruction}", "B-1----:R-:W-:-:S01  NOP")))
    assert released[1] == war
    if raw is not None:
        answered = issues(run(stream(f"B------:R-:W0:-:S02  {instruction}", "B0-----:R-:W-:-:S01  NOP")))
        assert answered[1] == raw


def test_the_youngest_warp_goes_first_and_keeps_going() -> None:
    """Four warps on one sub-core: the last one runs to its end, then the one before it."""
    result = run(stream(*["NOP"] * 8), warps=16)
    order = [int(warp) for warp in result.log[:, 2] if warp % 4 == 0]
    assert order == [12] * 9 + [8] * 9 + [4] * 9 + [0] * 9


def test_every_cycle_has_a_name() -> None:
    result = run(stream(*[f"LDG.E R{20 + 2 * k}, [R2.64]" for k in range(8)], "FADD R1, R2, R3"), warps=6)
    assert (result.core_reasons.sum(axis=1) == result.cycles).all()
    lives = [1 + int(result.log[result.log[:, 2] == warp][-1, 0]) for warp in range(6)]
    assert result.warp_reasons.sum() == sum(lives)
    assert (result.row_reasons.sum(axis=0) == result.warp_reasons).all()


def test_a_depbar_on_a_scoreboard_of_loads_waits_for_it() -> None:
    code = stream(
        "B------:R-:W1:-:S02  LDS R4, [R2]",
        "B------:R-:W-:-:S04  DEPBAR.LE SB1, 0x0",
        "NOP",
    )
    load, depbar, behind = issues(run(code))[:3]
    assert depbar - load == 2
    assert behind - load == 24


def test_a_depbar_that_counts_loads_is_refused() -> None:
    code = stream("B------:R-:W1:-:S02  LDS R4, [R2]", "B------:R-:W-:-:S04  DEPBAR.LE SB1, 0x1")
    with pytest.raises(CuasmrlError, match="DEPBAR"):
        run(code)
