"""What issuing an instruction sets in motion: units, tensor cores, the memory pipe, scoreboards."""

from cuasmrl.timing.attribution import Tally
from cuasmrl.timing.code import Code, Int
from cuasmrl.timing.columns import GROUPS, SIXTEENTH, Core, Kind, Row, Unit, Warp, Way
from cuasmrl.timing.compiled import compiled
from cuasmrl.timing.machine import Machine
from cuasmrl.timing.memory import accept, global_access, scatter, shared
from cuasmrl.timing.registers import read_operands
from cuasmrl.timing.state import State
from cuasmrl.timing.waits import tensor_free, up
from cuasmrl.timing.work import Work

_LONGEST_STALL_WITHOUT_YIELD = 11
_DEPBAR_STALL = 4
"""A DEPBAR that stalls less does not hold up the next instruction."""


@compiled
def occupy(row: Int, core: Int, warp: int, tally: Tally, now: int) -> None:
    """An instruction of fixed latency, or of a unit that announces its result, goes down its pipe."""
    unit = row[Row.UNIT]
    if unit != Unit.NONE:
        if row[Row.LITE] and core[Core.UNIT_FREE + Unit.FMA_LITE] < core[Core.UNIT_FREE + unit]:
            unit = Unit.FMA_LITE
        core[Core.UNIT_FREE + unit] = now + row[Row.HOLD]
        tally.units[unit] += row[Row.HOLD]
    if row[Row.KIND] != Kind.UNIT:
        enter = max(now + 2, core[Core.ALLOCATE_FREE])
        core[Core.ALLOCATE_FREE] = read_operands(row, warp, enter, core) + 1
        core[Core.CONTROL_FREE] = max(now + 1, enter - 1)


@compiled
def multiply(
    code: Code, row: Int, core: Int, warp: int, results: Int, machine: Machine, tally: Tally, now: int
) -> int:
    """A product starts in the tensor core; says when its result is there."""
    start = max(now * SIXTEENTH, tensor_free(core, warp, machine))
    core[Core.TENSOR_FREE] = start + row[Row.INTERVAL]
    core[Core.LAST_TENSOR] = warp
    tally.units[Unit.TENSOR] += row[Row.INTERVAL] // SIXTEENTH
    for k in range(row[Row.WRITES], row[Row.END]):
        results[code.registers[k]] = start + row[Row.RAW]
    enter = max(now + 2, core[Core.ALLOCATE_FREE])
    core[Core.ALLOCATE_FREE] = enter + 1
    core[Core.CONTROL_FREE] = max(now + 1, enter - 1)
    return up(start + row[Row.RAW])


@compiled
def raise_board(warp: Int, board: int, done: int, long: bool, now: int) -> None:
    warp[Warp.BOARD_BEFORE + board] = warp[Warp.BOARD_DONE + board]
    warp[Warp.BOARD_DONE + board] = max(warp[Warp.BOARD_DONE + board], done)
    warp[Warp.BOARD_SET + board] = now
    warp[Warp.BOARD_LONG + board] = long


@compiled
def close_group(warp: Int) -> int:
    """All copies so far become a group; says when it has arrived, not before those closed earlier."""
    number = warp[Warp.GROUPS]
    done = warp[Warp.COPIES]
    if number:
        done = max(done, warp[Warp.GROUP_DONE + (number - 1) % GROUPS])
    warp[Warp.GROUP_DONE + number % GROUPS] = done
    warp[Warp.GROUPS] += 1
    return done


@compiled
def hold(row: Int, warp: Int, machine: Machine, now: int) -> None:
    """The stall counter, and what DEPBAR holds the next instruction for."""
    stall = row[Row.STALL]
    if stall == 0 and row[Row.YIELDS]:
        stall = machine.stop_hold
    elif stall > _LONGEST_STALL_WITHOUT_YIELD and not row[Row.YIELDS]:
        stall = 2
    elif stall <= 1:
        stall = 2 if row[Row.YIELDS] else 1
    warp[Warp.STALL_END] = now + stall
    warp[Warp.JUMP_END] = 0
    warp[Warp.RELEASE] = 0
    warp[Warp.COPIES_END] = 0
    if row[Row.KIND] == Kind.DEPBAR and stall >= _DEPBAR_STALL:
        arrived = warp[Warp.GROUPS] - row[Row.DEPBAR_COUNT]
        if arrived > 0:
            warp[Warp.COPIES_END] = warp[Warp.GROUP_DONE + (arrived - 1) % GROUPS]


@compiled
def send(
    work: Work, machine: Machine, state: State, row: Int, number: int, w: int, now: int, seed: int
) -> tuple[int, int]:
    """A memory instruction: when its result is there, and when its sources may be overwritten."""
    warp, core = state.warps[w], state.cores[number]
    accepted = accept(machine, core, state.sm, now)
    core[Core.CONTROL_FREE] = max(core[Core.CONTROL_FREE], now + 1)
    freed = accepted + row[Row.WAR] - machine.accept_delay
    complete = accepted + row[Row.RAW] - machine.accept_delay
    slot = row[Row.SLOT]
    access = work.accesses[work.visit_slots[warp[Warp.VISIT]] + slot] if slot >= 0 else -1
    if row[Row.WAY] == Way.SHARED and (access >= 0 or slot < 0):
        passes = max(1, work.passes[access]) if access >= 0 else 1
        complete += shared(machine, row, passes, accepted, core, state.sm)
    elif access >= 0:
        random = scatter(seed, warp[Warp.BLOCK] << 32 | warp[Warp.VISIT], row[Row.ORIGINAL] << 8 | w)
        complete += global_access(
            machine, row, work, access, accepted, state.sm, state.tags, state.stamps, random
        )
    if row[Row.WAY] == Way.COPY:
        warp[Warp.COPIES] = max(warp[Warp.COPIES], complete)
    return complete, freed


@compiled
def issue(
    code: Code,
    work: Work,
    machine: Machine,
    state: State,
    tally: Tally,
    number: int,
    w: int,
    now: int,
    seed: int,
) -> None:
    """Start the next instruction of a warp."""
    warp, core = state.warps[w], state.cores[number]
    row = code.rows[warp[Warp.PLACE]]
    kind = row[Row.KIND]
    warp[Warp.LAST_ISSUE] = now
    core[Core.LAST_ISSUE] = now
    core[Core.LAST_WARP] = w
    complete = freed = now
    long = kind == Kind.GROUP or row[Row.WAY] == Way.GLOBAL or row[Row.WAY] == Way.COPY
    if kind == Kind.QUEUED:
        complete, freed = send(work, machine, state, row, number, w, now, seed)
    elif kind == Kind.TENSOR:
        complete = multiply(code, row, core, w, state.results[w], machine, tally, now)
    else:
        occupy(row, core, w, tally, now)
        if kind == Kind.UNIT:
            complete, freed = now + row[Row.RAW], now + row[Row.WAR]
        elif kind == Kind.GROUP:
            complete = close_group(warp)
    if row[Row.WRITE_BOARD] >= 0:
        raise_board(warp, row[Row.WRITE_BOARD], complete, long, now)
    if row[Row.READ_BOARD] >= 0:
        raise_board(warp, row[Row.READ_BOARD], freed, False, now)
    hold(row, warp, machine, now)
