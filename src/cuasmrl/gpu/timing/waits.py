"""What an instruction waits for: by itself, and for the units, ports and queues of its sub-core.

In compiled functions `p`, `w` and `c` are the records of an instruction, a warp and a sub-core.
"""

from cuasmrl.compiled import inlined
from cuasmrl.gpu.timing.async_records import Side
from cuasmrl.gpu.timing.code import Int
from cuasmrl.gpu.timing.machine import Layout, Machine
from cuasmrl.gpu.timing.records import BOARDS, FAR, SIXTEENTH, Core, Kind, Row, Unit, Warp

_SIDE_WIDTH, _WARP_WIDTH = int(Side.WIDTH), int(Warp.WIDTH)


@inlined
def up(sixteenths: int) -> int:
    """The cycle in which, or before which, something has happened."""
    return (sixteenths + SIXTEENTH - 1) // SIXTEENTH


@inlined
def boards_done(code: Int, state: Int, p: int, w: int, cause: int) -> int:
    """When the scoreboards that an instruction waits for are zero, those of one cause.

    One that was raised a cycle ago is not seen yet.
    """
    done = 0
    mask = code[p + Row.WAIT]
    for board in range(BOARDS):
        if mask >> board & 1 and state[w + Warp.BOARD_CAUSE + board] == cause:
            if state[w + Warp.BOARD_SET + board] + 2 <= state[w + Warp.STALL_END]:
                done = max(done, state[w + Warp.BOARD_DONE + board])
            else:
                done = max(done, state[w + Warp.BOARD_BEFORE + board])
    return done


@inlined
def all_boards_done(code: Int, state: Int, p: int, w: int) -> int:
    """As `boards_done`, whatever the scoreboards stand for."""
    done, board = 0, 0
    mask = code[p + Row.WAIT]
    while mask:
        if mask & 1:
            if state[w + Warp.BOARD_SET + board] + 2 <= state[w + Warp.STALL_END]:
                done = max(done, state[w + Warp.BOARD_DONE + board])
            else:
                done = max(done, state[w + Warp.BOARD_BEFORE + board])
        mask >>= 1
        board += 1
    return done


@inlined
def tensor_results(code: Int, state: Int, p: int, w: int) -> int:
    """When the products whose results an instruction reads are there."""
    done = 0
    for k in range(code[p + Row.READ_COUNT]):
        done = max(done, state[w + Warp.RESULTS + code[p + Row.READS + k]])
    return up(done)


@inlined
def ready_time(code: Int, state: Int, w: int) -> int:
    """When everything has happened that a warp's next instruction waits for by itself."""
    p = state[w + Warp.POSITION]
    at = max(state[w + Warp.STALL_END], state[w + Warp.JUMP_END])
    at = max(at, state[w + Warp.FETCH_END])
    if code[p + Row.WAIT]:
        at = max(at, all_boards_done(code, state, p, w))
    at = max(at, state[w + Warp.COPIES_END])
    at = max(at, state[w + Warp.RELEASE])
    return max(at, tensor_results(code, state, p, w))


@inlined
def side_of(layout: Layout, w: int) -> int:
    """The record of what a warp has under way beside it."""
    place: int = layout.sides + (w - layout.warps) // _WARP_WIDTH * _SIDE_WIDTH
    return place


@inlined
def is_held(code: Int, layout: Layout, state: Int, w: int) -> bool:
    """Does nobody know yet when a warp may go on: at a barrier, or where it needs a pending scoreboard?"""
    s = side_of(layout, w)
    pending = code[state[w + Warp.POSITION] + Row.WAIT] & state[s + Side.PENDING]
    return bool(state[s + Side.MEETING] or pending)


@inlined
def resume(code: Int, layout: Layout, state: Int, w: int) -> None:
    """A warp learns when it may go on, unless it has something else to wait for."""
    if layout.sides == layout.ends or not is_held(code, layout, state, w):
        state[state[w + Warp.READY]] = ready_time(code, state, w)


@inlined
def tensor_free(code: Int, state: Int, p: int, c: int, w: int) -> int:
    """The cycle in which the tensor core takes a product of this warp; it starts in a fraction, or later."""
    free = state[c + Core.TENSOR_FREE] // SIXTEENTH - code[p + Row.AHEAD]
    return max(free, state[c + Core.TENSOR_FED]) if state[c + Core.LAST_TENSOR] == w else free


@inlined
def unit_free(code: Int, state: Int, p: int, c: int) -> int:
    free = state[c + Core.UNIT_FREE + code[p + Row.UNIT]]
    return min(free, state[c + Core.UNIT_FREE + Unit.FMA_LITE]) if code[p + Row.LITE] else free


@inlined
def queue_free(state: Int, c: int) -> int:
    """When the memory queue has room for one more."""
    return state[c + Core.QUEUE_FREE]


@inlined
def issue_time(code: Int, machine: Machine, state: Int, c: int, w: int, now: int) -> int:
    """When units, ports and queues of the sub-core let an instruction in that is ready now."""
    p = state[w + Warp.POSITION]
    at = state[c + Core.CONTROL_FREE]
    kind = code[p + Row.KIND]
    if kind == Kind.TENSOR:
        at = max(at, tensor_free(code, state, p, c, w))
    elif kind == Kind.QUEUED:
        at = max(at, queue_free(state, c))
    elif code[p + Row.UNIT] != Unit.NONE:
        at = max(at, unit_free(code, state, p, c))
    line = code[p + Row.CONSTANT]
    if line >= 0:
        line += c + Core.CONSTANTS
        if state[line] == FAR:
            state[line] = now + machine.constant_miss
        at = max(at, state[line])
    return at
