"""Latencies: what the numbers say, what they refuse to say, and the table of distances beside them."""

from __future__ import annotations

import pytest

from cuasmrl.bench.latencies import compare_table, table_rows
from cuasmrl.binary.sass import Hazard, distances
from cuasmrl.errors import CuasmrlError
from cuasmrl.gpu.timing.comparison import Disagreement, Pair, closer_code, compare, latency_of
from cuasmrl.gpu.timing.latencies import COLUMNS, Kind, latencies, parse_latencies, shipped_latencies
from cuasmrl.gpu.timing.parameters import Certainty
from cuasmrl.workloads import ARCHS
from tests.gpu.timing.falsified import Falsified, pairs_of
from tests.gpu.timing.programs import stream

RAW, WAW, WAR = Hazard.RAW, Hazard.WAW, Hazard.WAR

KNOWN = {
    (90, RAW, "IMMA.8816.S8.U8", ""): "mined with accumulators of its own kind only",
    (90, RAW, "HFMA2.MMA", "IMAD.HI"): "never mined together; the answer is that of other readers",
    (120, RAW, "IMMA.16816.S8.U8", ""): "mined with accumulators of its own kind only",
    (120, RAW, "IMMA.SP.16832.U8.U8", ""): "mined with accumulators of its own kind only",
}
"""Pairs for which the table is known to answer less, and why; without a consumer, all of them."""


@pytest.mark.parametrize(
    ("arch", "pair", "cycles"),
    [
        # Huerta et al. MICRO 2025, on GA102
        (86, Pair(RAW, "R", "MOV", "data", "MOV", "data"), 4),
        (86, Pair(RAW, "R", "FADD", "data", "FFMA", "data"), 4),
        (86, Pair(RAW, "R", "MOV", "data", "LDG", "address"), 5),
        # Readers of predicates: operands of the pipe, guards, other lanes
        (80, Pair(RAW, "P", "ISETP", "data", "SEL", "data"), 4),
        (80, Pair(RAW, "P", "ISETP", "data", "SEL", "guard"), 13),
        (75, Pair(RAW, "P", "ISETP", "data", "VOTE", "data"), 12),
        (90, Pair(RAW, "P", "LOP3", "data", "VOTE", "data"), 13),
        (90, Pair(RAW, "P", "ISETP", "data", "VOTEU", "data"), 13),
        (90, Pair(RAW, "P", "DSETP", "data", "BRA", "guard"), 14),
        # Halves of wide results and addends
        (80, Pair(RAW, "R", "IMAD.WIDE", "low", "IADD3", "data"), 5),
        (90, Pair(RAW, "R", "IMAD.WIDE", "low", "IADD3", "data"), 3),
        (90, Pair(RAW, "R", "IMAD.WIDE", "high", "IADD3", "data"), 5),
        (90, Pair(RAW, "R", "LEA", "data", "IMAD.WIDE", "high"), 3),
        (120, Pair(RAW, "R", "IADD.64", "data", "ISETP", "data"), 6),
        (120, Pair(RAW, "R", "IADD.64", "data", "IADD.64", "data"), 4),
        # Products by shape: results, accumulators, sources that are overwritten
        (80, Pair(RAW, "R", "HMMA.16816.F32", "data", "HMMA.16816.F32", "accumulator"), 24),
        (80, Pair(RAW, "R", "HMMA.1688.F32", "data", "FADD", "data"), 16),
        (80, Pair(RAW, "R", "HMMA.1688.F32.TF32", "data", "FADD", "data"), 24),
        (120, Pair(RAW, "R", "HMMA.16816.F32", "data", "FADD", "data"), 28),
        (80, Pair(WAW, "R", "HMMA.16816.F32", "data", "FADD", "data"), 20),
        (80, Pair(WAR, "R", "HMMA.16816.F32", "data", "*alu", ""), 7),
        (80, Pair(WAR, "R", "HMMA.16816.F32", "data", "IMAD.WIDE", "low"), 7),
        (80, Pair(WAR, "R", "IMMA.16832.S4.S4", "data", "*alu", ""), 1),
        (90, Pair(WAR, "UR", "UIADD3", "data", "UMOV", ""), 3),
        (90, Pair(WAR, "UR", "UIADD3", "data", "*uniform", ""), 3),
        # The uniform datapath
        (90, Pair(RAW, "UR", "UIADD3", "data", "IADD3", "data"), 6),
        (90, Pair(RAW, "UR", "R2UR", "data", "UIADD3", "data"), 13),
        (80, Pair(RAW, "UP", "UISETP", "data", "UIADD3", "guard"), 11),
        # An older result that comes later: FP64 takes ten cycles, others eight
        (90, Pair(WAW, "R", "DADD", "data", "IADD3", "data"), 3),
        (90, Pair(WAW, "R", "IADD3", "data", "DADD", "data"), 1),
    ],
)
def test_what_the_chips_need(arch: int, pair: Pair, cycles: int) -> None:
    assert latency_of(latencies(arch), pair) == cycles


