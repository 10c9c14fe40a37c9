"""Every cycle has a name: why a warp, or a sub-core, did not issue."""

from typing import NamedTuple

from cuasmrl.timing.code import Code, Int
from cuasmrl.timing.columns import Core, Kind, Reason, Row, Unit, Warp
from cuasmrl.timing.compiled import compiled
from cuasmrl.timing.machine import Machine
from cuasmrl.timing.state import State
from cuasmrl.timing.waits import CONSTANT_LINES, boards_done, tensor_free, tensor_results, unit_free, up


class Tally(NamedTuple):
    """Cycles by reason: of all warps, of each sub-core, of each instruction; issues; cycles of units."""

    warps: Int
    cores: Int
    rows: Int
    issues: Int
    units: Int


@compiled
def until(reason: int, code: Code, row: Int, machine: Machine, state: State, number: int, w: int) -> int:
    """When a reason to wait has gone for the next instruction of a warp."""
    warp, core = state.warps[w], state.cores[number]
    if reason == Reason.STALL:
        return warp[Warp.STALL_END]
    if reason == Reason.BRANCH:
        return warp[Warp.JUMP_END]
    if reason == Reason.FETCH:
        return warp[Warp.FETCH_END]
    if reason == Reason.SHORT_SCOREBOARD:
        return boards_done(row, warp, False)
    if reason == Reason.LONG_SCOREBOARD:
        return boards_done(row, warp, True)
    if reason == Reason.COPY:
        return warp[Warp.COPIES_END]
    if reason == Reason.BARRIER:
        return warp[Warp.RELEASE]
    if reason == Reason.TENSOR_RESULT:
        return tensor_results(row, code.registers, state.results[w])
    if reason == Reason.CONSTANT:
        return state.constants[number, row[Row.CONSTANT] % CONSTANT_LINES] if row[Row.CONSTANT] >= 0 else 0
    if reason == Reason.TENSOR_BUSY:
        return up(tensor_free(core, w, machine)) if row[Row.KIND] == Kind.TENSOR else 0
    if reason == Reason.UNIT_BUSY:
        return unit_free(row, core) if row[Row.UNIT] != Unit.NONE else 0
    if reason == Reason.MEMORY_QUEUE:
        place = core[Core.QUEUED] % machine.queue_entries
        return core[Core.QUEUE + place] if row[Row.KIND] == Kind.QUEUED else 0
    return core[Core.CONTROL_FREE]


@compiled
def attribute(
    code: Code, machine: Machine, state: State, tally: Tally, number: int, w: int, now: int
) -> None:
    """Name every cycle since the last issue of this warp, and since the last one of its sub-core."""
    p = state.warps[w, Warp.PLACE]
    row = code.rows[p]
    cursor = state.warps[w, Warp.LAST_ISSUE] + 1
    core_cursor = state.cores[number, Core.LAST_ISSUE] + 1
    for reason in range(Reason.STALL, Reason.NOT_SELECTED):
        if cursor >= now and core_cursor >= now:
            break
        end = min(now, until(reason, code, row, machine, state, number, w))
        if end > cursor:
            tally.warps[reason] += end - cursor
            tally.rows[p, reason] += end - cursor
            cursor = end
        if end > core_cursor:
            tally.cores[number, reason] += end - core_cursor
            core_cursor = end
    if now > cursor:
        tally.warps[Reason.NOT_SELECTED] += now - cursor
        tally.rows[p, Reason.NOT_SELECTED] += now - cursor
    if now > core_cursor:
        tally.cores[number, Reason.NO_WARP] += now - core_cursor
    tally.warps[Reason.ISSUED] += 1
    tally.rows[p, Reason.ISSUED] += 1
    tally.cores[number, Reason.ISSUED] += 1
    tally.issues[p] += 1
