"""An error in the table of distances: the board believes it, the sanitizer does not."""

from __future__ import annotations

import random
import re
from functools import lru_cache

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from cuasmrl import workloads
from cuasmrl.binary.sass import Hazard, Listing, distances
from cuasmrl.gpu.chips import chip
from cuasmrl.gpu.timing import Finding, Model, hazards_of
from cuasmrl.gpu.timing.comparison import Pair, latency_of
from cuasmrl.gpu.timing.latencies import latencies
from cuasmrl.schedule import Board, Schedule
from cuasmrl.workloads.tracing import trace_workload
from tests.gpu.timing.falsified import claimed_pairs, pairs_of, retimed
from tests.gpu.timing.programs import model_of, stream

CHIPS = {80: "a100", 86: "a6000", 89: "rtx4090", 90: "h100"}
CHAIN = 3
FINDINGS = 40
"""Falsified rows for each real kernel."""
KERNELS = [("softmax", "w4", "a100"), ("gemm_leaky_relu", "m32n32k32_w2_s2", "a6000"),
           ("cross_entropy", "v1024_w4", "h100")]  # fmt: skip

PRODUCERS = {
    "R1": (
        "IADD3 R1, R2, R3, R4", "LOP3.LUT R1, R2, R3, R4, 0x96, !PT", "SHF.L.U32 R1, R2, 0x2, RZ",
        "MOV R1, R2", "PRMT R1, R2, 0x5410, R3", "FADD R1, R2, R3", "FFMA R1, R2, R3, R4",
        "IMAD R1, R2, R3, R4", "HADD2 R1, R2, R3", "HFMA2 R1, R2, R3, R4",
        "FMNMX R1, R2, R3, !PT", "SEL R1, R2, R3, P6",
    ),
    "P1": (
        "ISETP.NE.AND P1, PT, R2, RZ, PT", "FSETP.GT.AND P1, PT, R2, R3, PT",
        "HSETP2.GT.AND P1, PT, R2, R3, PT", "PLOP3.LUT P1, PT, P2, P3, PT, 0x80, 0x0",
        "LOP3.LUT P1, RZ, R2, R3, RZ, 0xc0, !PT",
    ),
    "UR4": (
        "UIADD3 UR4, UR5, UR6, URZ", "ULOP3.LUT UR4, UR5, UR6, URZ, 0xc0, !UPT",
        "USHF.L.U32 UR4, UR5, 0x2, URZ",
    ),
    "UP1": ("UISETP.NE.AND UP1, UPT, UR4, URZ, UPT",),
}  # fmt: skip
"""By the register that they write."""
READERS = {
    "R1": (
        "IADD3 R8, R1, R9, RZ", "FFMA R8, R1, R9, R10", "IMAD R8, R9, R1, R10", "HFMA2 R8, R1, R9, R10",
        "LDS R8, [R1]", "STS [R9], R1", "SHFL.IDX PT, R8, R1, R9, R10", "MUFU.RCP R8, R1", "POPC R8, R1",
        "HMMA.16816.F32 R12, R16, R20, R12", "ISETP.NE.AND P0, PT, R1, RZ, PT",
    ),
    "P1": (
        "VOTE.ANY R8, PT, P1", "SEL R8, R9, R10, P1", "@P1 IADD3 R8, R9, R10, RZ", "@!P1 FADD R8, R9, R10",
        "@P1 LDS R8, [R9]", "PLOP3.LUT P4, PT, P1, P5, PT, 0x80, 0x0",
    ),
    "UR4": ("UIADD3 UR8, UR4, UR9, URZ", "IADD3 R8, R9, UR4, RZ", "FADD R8, R9, UR4", "MUFU.RCP R8, UR4"),
    "UP1": ("USEL UR8, UR9, UR10, UP1", "@UP1 UIADD3 UR8, UR9, UR10, URZ"),
}  # fmt: skip


def alone(first: str, second: str, cycles: int, arch: int) -> Listing:
    """Two instructions so many cycles apart; nobody waits for what the second may announce.

    A chain in front of them keeps them away from the start of the block, where units may still be busy.
    """
    lines, gap = [*["B------:R-:W-:-:S05  FADD R2, R2, R2"] * CHAIN], cycles
    while gap > 0:
        stall = min(gap, 11)
        lines.append(f"B------:R-:W-:-:S{stall:02}  {'NOP' if len(lines) > CHAIN else first}")
        gap -= stall
    announced = re.search(r"\b(LDS|STS|SHFL|MUFU|POPC)\b", second)
    barriers = "R1:W0" if announced else "R-:W-"
    lines.append(f"B------:{barriers}:-:S02  {second}")
    return stream(*lines, "B------:R-:W-:-:S05  NOP", arch=arch)


