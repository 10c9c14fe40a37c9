"""What issuing an instruction sets in motion: units, tensor cores, the memory pipe, scoreboards."""

from cuasmrl.compiled import inlined
from cuasmrl.gpu.timing.code import Int
from cuasmrl.gpu.timing.machine import Layout, Machine
from cuasmrl.gpu.timing.memory import accept, copy_turns, fill, global_access, scatter, shared
from cuasmrl.gpu.timing.phases import follow_up, synchronise
from cuasmrl.gpu.timing.records import (
    IN_FLIGHT,
    SIXTEENTH,
    Access,
    Cause,
    Core,
    Job,
    Kind,
    Note,
    Row,
    Sm,
    Tally,
    Unit,
    Warp,
    Way,
)
from cuasmrl.gpu.timing.registers import read_operands
from cuasmrl.gpu.timing.tensor_engine import send_product
from cuasmrl.gpu.timing.waits import up

_LONGEST_STALL_WITHOUT_YIELD = 11
_DEPBAR_STALL = 4
"""A DEPBAR that stalls less does not hold up the next instruction."""


@inlined
def occupy(code: Int, state: Int, tally: Int | None, p: int, c: int, w: int, now: int) -> None:
    """An instruction of fixed latency, or of a unit that announces its result, goes down its pipe."""
    unit = code[p + Row.UNIT]
    if unit != Unit.NONE:
        at = c + Core.UNIT_FREE
        if code[p + Row.LITE] and state[at + Unit.FMA_LITE] < state[at + unit]:
            unit = 0 + Unit.FMA_LITE
        state[at + unit] = now + code[p + Row.HOLD]
        if tally is not None:
            tally[Tally.UNITS + unit] += code[p + Row.HOLD]
    if code[p + Row.KIND] != Kind.UNIT:
        enter = max(now + 2, state[c + Core.ALLOCATE_FREE])
        state[c + Core.ALLOCATE_FREE] = read_operands(code, state, p, c, w, enter) + 1
        state[c + Core.CONTROL_FREE] = max(now + 1, enter - 1)


@inlined
def occupy_all(code: Int, layout: Layout, state: Int, p: int, now: int) -> None:
    """The unit is the only one of its SM: the other sub-cores cannot use it either."""
    for core in range(layout.cores, layout.seats, layout.core_width):
        state[core + Core.UNIT_FREE + code[p + Row.UNIT]] = now + code[p + Row.HOLD]


@inlined
def multiply(code: Int, state: Int, tally: Int | None, p: int, c: int, w: int, now: int) -> int:
    """A product starts in the tensor core; says when its result is there."""
    start = max(now * SIXTEENTH, state[c + Core.TENSOR_FREE])
    done = start + code[p + Row.RAW]
    state[c + Core.TENSOR_FREE] = start + code[p + Row.INTERVAL]
    state[c + Core.TENSOR_FED] = now + code[p + Row.SAME_WARP]
    state[c + Core.LAST_TENSOR] = w
    if tally is not None:
        tally[Tally.UNITS + Unit.TENSOR] += code[p + Row.INTERVAL]
    for k in range(code[p + Row.WRITE_COUNT]):
        state[w + Warp.RESULTS + code[p + Row.WRITES + k]] = done
    enter = max(now + 2, state[c + Core.ALLOCATE_FREE])
    state[c + Core.ALLOCATE_FREE] = enter + code[p + Row.HOLD]
    state[c + Core.CONTROL_FREE] = max(now + 1, enter - 1)
    return up(done)


@inlined
def access_of(code: Int, work: Int, state: Int, p: int, w: int) -> int:
    """The access of a warp's next instruction; -1 if it has none or no lane is active."""
    slot = code[p + Row.SLOT]
    return work[work[Job.ACCESSES] + work[state[w + Warp.VISIT] + 1] + slot] if slot >= 0 else -1


@inlined
def send(
    code: Int,
    work: Int,
    machine: Machine,
    layout: Layout,
    state: Int,
    c: int,
    w: int,
    access: int,
    accepted: int,
) -> int:
    """A memory instruction that the SM takes over: when its result is there."""
    p = state[w + Warp.POSITION]
    slot, way = code[p + Row.SLOT], code[p + Row.WAY]
    visit = state[w + Warp.VISIT]
    complete = accepted + code[p + Row.RAW] - machine.accept_delay
    if way == Way.SHARED and (access >= 0 or slot < 0):
        passes = max(1, work[access + Access.PASSES]) if access >= 0 else code[p + Row.LEAST_PASSES]
        complete += shared(code, machine, state, p, c, passes, accepted)
    elif access >= 0:
        # Draws do not depend on how much stands in front of the visits.
        who = code[p + Row.ORIGINAL] << 6 | state[w + Warp.NUMBER]
        random = scatter(state[Sm.SEED], state[w + Warp.BLOCK] << 32 | visit - Job.HEAD, who)
        complete += global_access(code, work, machine, layout, state, p, w, access, accepted, random)
    if way == Way.COPY:
        if access >= 0:
            complete = fill(work, machine, state, access, complete)
        if complete > state[w + Warp.COPIES]:
            state[w + Warp.COPIES] = complete
            state[w + Warp.COPIES_CAUSE] = state[Sm.CAUSE]
    return complete


@inlined
def raise_board(state: Int, w: int, board: int, done: int, cause: int, now: int) -> None:
    before = state[w + Warp.BOARD_DONE + board]
    state[w + Warp.BOARD_BEFORE + board] = before
    state[w + Warp.BOARD_DONE + board] = max(before, done)
    state[w + Warp.BOARD_SET + board] = now
    state[w + Warp.BOARD_CAUSE + board] = cause


