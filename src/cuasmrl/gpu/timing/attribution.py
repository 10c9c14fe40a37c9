"""Every cycle has a name: why a warp, or a sub-core, did not issue."""

from cuasmrl.compiled import inlined
from cuasmrl.gpu.timing.code import Int
from cuasmrl.gpu.timing.records import Cause, Core, Kind, Reason, Row, Tally, Unit, Warp
from cuasmrl.gpu.timing.waits import boards_done, queue_free, tensor_free, tensor_results, unit_free


@inlined
def copies_done(state: Int, w: int, cause: int) -> int:
    """When copies that a warp waits for have arrived, or products are done, if that is what holds it up."""
    return state[w + Warp.COPIES_END] if state[w + Warp.COPIES_END_CAUSE] == cause else 0


@inlined
def until(reason: int, code: Int, state: Int, c: int, w: int) -> int:
    """When a reason to wait has gone for the next instruction of a warp."""
    p = state[w + Warp.POSITION]
    if reason == Reason.STALL:
        return state[w + Warp.STALL_END]
    if reason == Reason.BRANCH:
        return state[w + Warp.JUMP_END]
    if reason == Reason.FETCH:
        return state[w + Warp.FETCH_END]
    if reason == Reason.SHORT_SCOREBOARD:
        return boards_done(code, state, p, w, Cause.SHORT)
    if reason == Reason.LONG_SCOREBOARD:
        return boards_done(code, state, p, w, Cause.LATENCY)
    if reason == Reason.COPY:
        return copies_done(state, w, Cause.LATENCY)
    if reason == Reason.TMA:
        return max(boards_done(code, state, p, w, Cause.TMA), copies_done(state, w, Cause.TMA))
    if reason == Reason.L2_SHARE:
        return max(boards_done(code, state, p, w, Cause.L2_SHARE), copies_done(state, w, Cause.L2_SHARE))
    if reason == Reason.DRAM:
        return max(boards_done(code, state, p, w, Cause.DRAM), copies_done(state, w, Cause.DRAM))
    if reason == Reason.BARRIER:
        return state[w + Warp.RELEASE]
    if reason == Reason.MBARRIER:
        return boards_done(code, state, p, w, Cause.MBARRIER)
    if reason == Reason.TENSOR_RESULT:
        return tensor_results(code, state, p, w)
    if reason == Reason.TENSOR_ENGINE:
        return max(boards_done(code, state, p, w, Cause.PRODUCT), copies_done(state, w, Cause.PRODUCT))
    return until_let_in(reason, code, state, c, w)


@inlined
def until_let_in(reason: int, code: Int, state: Int, c: int, w: int) -> int:
    """Of those reasons that lie in the sub-core."""
    p = state[w + Warp.POSITION]
    kind, unit = code[p + Row.KIND], code[p + Row.UNIT]
    if reason == Reason.CONSTANT:
        line = code[p + Row.CONSTANT]
        return state[c + Core.CONSTANTS + line] if line >= 0 else 0
    if reason == Reason.TENSOR_BUSY:
        return tensor_free(code, state, p, c, w) if kind == Kind.TENSOR else 0
    if reason == Reason.UNIT_BUSY:
        return 0 if unit == Unit.NONE or kind == Kind.TENSOR else unit_free(code, state, p, c)
    if reason == Reason.MEMORY_QUEUE:
        return queue_free(state, c) if kind == Kind.QUEUED or kind >= Kind.ARRIVE else 0
    return state[c + Core.CONTROL_FREE]


@inlined
def attribute(code: Int, state: Int, tally: Int, c: int, w: int, core_tally: int, now: int) -> None:
    """Name every cycle since the last issue of this warp, and since the last one of its sub-core."""
    row_tally = Tally.ROWS + state[w + Warp.POSITION] // Row.WIDTH * Tally.REASONS
    cursor = state[w + Warp.LAST_ISSUE] + 1
    core_cursor = state[c + Core.LAST_ISSUE] + 1
    for reason in range(1, 0 + Reason.NOT_SELECTED):
        if cursor >= now and core_cursor >= now:
            break
        end = min(now, until(reason, code, state, c, w))
        if end > cursor:
            tally[Tally.WARPS + reason] += end - cursor
            tally[row_tally + reason] += end - cursor
            cursor = end
        if end > core_cursor:
            tally[core_tally + reason] += end - core_cursor
            core_cursor = end
    if now > cursor:
        tally[Tally.WARPS + Reason.NOT_SELECTED] += now - cursor
        tally[row_tally + Reason.NOT_SELECTED] += now - cursor
    if now > core_cursor:
        tally[core_tally + Reason.NO_WARP] += now - core_cursor
    tally[Tally.WARPS + Reason.ISSUED] += 1
    tally[row_tally + Reason.ISSUED] += 1
    tally[core_tally + Reason.ISSUED] += 1
