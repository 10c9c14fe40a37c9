"""What an instruction waits for: by itself, and for the units, ports and queues of its sub-core."""

from cuasmrl.timing.code import Int
from cuasmrl.timing.columns import BOARDS, FAR, SIXTEENTH, Core, Kind, Row, Unit, Warp
from cuasmrl.timing.compiled import compiled
from cuasmrl.timing.machine import Machine

CONSTANT_LINES = 4096


@compiled
def up(sixteenths: int) -> int:
    """The cycle in which, or before which, something has happened."""
    return (sixteenths + SIXTEENTH - 1) // SIXTEENTH


@compiled
def boards_done(row: Int, warp: Int, long: bool) -> int:
    """When the scoreboards that an instruction waits for are zero; one raised a cycle ago is not seen yet."""
    done = 0
    for board in range(BOARDS):
        if row[Row.WAIT] >> board & 1 and (warp[Warp.BOARD_LONG + board] != 0) == long:
            if warp[Warp.BOARD_SET + board] + 2 <= warp[Warp.STALL_END]:
                done = max(done, warp[Warp.BOARD_DONE + board])
            else:
                done = max(done, warp[Warp.BOARD_BEFORE + board])
    return done


@compiled
def tensor_results(row: Int, registers: Int, results: Int) -> int:
    """When the products whose results an instruction reads are there."""
    done = 0
    if row[Row.TENSOR_READS]:
        for k in range(row[Row.READS], row[Row.WRITES]):
            done = max(done, results[registers[k]])
    return up(done)


@compiled
def ready_time(row: Int, warp: Int, registers: Int, results: Int) -> int:
    """When everything has happened that a warp's next instruction waits for by itself."""
    at = max(warp[Warp.STALL_END], warp[Warp.JUMP_END], warp[Warp.FETCH_END])
    if row[Row.WAIT]:
        at = max(at, boards_done(row, warp, False), boards_done(row, warp, True))
    at = max(at, warp[Warp.COPIES_END], warp[Warp.RELEASE])
    return max(at, tensor_results(row, registers, results))


@compiled
def tensor_free(core: Int, warp: int, machine: Machine) -> int:
    """Sixteenths from which on the tensor core takes a product of this warp."""
    free = core[Core.TENSOR_FREE]
    return free + machine.tensor_same_warp if core[Core.LAST_TENSOR] == warp else free


@compiled
def unit_free(row: Int, core: Int) -> int:
    free = core[Core.UNIT_FREE + row[Row.UNIT]]
    return min(free, core[Core.UNIT_FREE + Unit.FMA_LITE]) if row[Row.LITE] else free


@compiled
def issue_time(row: Int, core: Int, constants: Int, warp: int, machine: Machine, now: int) -> int:
    """When units, ports and queues of the sub-core let an instruction in that is ready now."""
    at = core[Core.CONTROL_FREE]
    if row[Row.KIND] == Kind.TENSOR:
        at = max(at, up(tensor_free(core, warp, machine)))
    elif row[Row.KIND] == Kind.QUEUED:
        at = max(at, core[Core.QUEUE + core[Core.QUEUED] % machine.queue_entries])
    elif row[Row.UNIT] != Unit.NONE:
        at = max(at, unit_free(row, core))
    if row[Row.CONSTANT] >= 0:
        line = row[Row.CONSTANT] % CONSTANT_LINES
        if constants[line] == FAR:
            constants[line] = now + machine.constant_miss
        at = max(at, constants[line])
    return at
