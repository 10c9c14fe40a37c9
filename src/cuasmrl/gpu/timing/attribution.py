"""Every cycle has a name: why a warp, or a sub-core, did not issue."""

from cuasmrl.compiled import inlined
from cuasmrl.gpu.timing.code import Int
from cuasmrl.gpu.timing.records import CONSTANT_LINES, Core, Kind, Reason, Row, Tally, Unit, Warp
from cuasmrl.gpu.timing.waits import boards_done, queue_free, tensor_free, tensor_results, unit_free


@inlined
def until(reason: int, code: Int, state: Int, c: int, w: int) -> int:
    """When a reason to wait has gone for the next instruction of a warp."""
    p = state[w + Warp.POSITION]
    kind, unit = code[p + Row.KIND], code[p + Row.UNIT]
    if reason == Reason.STALL:
        return state[w + Warp.STALL_END]
    if reason == Reason.BRANCH:
        return state[w + Warp.JUMP_END]
    if reason == Reason.FETCH:
        return state[w + Warp.FETCH_END]
    if reason == Reason.SHORT_SCOREBOARD:
        return boards_done(code, state, p, w, 0)
    if reason == Reason.LONG_SCOREBOARD:
        return boards_done(code, state, p, w, 1)
    if reason == Reason.COPY:
        return state[w + Warp.COPIES_END]
    if reason == Reason.BARRIER:
        return state[w + Warp.RELEASE]
    if reason == Reason.TENSOR_RESULT:
        return tensor_results(code, state, p, w)
    if reason == Reason.CONSTANT:
        line = code[p + Row.CONSTANT]
        return state[c + Core.CONSTANTS + line % CONSTANT_LINES] if line >= 0 else 0
    if reason == Reason.TENSOR_BUSY:
        return tensor_free(code, state, p, c, w) if kind == Kind.TENSOR else 0
    if reason == Reason.UNIT_BUSY:
        return 0 if unit == Unit.NONE or kind == Kind.TENSOR else unit_free(code, state, p, c)
    if reason == Reason.MEMORY_QUEUE:
        return queue_free(state, c) if kind == Kind.QUEUED else 0
    return state[c + Core.CONTROL_FREE]


@inlined
def attribute(code: Int, state: Int, tally: Int, c: int, w: int, core_tally: int, now: int) -> None:
    """Name every cycle since the last issue of this warp, and since the last one of its sub-core."""
    row_tally = code[state[w + Warp.POSITION] + Row.TALLY]
    cursor = state[w + Warp.LAST_ISSUE] + 1
    core_cursor = state[c + Core.LAST_ISSUE] + 1
    reason = 1
    while reason < Reason.NOT_SELECTED and (cursor < now or core_cursor < now):
        end = min(now, until(reason, code, state, c, w))
        if end > cursor:
            tally[Tally.WARPS + reason] += end - cursor
            tally[row_tally + reason] += end - cursor
            cursor = end
        if end > core_cursor:
            tally[core_tally + reason] += end - core_cursor
            core_cursor = end
        reason += 1
    if now > cursor:
        tally[Tally.WARPS + Reason.NOT_SELECTED] += now - cursor
        tally[row_tally + Reason.NOT_SELECTED] += now - cursor
    if now > core_cursor:
        tally[core_tally + Reason.NO_WARP] += now - core_cursor
    tally[Tally.WARPS + Reason.ISSUED] += 1
    tally[row_tally + Reason.ISSUED] += 1
    tally[core_tally + Reason.ISSUED] += 1