@inlined
def close_group(state: Int, w: int) -> int:
    """All copies so far become a group; says when it has arrived, not before those closed earlier."""
    number = state[w + Warp.GROUPS]
    done, cause = state[w + Warp.COPIES], state[w + Warp.COPIES_CAUSE]
    if number:
        before = (number - 1) % IN_FLIGHT
        if state[w + Warp.GROUP_DONE + before] > done:
            done, cause = state[w + Warp.GROUP_DONE + before], state[w + Warp.GROUP_CAUSE + before]
    state[w + Warp.GROUP_DONE + number % IN_FLIGHT] = done
    state[w + Warp.GROUP_CAUSE + number % IN_FLIGHT] = cause
    state[w + Warp.GROUPS] = number + 1
    return done


@inlined
def hold(code: Int, machine: Machine, state: Int, p: int, w: int, now: int) -> None:
    """The stall counter, and what DEPBAR holds the next instruction for."""
    stall, yields = code[p + Row.STALL], code[p + Row.YIELDS]
    if stall == 0 and yields:
        stall = machine.stop_hold
    elif stall > _LONGEST_STALL_WITHOUT_YIELD and not yields:
        stall = 2
    elif stall <= 1:
        stall = 2 if yields else 1
    state[w + Warp.STALL_END] = now + stall
    state[w + Warp.JUMP_END] = 0
    state[w + Warp.RELEASE] = 0
    state[w + Warp.COPIES_END] = 0
    if code[p + Row.KIND] == Kind.DEPBAR and stall >= _DEPBAR_STALL:
        arrived = state[w + Warp.GROUPS] - code[p + Row.DEPBAR_COUNT]
        board = code[p + Row.DEPBAR_BOARD]
        if board >= 0:
            state[w + Warp.COPIES_END] = state[w + Warp.BOARD_DONE + board]
            state[w + Warp.COPIES_END_CAUSE] = Cause.LATENCY
        elif arrived > 0:
            group = (arrived - 1) % IN_FLIGHT
            state[w + Warp.COPIES_END] = state[w + Warp.GROUP_DONE + group]
            state[w + Warp.COPIES_END_CAUSE] = state[w + Warp.GROUP_CAUSE + group]


@inlined
def note(state: Int, log: Int, p: int, w: int, now: int, complete: int, freed: int, cause: int) -> None:
    at = state[Sm.ISSUED] * Note.WIDTH
    state[Sm.ISSUED] += 1
    if at < state[Sm.LOG_SIZE]:
        log[at + Note.CYCLE] = now
        log[at + Note.BLOCK] = state[w + Warp.BLOCK]
        log[at + Note.WARP] = state[w + Warp.NUMBER]
        log[at + Note.POSITION] = p // Row.WIDTH
        log[at + Note.COMPLETE] = complete
        log[at + Note.FREED] = freed
        log[at + Note.CAUSE] = cause


@inlined
def issue(
    code: Int, work: Int, machine: Machine, layout: Layout, state: Int, tally: Int | None, log: Int | None,
    c: int, w: int, now: int,
) -> None:  # fmt: skip
    """Start the next instruction of a warp."""
    p = state[w + Warp.POSITION]
    kind, way = code[p + Row.KIND], code[p + Row.WAY]
    state[w + Warp.LAST_ISSUE] = now
    state[c + Core.LAST_ISSUE] = now
    state[c + Core.LAST_WARP] = w
    complete = freed = now
    if kind == Kind.QUEUED:
        access = access_of(code, work, state, p, w)
        turns = copy_turns(work, machine, access) if way == Way.COPY and access >= 0 else 1
        accepted = accept(machine, state, c, now, turns)
        state[c + Core.CONTROL_FREE] = max(state[c + Core.CONTROL_FREE], now + 1)
        freed = accepted + code[p + Row.WAR] - machine.accept_delay
        state[Sm.CAUSE] = Cause.LATENCY
        complete = send(code, work, machine, layout, state, c, w, access, accepted)
    elif kind == Kind.TENSOR:
        complete = multiply(code, state, tally, p, c, w, now)
    elif kind >= Kind.ARRIVE:
        complete, freed = synchronise(code, work, machine, layout, state, tally, log, c, w, now)
    else:
        occupy(code, state, tally, p, c, w, now)
        if code[p + Row.OF_SM]:
            occupy_all(code, layout, state, p, now)
        if kind == Kind.UNIT:
            complete = now + code[p + Row.RAW]
            freed = now + code[p + Row.WAR]
        elif kind == Kind.GROUP:
            complete = close_group(state, w)
        elif kind == Kind.PRODUCT:
            send_product(code, layout, state, p, w, now)
            if tally is not None:
                tally[Tally.UNITS + Unit.TENSOR] += code[p + Row.INTERVAL]
    cause = 0 + Cause.SHORT
    if kind == Kind.GROUP:
        cause = state[w + Warp.GROUP_CAUSE + (state[w + Warp.GROUPS] - 1) % IN_FLIGHT]
    elif way in (Way.GLOBAL, Way.COPY):
        cause = state[Sm.CAUSE]
    if code[p + Row.WRITE_BOARD] >= 0:
        raise_board(state, w, code[p + Row.WRITE_BOARD], complete, cause, now)
    if code[p + Row.READ_BOARD] >= 0:
        raise_board(state, w, code[p + Row.READ_BOARD], freed, Cause.SHORT, now)
    hold(code, machine, state, p, w, now)
    if kind >= Kind.PRODUCT_WAIT:
        follow_up(code, work, layout, state, p, w)
    if log is not None:
        note(state, log, p, w, now, complete, freed, cause)
