"""Slack of instructions: by hand, beside a plain reading of the log, and where the log ends early."""

from collections import defaultdict

import numpy as np
import pytest

from cuasmrl.binary.sass import Hazard, Order, distances
from cuasmrl.gpu.timing import Reason, Result, Slack, readers_of, slack_of
from cuasmrl.gpu.timing.records import Note
from cuasmrl.schedule import Schedule, control_flow
from tests.gpu.timing.programs import model_of, stream
from tests.traced_kernels import rescheduled, traced


def slack_by_hand(*lines: str) -> Slack:
    model = model_of(stream(*lines))
    schedule = Schedule.original(model.listing)
    return slack_of(schedule, model.simulate(schedule, logged=100))


def test_a_fixed_latency() -> None:
    """FADD needs 4 cycles and gets 10; the other has nobody to wait for but the end of the block."""
    found = slack_by_hand(
        "B------:R-:W-:-:S01  FADD R4, R5, R6",
        "B------:R-:W-:-:S09  FADD R8, R5, R6",
        "B------:R-:W-:-:S04  FADD R9, R4, R6",
    )
    assert found.least.tolist() == [6, 13, 4, 0]
    assert found.mean.tolist() == [6, 13, 4, 0]
    assert found.first.tolist() == [0, 1, 10, 14]
    assert found.offset.tolist() == [0, 1, 10, 14]
    assert found.issues.tolist() == [1, 1, 1, 1]


def test_the_first_reader_counts() -> None:
    found = slack_by_hand(
        "B------:R-:W-:-:S07  FADD R4, R5, R6",
        "B------:R-:W-:-:S04  FADD R9, R4, R6",
        "B------:R-:W-:-:S04  FADD R10, R4, R6",
    )
    assert found.least[0] == 3


def test_a_result_that_is_overwritten_is_not_read_any_more() -> None:
    found = slack_by_hand(
        "B------:R-:W-:-:S05  FADD R4, R5, R6",
        "B------:R-:W-:-:S06  FADD R4, R7, R6",
        "B------:R-:W-:-:S04  FADD R9, R4, R6",
    )
    assert found.least.tolist() == [15, 2, 4, 0]


def test_a_conditional_writer_may_leave_the_old_value() -> None:
    found = slack_by_hand(
        "B------:R-:W-:-:S05  FADD R4, R5, R6",
        "B------:R-:W-:-:S06  @P0 FADD R4, R7, R6",
        "B------:R-:W-:-:S04  FADD R9, R4, R6",
    )
    assert found.least.tolist() == [7, 2, 4, 0]


def test_a_load() -> None:
    """24 cycles on this chip: one is awaited at once, the other's reader comes late."""
    found = slack_by_hand(
        "B------:R-:W0:-:S02  LDS R4, [R2]",
        "B------:R-:W1:-:S02  LDS R5, [R2]",
        "B0-----:R-:W-:Y:S14  FADD R8, R4, R4",
        "B-1----:R-:W-:-:S04  FADD R9, R5, R5",
    )
    assert found.first.tolist() == [0, 2, 24, 38, 42]
    # The second is accepted four cycles behind the first.
    assert found.least.tolist() == [0, 10, 18, 4, 0]


def test_a_barrier_is_waited_for_by_the_next_access() -> None:
    found = slack_by_hand(
        "B------:R-:W-:-:S05  BAR.SYNC.DEFER_BLOCKING 0x0",
        "B------:R-:W-:-:S09  FADD R4, R5, R6",
        "B------:R-:W0:-:S02  LDS R8, [R2]",
        "B------:R-:W-:Y:S15  NOP",
    )
    assert found.least[0] == 9