@pytest.mark.parametrize(
    "pair",
    [
        Pair(RAW, "R", "NEWOP", "data", "IADD3", "data"),
        Pair(RAW, "R", "IADD3", "data", "NEWOP", "data"),
        Pair(RAW, "R", "LDG", "data", "IADD3", "data"),
        Pair(RAW, "R", "IADD3", "data", "IADD3", "guard"),
        Pair(WAW, "R", "HMMA.16816.F32", "data", "LDG", "data"),
        Pair(WAR, "R", "HMMA.16816.F32", "data", "*late", ""),
        Pair(WAR, "R", "HMMA.16816.F32", "data", "IMAD", "late"),
        Pair(WAR, "R", "IADD3", "data", "*alu", ""),
        Pair(WAR, "UR", "UIADD3", "data", "USHF", ""),
        Pair(Hazard.SPACING, "", "IADD3", "", "*", ""),
    ],
)
def test_nothing_is_claimed_without_a_number(pair: Pair) -> None:
    assert latency_of(latencies(86), pair) is None


def test_a_chip_without_numbers_makes_no_claim() -> None:
    assert not latencies(103)
    assert latencies(103).read_after("R", "IADD3", "data", "IADD3", "data") is None


def test_every_number_has_a_source() -> None:
    assert {arch for row in shipped_latencies() for arch in row.chips} == set(ARCHS)
    for row in shipped_latencies():
        assert row.number.unit == "cycles"
        if row.number.certainty is Certainty.MINED:
            assert "mined by class" in row.number.source
        if row.number.certainty is Certainty.ASSUMED:
            assert row.number.low < row.number.high
    assert {row.number.certainty for row in shipped_latencies()} >= {Certainty.MEASURED, Certainty.MINED}


@pytest.mark.parametrize(
    ("row", "complaint"),
    [
        ("80,result,R,alu,,4,cycles,5,6,mined,a book", "does not lie"),
        ("80,result,R,alu,,4,cycles,4,4,guessed,a book", "not understood"),
        ("80,sometimes,R,alu,,4,cycles,4,4,mined,a book", "not understood"),
        ("80,result,R,alu,,4,cycles,4,4,mined,", "lacks"),
        ("80,result,R,fma alu,,4,cycles,4,4,mined,a book\n80 90,result,R,alu,,4,cycles,4,4,mined,x", "twice"),
    ],
)
def test_a_file_that_is_wrong_is_refused(row: str, complaint: str) -> None:
    with pytest.raises(CuasmrlError, match=complaint):
        parse_latencies(f"{','.join(COLUMNS)}\n{row}\n", "a file")
    with pytest.raises(CuasmrlError, match="columns"):
        parse_latencies(row, "a file")


def test_lower_ends_count() -> None:
    """On GA102 Huerta et al. measured 5 for HADD2; ptxas leaves 4, and is not contradicted."""
    (row,) = [
        row for row in shipped_latencies() if 86 in row.chips and row.first == row.second == ("half",)
    ]  # fmt: skip
    assert (row.kind, row.number.value, row.least) == (Kind.FORWARD, 5, 4)
    assert latencies(86).read_after("R", "HADD2", "data", "HADD2", "data") == 4


# ---- beside the table of distances ----


def reason(found: Disagreement) -> str | None:
    pair = found.pair
    for consumer in (pair.consumer, ""):
        if (why := KNOWN.get((found.arch, pair.hazard, pair.producer, consumer))) is not None:
            return why
    return None


def test_the_table_answers_less_only_where_it_is_known_to() -> None:
    comparisons = compare_table()
    assert sum(one.claimed for one in comparisons) > 10_000
    assert [str(found) for one in comparisons for found in one.below if reason(found) is None] == []


def test_no_row_of_the_table_was_seen_closer() -> None:
    """Every pair that was mined, the closest of its kind."""
    assert [str(found) for found in closer_code(table_rows())] == []


def war_pair() -> Pair:
    """As the table names the overwriter of a source."""
    (pair,) = pairs_of(*stream("HMMA.16816.F32 R4, R8, R12, R4", "MOV R9, R20", arch=80).instructions[:2])
    return pair


@pytest.mark.parametrize(
    ("arch", "pair", "answer"),
    [
        (80, Pair(RAW, "P", "ISETP", "data", "VOTE", "data"), 4),
        (80, war_pair(), 1),
        (120, Pair(RAW, "R", "IADD.64", "data", "ISETP", "data"), 4),
    ],
)
def test_a_falsified_answer_is_listed(arch: int, pair: Pair, answer: int) -> None:
    before = {found.pair for one in compare(distances(arch), table_rows()) for found in one.below}
    after = compare(Falsified(arch, {pair: answer}), table_rows())
    (found,) = [found for one in after for found in one.below if found.pair not in before]
    assert (found.pair, found.cycles, found.latency) == (pair, answer, latency_of(latencies(arch), pair))
    assert found.as_dict()["latency"] == found.latency
    assert f"{answer} < {found.latency}" in str(found)
