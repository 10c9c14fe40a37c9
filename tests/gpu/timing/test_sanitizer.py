"""The sanitizer: streams computed by hand, planted hazards against an oracle, compiler output."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from functools import lru_cache

import numpy as np
import pytest

from cuasmrl import workloads
from cuasmrl.binary.sass import Hazard, Listing
from cuasmrl.errors import CuasmrlError
from cuasmrl.gpu.chips import chip
from cuasmrl.gpu.timing import Finding, Model, hazards_of, sanitize
from cuasmrl.gpu.timing.latencies import latencies
from cuasmrl.gpu.timing.records import Note
from cuasmrl.schedule import Schedule
from cuasmrl.workloads.tracing import trace_workload
from tests.assembly import listing
from tests.gpu.timing.hazard_oracle import matters
from tests.gpu.timing.plants import PLANTS
from tests.gpu.timing.programs import model_of, run, stream

KERNELS = [("softmax", "w4", "a100"), ("gemm_leaky_relu", "m32n32k32_w2_s2", "a100"),
           ("flash_attention", "m32n32_w2_s2", "h100")]  # fmt: skip
PLANTED = 4
LOGGED = 1500


def found(code: Listing, warps: int = 1) -> list[Finding]:
    return list(sanitize(Schedule.original(code), run(code, warps=warps)))


def brief(finding: Finding) -> tuple[Hazard, int, int, str, int]:
    return finding.hazard, finding.first.index, finding.second.index, finding.register, finding.missing


def briefs(*lines: str) -> list[tuple[Hazard, int, int, str, int]]:
    return [brief(finding) for finding in found(stream(*lines))]


# ---- fixed latencies ----


@pytest.mark.parametrize(("stall", "missing"), [(1, 3), (2, 2), (3, 1), (4, 0), (5, 0)])
def test_a_sum_is_there_four_cycles_later(stall: int, missing: int) -> None:
    """Huerta et al., listing 2: with fewer than 4 cycles FADD feeds FFMA a stale value."""
    lines = f"B------:R-:W-:-:S{stall:02}  FADD R1, R2, R3", "FFMA R5, R1, R1, R1"
    assert briefs(*lines) == ([(Hazard.RAW, 0, 1, "R1", missing)] if missing else [])


def test_a_finding_says_who_when_and_how_much() -> None:
    (finding,) = found(stream("FADD R1, R2, R3", "NOP", "FADD R5, R1, RZ"))
    start = finding.first_cycle
    assert (finding.cycle, finding.arrival, finding.block, finding.warp) == (start + 2, start + 4, 0, 0)
    assert str(finding) == (
        f"FADD R5, R1, RZ at 0x0020 reads R1 in cycle {start + 2} (block 0, warp 0), 2 cycles before the "
        f"result of FADD R1, R2, R3 at 0x0000 is there in cycle {start + 4}; it happened once."
    )


def test_all_warps_are_followed_and_counted_together() -> None:
    (finding,) = found(stream("FADD R1, R2, R3", "FADD R5, R1, RZ"), warps=6)
    assert finding.times == 6


def test_a_guard_needs_longer_than_an_operand() -> None:
    setter = "B------:R-:W-:-:S{:02}  ISETP.NE.AND P0, PT, R2, RZ, PT"
    assert not briefs(setter.format(4), "SEL R4, R2, R3, P0")
    assert briefs(setter.format(4), "@P0 IADD3 R4, R2, R3, RZ") == [(Hazard.RAW, 0, 1, "P0", 9)]


def test_what_never_executes_neither_reads_nor_writes() -> None:
    assert not briefs("FADD R1, R2, R3", "@!PT FADD R5, R1, RZ")
    assert not briefs("B------:R-:W-:-:S04  FADD R1, R2, R3", "@!PT FADD R1, R2, R3", "FADD R5, R1, RZ")
    assert not briefs("@!UPT UIADD3 URZ, URZ, URZ, URZ", "UIADD3 UR4, URZ, URZ, URZ")


def test_the_zero_register_is_never_stale() -> None:
    assert not briefs("FADD RZ, R2, R3", "FADD R5, RZ, RZ", "ISETP.NE.AND PT, PT, R2, RZ, PT")


def test_opposite_guards_exclude_each_other() -> None:
    assert not briefs("@P0 FADD R1, R2, R3", "@!P0 FADD R5, R1, RZ")
    assert briefs("@P0 FADD R1, R2, R3", "@P0 FADD R5, R1, RZ") == [(Hazard.RAW, 0, 1, "R1", 3)]


def test_opposite_guards_that_are_written_between_do_not() -> None:
    lines = "@P0 FADD R1, R2, R3", "ISETP.NE.AND P0, PT, R2, RZ, PT", "@!P0 FADD R5, R1, RZ"
    # Their values differ, so a distance that the listing has is believed: only the guard itself is stale.
    assert [pair[3] for pair in briefs(*lines)] == ["P0"]


def test_a_conditional_result_hides_no_older_one() -> None:
    lines = "FADD R1, R2, R3", "@P0 FADD R1, R2, R4", "FADD R5, R1, RZ"
    raw = [pair for pair in briefs(*lines) if pair[0] is Hazard.RAW]
    assert raw == [(Hazard.RAW, 0, 2, "R1", 2), (Hazard.RAW, 1, 2, "R1", 3)]


def test_a_listing_that_is_wrong_itself_is_found() -> None:
    """MOV feeds LDG after 5 cycles on GA102 (Huerta et al.), whatever the listing has."""
    for stall, missing in ((5, 0), (4, 1), (3, 2)):
        move = f"B------:R-:W-:-:S{stall:02}  MOV R2, R6"
        lines = move, "B------:R-:W0:-:S02  LDG.E R4, [R2]", "B0-----:R-:W-:-:S01 NOP"
        assert briefs(*lines) == ([(Hazard.RAW, 0, 1, "R2", missing)] if missing else [])


def test_an_instruction_without_numbers_makes_no_claim() -> None:
    """Nothing says how long WARPSYNC holds its source, or when BMOV has one."""
    assert not briefs("WARPSYNC R4", "MOV R4, R5")
    assert latencies(86).read_after("R", "BMOV", "data", "IADD3", "data") is None


def shortened(code: Listing, stall: int) -> list[tuple[Hazard, int, int, str, int]]:
    """The first instruction stalls less than in the listing."""
    original = Schedule.original(code)
    # Hardware does not obey a stall above 11 unless the warp yields.
    first = replace(original.controls[0], stall=stall, yield_=stall > 11)
    schedule = original.replaced(controls=(first, *original.controls[1:]))
    return [brief(finding) for finding in hazards_of(model_of(code), schedule)]


def test_a_schedule_may_not_come_closer_than_its_listing() -> None:
    code = stream("B------:R-:W-:-:S05  MOV R2, R6", "B------:R-:W0:-:S02  LDG.E R4, [R2]",
                  "B0-----:R-:W-:-:S01 NOP")  # fmt: skip
    assert not shortened(code, 5)
    assert shortened(code, 4) == [(Hazard.RAW, 0, 1, "R2", 1)]


@pytest.mark.parametrize(
    ("first", "stall", "second", "expected"),
    [
        ("UIADD3 UR4, UR5, UR6, URZ", 6, "LEA R2, R3, UR4, 0x2", (Hazard.RAW, 0, 1, "UR4", 1)),
        ("UISETP.NE.AND UP0, UPT, UR4, URZ, UPT", 4, "USEL UR5, UR6, UR7, UP0", (Hazard.RAW, 0, 1, "UP0", 1)),
        ("ISETP.NE.AND P1, PT, R2, RZ, PT", 13, "VOTE.ANY R6, PT, P1", (Hazard.RAW, 0, 1, "P1", 1)),
        ("HMMA.16816.F32 R4, R8, R12, R4", 7, "MOV R9, R20", (Hazard.WAR, 0, 1, "R9", 1)),
        ("IMAD.WIDE R4, R6, R7, R8", 6, "IMAD.WIDE R10, R6, R7, R4", (Hazard.RAW, 0, 1, "R4", 1)),
    ],
)
def test_distances_of_all_register_files_and_hazards(
    first: str, stall: int, second: str, expected: tuple[Hazard, int, int, str, int]
) -> None:
    """One cycle less than the listing has, which is what the chip needs."""
    code = stream(f"B------:R-:W-:-:S{stall:02}  {first}", second)
    assert not shortened(code, stall)
    assert shortened(code, stall - 1) == [expected]


def test_a_short_stall_that_a_wait_hides_does_no_harm() -> None:
    """LDS takes 24 cycles: who waits for it issues late enough, whatever the stall counts say."""
    code = stream("B------:R-:W0:-:S02  LDS R4, [R2]", "B------:R-:W-:-:S05  FADD R1, R2, R3",
                  "B0-----:R-:W-:-:S01  FADD R5, R1, R4")  # fmt: skip
    original = Schedule.original(code)
    controls = [replace(c, stall=1) if k == 1 else c for k, c in enumerate(original.controls)]
    assert not hazards_of(model_of(code), original.replaced(controls=tuple(controls)))


# ---- variable latencies ----


def test_a_load_that_nobody_waits_for() -> None:
    (finding,) = found(stream("B------:R-:W0:-:S02  LDS R4, [R2]", "IADD3 R5, R4, R4, RZ"))
    assert brief(finding) == (Hazard.RAW, 0, 1, "R4", 24 - 2)
    assert finding.arrival == finding.first_cycle + 24


@pytest.mark.parametrize(("stall", "missing"), [(1, 23), (2, 0)])
def test_a_scoreboard_that_is_not_seen_yet(stall: int, missing: int) -> None:
    lines = f"B------:R-:W0:-:S{stall:02}  LDS R4, [R2]", "B0-----:R-:W-:-:S01  IADD3 R5, R4, R4, RZ"
    assert briefs(*lines) == ([(Hazard.RAW, 0, 1, "R4", missing)] if missing else [])


def test_every_register_of_a_wide_result() -> None:
    load = "B------:R-:W0:-:S02  LDS.128 R4, [R2]"
    assert briefs(load, "IADD3 R9, R7, R3, RZ")[0][3] == "R7"
    assert not briefs(load, "IADD3 R9, R8, R3, RZ")


def test_a_result_that_would_overwrite_a_newer_one() -> None:
    lines = "B------:R-:W0:-:S02  LDS R4, [R2]", "MOV R4, R8", "B0-----:R-:W-:-:S01  FADD R5, R4, R4"
    assert briefs(*lines)[0] == (Hazard.WAW, 0, 1, "R4", 22)


def test_loads_from_global_memory_do_not_come_back_in_order() -> None:
    """A wide load takes 38 cycles; the narrow one behind it 32, and enters 4 cycles later: it overtakes."""
    wide, narrow = "B------:R-:W0:-:S02  LDG.E.128 R4, [R2.64]", "B------:R-:W1:-:S02  LDG.E R12, [R2.64]"
    reader = "B-1----:R-:W-:-:S01  IADD3 R20, R4, R4, RZ"
    assert briefs(wide, narrow, reader) == [(Hazard.RAW, 0, 2, "R4", 2)]
    assert briefs(wide, narrow, "IADD3 R20, R4, R4, RZ") == [(Hazard.RAW, 0, 2, "R4", 38 - 4)]


def test_loads_from_shared_memory_come_back_in_order() -> None:
    wide, narrow = "B------:R-:W0:-:S02  LDS.128 R4, [R2]", "B------:R-:W1:-:S02  LDS R12, [R2]"
    reader = "B-1----:R-:W-:-:S01  IADD3 R20, R4, R4, RZ"
    assert not briefs(wide, narrow, reader)
    assert not briefs(wide, narrow.replace("R12", "R4"), reader)
    # Here nobody has waited for the narrow one.
    assert briefs(wide, narrow, "IADD3 R20, R4, R4, RZ")


def test_a_source_that_is_overwritten_before_it_is_read() -> None:
    """STS reads its sources until 12 cycles after issue (Huerta et al., table 2)."""
    store = "B------:R0:W-:-:S01  STS [R2], R4"
    assert briefs(store, "MOV R4, R8") == [(Hazard.WAR, 0, 1, "R4", 11)]
    assert briefs(store, "MOV R2, R8") == [(Hazard.WAR, 0, 1, "R2", 11)]
    assert not briefs(store.replace("S01", "S02"), "B0-----:R-:W-:-:S01  MOV R4, R8")
    assert not briefs(store.replace("S01", "S11"), "NOP", "MOV R4, R8")


def test_memory_instructions_read_in_order() -> None:
    store = "B------:R0:W-:-:S01  STS [R2], R4"
    assert not briefs(store, "B------:R-:W1:-:S02  LDS R4, [R3]", "B-1----:R-:W-:-:S01  NOP")
    load = "B------:R0:W1:-:S02  LDG.E R8, [R6]"
    assert not briefs(store, load, "B01----:R-:W-:-:S01  MOV R4, R9")


def test_a_unit_overwrites_its_own_source() -> None:
    pairs = briefs("B------:R-:W0:-:S01  MUFU.RCP R4, R4", "MOV R4, R8", "B0-----:R-:W-:-:S01  NOP")
    assert [pair[0] for pair in pairs] == [Hazard.WAR, Hazard.WAW]


def test_predicates_of_loads_count_too() -> None:
    shuffle = "B------:R-:W0:-:S02  SHFL.IDX P0, R12, R13, R14, R15"
    assert briefs(shuffle, "SEL R4, R2, R3, P0")[0][3] == "P0"


def test_a_tensor_product_holds_its_reader_up() -> None:
    assert not [
        pair for pair in briefs("HMMA.16816.F32 R4, R8, R12, R4", "FADD R20, R4, R5") if pair[0] is Hazard.RAW
    ]


# ---- the log ----


def test_lanes_that_take_over_have_their_own_registers() -> None:
    """The else branch reads what the then branch, executed by other lanes just before, is about to write."""
    code = listing("""
        .L_top:
        B------:R-:W-:-:S05  @P0 BRA `(.L_else)
        B------:R-:W0:-:S02  LDS R4, [R2]
        B------:R-:W-:-:S05  BRA `(.L_end)
        .L_else:
        B------:R-:W-:-:S05  FADD R5, R4, R4
        .L_end:
        B------:R-:W-:-:S05  @P1 BRA `(.L_top)
        B0-----:R-:W-:-:S05  EXIT
    """)

    def briefs_along(*places: int) -> list[tuple[Hazard, int, int, str, int]]:
        """One issue every 5 cycles; the load takes 24."""
        rows = [(5 * k, 0, 0, p, 5 * k + (24 if p == 1 else 0), 5 * k, 0) for k, p in enumerate(places)]
        result = replace(run(stream("NOP")), log=np.array([*rows, (-1,) * Note.WIDTH]))
        return [brief(finding) for finding in sanitize(Schedule.original(code), result)]

    assert not briefs_along(0, 1, 2, 3, 4, 5)
    assert briefs_along(0, 1, 2, 4, 0, 3, 4, 5) == [(Hazard.RAW, 1, 3, "R4", 4)]


def test_a_part_of_the_log_will_do() -> None:
    code = stream("FADD R1, R2, R3", "FADD R5, R1, RZ", "FADD R6, R5, RZ")
    assert len(hazards_of(model_of(code), Schedule.original(code))) == 2
    assert len(hazards_of(model_of(code), Schedule.original(code), most=2)) == 1


def test_a_replay_without_times_is_refused() -> None:
    code = stream("NOP")
    result = model_of(code).simulate(Schedule.original(code))
    with pytest.raises(CuasmrlError, match="kept no times"):
        sanitize(Schedule.original(code), result)


# ---- real kernels ----


@lru_cache
def subject(name: str, config: str, key: str) -> tuple[Schedule, Model]:
    workload = workloads.get(name)
    kernel = trace_workload(workload, workload.config(config), chip(key))
    return kernel.original, kernel.model


@pytest.mark.parametrize(("name", "config", "key"), KERNELS)
def test_compilers_leave_no_hazard(name: str, config: str, key: str) -> None:
    schedule, model = subject(name, config, key)
    assert hazards_of(model, schedule, blocks=2) == ()


@pytest.mark.parametrize(("name", "config", "key"), KERNELS)
def test_planted_hazards_are_found_and_nothing_else(name: str, config: str, key: str) -> None:
    """Some matter in time and some are hidden by other waits; only the former are findings."""
    original, model = subject(name, config, key)
    rng = random.Random(name)
    outcomes = Counter(agrees(model, plant(original, rng)) for plant in PLANTS for _ in range(PLANTED))
    assert outcomes[True]
    assert outcomes[False]


def agrees(model: Model, schedule: Schedule) -> bool:
    """Finds exactly what matters in the time of this replay; says whether anything does."""
    result = model.simulate(schedule, blocks=1, logged=LOGGED)
    wanted = {pair: (len(m.rows), m.missing) for pair, m in matters(schedule, result).items()}
    assert wanted == {
        (f.hazard, f.first.index, f.second.index): (f.times, f.missing) for f in sanitize(schedule, result)
    }
    return bool(wanted)