def plain_slack(schedule: Schedule, result: Result) -> dict[int, list[int]]:
    """The same by reading the log with dictionaries; copies and synchronisation left out."""
    code, table = schedule.listing.instructions, distances(schedule.listing.kernel.arch)
    lasts = {block.end - 1 for block in control_flow(schedule.listing)}
    by_warp = defaultdict(list)
    for note in result.log:
        by_warp[note[Note.BLOCK], note[Note.WARP]].append([int(n) for n in note])
    found: dict[int, list[int]] = defaultdict(list)
    for notes in by_warp.values():
        slack = [1 << 60] * len(notes)
        writers: dict[int, list[tuple[int, str]]] = defaultdict(list)
        begin = 0
        for row, note in enumerate(notes):
            reader = code[schedule.order[note[Note.POSITION]]]
            for use in () if reader.never_executes else reader.uses:
                for earlier, role in writers[use.register]:
                    producer = code[schedule.order[notes[earlier][Note.POSITION]]]
                    need = table.required(Hazard.RAW, producer, reader, use.register, role, use.role)
                    unknown = 96 if producer.opcode == "HMMA" else 32
                    cycles = 0 if producer.is_variable else unknown if need is None else need
                    there = max(notes[earlier][Note.COMPLETE], notes[earlier][Note.CYCLE] + cycles)
                    slack[earlier] = min(slack[earlier], max(0, note[Note.CYCLE] - there))
            for access in () if reader.never_executes else reader.defs:
                if not reader.is_conditional:
                    writers[access.register].clear()
                writers[access.register].append((row, access.role))
            if note[Note.POSITION] in lasts:
                for k in range(begin, row + 1):
                    slack[k] = min(slack[k], note[Note.CYCLE] - notes[k][Note.CYCLE])
                begin = row + 1
        for note, cycles in zip(notes, slack, strict=True):
            found[note[Note.POSITION]].append(cycles)
    return found


@pytest.mark.parametrize("name", ["softmax", "gemm_leaky_relu"])
def test_as_a_plain_reading_of_the_log(name: str) -> None:
    kernel = traced(name)
    schedule = rescheduled(name)
    model = kernel.model
    result = model.simulate(schedule, seed=1, logged=model.simulate(schedule).instructions)
    found, expected = slack_of(schedule, result), plain_slack(schedule, result)
    assert (found.issues == result.row_reasons[:, Reason.ISSUED]).all()
    compared = 0
    for place, slacks in expected.items():
        instruction = kernel.listing.instructions[schedule.order[place]]
        if instruction.order is Order.SYNC or instruction.opcode == "LDGSTS":
            assert found.mean[place] <= np.mean(slacks)
            continue
        assert found.least[place] == min(slacks), instruction
        assert found.mean[place] == pytest.approx(np.mean(slacks)), instruction
        compared += 1
    assert compared > 80


def test_copies_are_waited_for_by_groups() -> None:
    """Copies take 39 cycles here; the first DEPBAR waits for the first group only."""
    copy = "B------:R-:W-:-:S02  LDGSTS.E.128 [R2], [R4.64]"
    group = "B------:R-:W0:-:S02  LDGDEPBAR"
    pause = "B------:R-:W-:Y:S15  NOP"
    wait = "B------:R-:W-:-:S04  DEPBAR.LE SB0, {}"
    found = slack_by_hand(
        copy,
        group,
        copy,
        group,
        *[pause] * 3,
        wait.format("0x1"),
        *[pause] * 4,
        wait.format("0x0"),
        *[pause] * 5,
    )
    cycles = found.first.tolist()
    assert found.least[0] == cycles[8] - 39
    assert found.least[2] == cycles[13] - (cycles[2] + 39)


def test_what_the_log_cuts_off_is_left_out() -> None:
    kernel = traced("gemm_leaky_relu")
    whole = kernel.model.simulate(kernel.original)
    none = slack_of(kernel.original, whole)
    assert not none.issues.any()
    assert set(none.first.tolist()) == {-1}
    readers = readers_of(kernel.listing)
    part = kernel.model.simulate(kernel.original, logged=whole.instructions // 2)
    found = slack_of(kernel.original, part, readers)
    assert 0 < found.issues.sum() <= whole.instructions // 2
    assert (found.least >= 0).all()
    assert (found.least <= found.mean).all()