def found_in(code: Listing, schedule: Schedule, arch: int) -> tuple[Finding, ...]:
    return hazards_of(model_of(code, CHIPS[arch]), schedule)


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_a_row_that_says_less_is_found_on_a_replay(data: st.DataObject) -> None:
    """Classes of producers and readers are drawn, the answer for the pair is falsified, the board retimes."""
    arch = data.draw(st.sampled_from(sorted(CHIPS)))
    register = data.draw(st.sampled_from(sorted(PRODUCERS)))
    first, second = (
        data.draw(st.sampled_from(PRODUCERS[register])),
        data.draw(st.sampled_from(READERS[register])),
    )
    if register == "R1" and second.startswith("HMMA"):
        first = first.replace("R1,", "R16,")
    probe = alone(first, second, 1, arch).instructions
    (pair,) = [pair for pair in pairs_of(*probe[CHAIN : CHAIN + 2]) if pair.hazard is Hazard.RAW]
    latency, answer = latency_of(latencies(arch), pair), distances(arch).answer(*pair)
    assume(latency is not None and latency >= 4 and answer is not None)
    assert latency is not None
    code = alone(first, second, max(latency, answer or 0), arch)
    assert found_in(code, retimed(code, {}), arch) == ()
    schedule = retimed(code, {pair: data.draw(st.integers(2, latency - 1))})
    apart = sum(control.stall for control in schedule.controls[CHAIN : len(code.instructions) - 3])
    # Other rules of the board may keep them apart all the same.
    assume(apart < latency)
    (finding,) = found_in(code, schedule, arch)
    assert (finding.hazard, finding.first.index, finding.missing) == (Hazard.RAW, CHAIN, latency - apart)


def test_a_vote_too_early() -> None:
    """A table that gives a vote what SEL needs."""
    code = alone("ISETP.NE.AND P1, PT, R2, RZ, PT", "VOTE.ANY R6, PT, P1", 13, 80)
    pair = Pair(Hazard.RAW, "P", "ISETP", "data", "VOTE", "data")
    assert found_in(code, retimed(code, {}), 80) == ()
    (finding,) = found_in(code, retimed(code, {pair: 4}), 80)
    assert (finding.hazard, finding.register, finding.missing) == (Hazard.RAW, "P1", 9)


def test_a_source_of_a_product_overwritten_too_early() -> None:
    """A table that lets everybody overwrite as soon as LDSM may."""
    code = alone("HMMA.16816.F32 R4, R8, R12, R4", "MOV R9, R20", 7, 80)
    (pair,) = pairs_of(*code.instructions[CHAIN : CHAIN + 2])
    assert pair.hazard is Hazard.WAR
    assert found_in(code, retimed(code, {}), 80) == ()
    (finding,) = found_in(code, retimed(code, {pair: 1}), 80)
    assert (finding.hazard, finding.register) == (Hazard.WAR, "R9")
    assert finding.missing == 7 - (finding.cycle - finding.first_cycle) > 0


def test_a_wide_sum_compared_too_early() -> None:
    code = alone("IADD.64 R10, R6, R8", "ISETP.GT.S64.AND P0, PT, R10, R16, PT", 6, 120)
    pair = Pair(Hazard.RAW, "R", "IADD.64", "data", "ISETP", "data")
    model = model_of(code, "rtx5090")
    assert hazards_of(model, retimed(code, {})) == ()
    (finding,) = hazards_of(model, retimed(code, {pair: 4}))
    assert (finding.hazard, finding.missing) == (Hazard.RAW, 2)


# ---- real kernels ----


@lru_cache
def subject(name: str, config: str, key: str) -> tuple[Schedule, Model]:
    workload = workloads.get(name)
    kernel = trace_workload(workload, workload.config(config), chip(key))
    return kernel.original, kernel.model


@pytest.mark.parametrize(("name", "config", "key"), KERNELS)
def test_falsified_rows_in_real_kernels(name: str, config: str, key: str) -> None:
    """One lie at a time; what is found is the pair that the lie is about, and nothing else."""
    original, model = subject(name, config, key)
    listing, rng = original.listing, random.Random(name)
    assert hazards_of(model, retimed(listing, {}), blocks=1) == ()
    caught = 0
    for pair, latency in rng.sample(claims := sorted(claimed_pairs(listing)), min(FINDINGS, len(claims))):
        for finding in hazards_of(model, retimed(listing, {pair: rng.randrange(1, latency)}), blocks=1):
            assert pair in pairs_of(finding.first, finding.second)
            caught += 1
    assert caught


@pytest.mark.parametrize(("name", "config", "key"), KERNELS)
def test_the_true_table_makes_no_hazard(name: str, config: str, key: str) -> None:
    original, model = subject(name, config, key)
    rng, board = random.Random(key), Board(original.listing)
    for _ in range(3):
        for _ in range(100):
            board.swap(rng.choice(board.legal_swaps()))
        assert [str(f) for f in hazards_of(model, board.schedule(), blocks=1)] == []
