"""What an issue waited for, read off the log alone, agrees with what the model counted."""

from collections import Counter

import pytest

from cuasmrl.explain.waits.holds import Hold, holds_of, issues
from cuasmrl.gpu.timing import Reason
from cuasmrl.gpu.timing.records import Note
from cuasmrl.schedule import Schedule
from tests.gpu.timing.programs import run, stream
from tests.traced_kernels import traced


def held(*lines: str) -> list[Hold | None]:
    code = stream(*lines)
    return holds_of(run(code).log, Schedule.original(code))


def test_a_stall_count() -> None:
    found = held("B------:R-:W-:-:S05  FADD R1, R8, R9", "FADD R2, R8, R9")
    assert found[0] is None
    assert found[1] == Hold(Reason.STALL, 0, 5)
    assert found[2] is None


def test_a_scoreboard_names_its_producer() -> None:
    code = stream(
        "B------:R-:W0:-:S02  LDS R4, [R2]",
        "B------:R-:W1:-:S02  LDS R5, [R3]",
        "B0-----:R-:W-:-:S01  FADD R6, R4, R9",
    )
    result = run(code)
    hold = holds_of(result.log, Schedule.original(code))[2]
    assert hold == Hold(Reason.SHORT_SCOREBOARD, 0, int(result.log[2, Note.CYCLE]))


def test_the_last_of_two_producers_counts() -> None:
    hold = held(
        "B------:R-:W0:-:S02  LDS R4, [R2]",
        "B------:R-:W0:-:S02  LDG.E R5, [R10]",
        "B0-----:R-:W-:-:S01  FADD R6, R4, R5",
    )[2]
    assert hold is not None
    assert (hold.reason, hold.by) == (Reason.LONG_SCOREBOARD, 1)


def test_sources_that_are_still_read() -> None:
    hold = held("B------:R1:W-:-:S01  STG.E [R2], R4", "NOP", "B-1----:R-:W-:-:S01  FADD R4, R8, R9")[2]
    assert hold is not None
    assert (hold.reason, hold.by) == (Reason.SHORT_SCOREBOARD, 0)


def test_a_tensor_result() -> None:
    found = held(
        "B------:R-:W-:-:S02  HMMA.16816.F32 R16, R4, R8, RZ",
        "B------:R-:W-:-:S01  FADD R20, R17, R9",
    )
    assert found[1] is not None
    assert (found[1].reason, found[1].by) == (Reason.TENSOR_RESULT, 0)


@pytest.mark.parametrize("name", ["softmax", "gemm_leaky_relu"])
def test_the_sums_are_those_of_the_model(name: str) -> None:
    """Whatever is held by results is counted by the model under the same names, up to fetches beside it."""
    kernel = traced(name)
    result = kernel.model.simulate(kernel.original, logged=1_000_000)
    counted: Counter[Reason] = Counter()
    before: dict[tuple[int, int], tuple[int, int]] = {}
    rows = issues(result.log)
    assert len(rows) == result.instructions
    for (cycle, block, warp, place, *_), hold in zip(
        rows.tolist(), holds_of(result.log, kernel.original), strict=True
    ):
        if hold is not None:
            last, predecessor = before[block, warp]
            stall = max(1, kernel.listing.instructions[predecessor].control.stall)
            if hold.reason is not Reason.STALL:
                counted[hold.reason] += max(0, hold.until - last - stall)
        before[block, warp] = cycle, place
    boards = Reason.SHORT_SCOREBOARD, Reason.LONG_SCOREBOARD
    for names in (boards, (Reason.COPY,), (Reason.TENSOR_RESULT,)):
        of_model = sum(int(result.warp_reasons[reason]) for reason in names)
        found = sum(counted[reason] for reason in names)
        assert found == pytest.approx(of_model, rel=0.1, abs=50)
    # A barrier gets what nobody else explains.
    assert counted[Reason.BARRIER] >= 0.95 * result.warp_reasons[Reason.BARRIER]
