"""Phases of mbarriers, and barriers of the block by number: who comes, and who may go on.

The trace says to which phase an arrival or a copy belongs, and for which one a warp waits. A phase ends with
the last of its events. When that will be is known once all of them have been issued; until then the
scoreboard of a wait is pending, and a warp that comes to an instruction that needs it is held.

In compiled functions `s` is the record of what a warp has beside it, `e` a `Happening`.
"""

from cuasmrl.compiled import compiled, inlined
from cuasmrl.gpu.emulator.events import Event
from cuasmrl.gpu.timing.async_records import NUMBERS, Happening, Meet, Phase, Side
from cuasmrl.gpu.timing.bulk_copies import await_stores, close_stores, copy, keep_store
from cuasmrl.gpu.timing.code import Int
from cuasmrl.gpu.timing.machine import Layout, Machine
from cuasmrl.gpu.timing.memory import accept
from cuasmrl.gpu.timing.records import (
    BOARDS,
    SUB_CORES,
    Cause,
    Core,
    Job,
    Kind,
    Note,
    Row,
    Seat,
    Sm,
    Tally,
    Unit,
    Warp,
)
from cuasmrl.gpu.timing.tensor_engine import await_products, multiply
from cuasmrl.gpu.timing.waits import is_held, resume, side_of

_SIDE, _PHASE, _MEET = int(Side.WIDTH), int(Phase.WIDTH), int(Meet.WIDTH)
_WARP, _SEAT, _EVENT = int(Warp.WIDTH), int(Seat.WIDTH), int(Happening.WIDTH)


@inlined
def phases_of(work: Int, layout: Layout, seat: int) -> int:
    """Where the phases of a block begin."""
    place: int = layout.phases + (seat - layout.seats) // _SEAT * work[Job.PHASES] * _PHASE
    return place


@inlined
def meets_of(layout: Layout, seat: int) -> int:
    place: int = layout.meets + (seat - layout.seats) // _SEAT * NUMBERS * _MEET
    return place


@compiled
def begin_sides(work: Int, layout: Layout, state: Int, seat: int, block: int) -> None:
    """A block starts: nobody has come to any barrier."""
    first = side_of(layout, state[seat + Seat.WARPS])
    for field in range(first, first + work[Job.WARPS_PER_BLOCK] * _SIDE):
        state[field] = 0
    meets = meets_of(layout, seat)
    for field in range(meets, meets + NUMBERS * _MEET):
        state[field] = 0
    phases = phases_of(work, layout, seat)
    events = work[Job.PHASE_EVENTS] + block % work[Job.BLOCKS] * work[Job.PHASES]
    for k in range(work[Job.PHASES]):
        state[phases + k * _PHASE + Phase.LEFT] = work[events + k]
        state[phases + k * _PHASE + Phase.END] = 0


@inlined
def record_of(code: Int, work: Int, state: Int, p: int, w: int) -> int:
    """The events of a warp's next instruction; -1 if nothing happens."""
    slot = code[p + Row.SLOT]
    if slot < 0:
        return -1
    record: int = work[work[Job.ACCESSES] + work[state[w + Warp.VISIT] + 1] + slot]
    return record


@compiled
def synchronise(
    code: Int, work: Int, machine: Machine, layout: Layout, state: Int, tally: Int | None, log: Int | None,
    c: int, w: int, now: int,
) -> tuple[int, int]:  # fmt: skip
    """Issue an order or a word to an mbarrier: when its result is there, and when its sources are read.

    The cause of the SM says what the result waits for.
    """
    p = state[w + Warp.POSITION]
    kind, s = code[p + Row.KIND], side_of(layout, w)
    accepted = accept(machine, state, c, now, 1)
    state[c + Core.CONTROL_FREE] = max(state[c + Core.CONTROL_FREE], now + 1)
    complete = freed = accepted + code[p + Row.WAR] - machine.accept_delay
    if kind <= Kind.PHASE_WAIT:
        # Words to mbarriers are read whatever stands in the queue.
        complete = freed = now + code[p + Row.WAR]
    record = record_of(code, work, state, p, w)
    if kind == Kind.FLUSH:
        freed = max(freed, close_stores(code, state, p, s))
    elif kind == Kind.PHASE_WAIT:
        complete = max(complete, accepted + code[p + Row.RAW])
        state[Sm.CAUSE] = Cause.SHORT
        if record >= 0:
            complete = await_phases(code, work, layout, state, log, p, w, record, complete)
    elif record >= 0:
        for k in range(work[record]):
            e = record + 1 + k * _EVENT
            if kind == Kind.COPY_OUT:
                done, read = copy(code, work, machine, layout, state, p, w, e, accepted, False)
                keep_store(state, s, done, read)
                continue
            if kind == Kind.MULTIPLY:
                multiply(code, work, machine, state, p, s, e, accepted)
                if tally is not None:
                    tally[Tally.UNITS + Unit.TENSOR] += work[e + Happening.COUNT] * code[p + Row.INTERVAL] * 4
                continue
            happens, cause = accepted + code[p + Row.RAW], 0 + Cause.MBARRIER
            if kind == Kind.COMMIT and state[s + Side.PRODUCTS] > happens:
                happens, cause = state[s + Side.PRODUCTS], 0 + Cause.PRODUCT
            if kind == Kind.COPY_IN:
                happens, _ = copy(code, work, machine, layout, state, p, w, e, accepted, True)
                cause = state[Sm.CAUSE]
            elif work[e + Happening.KIND] == Event.ARRIVE_WITH_COPIES and state[w + Warp.COPIES] > happens:
                happens, cause = state[w + Warp.COPIES], state[w + Warp.COPIES_CAUSE]
            tell(code, work, layout, state, log, w, e, happens, cause, now)
    return complete, freed


@inlined
def tell(
    code: Int, work: Int, layout: Layout, state: Int, log: Int | None, w: int, e: int, happens: int,
    cause: int, now: int,
) -> None:  # fmt: skip
    """An event of a phase; the last one ends it."""
    if work[e + Happening.PHASE] < 0:
        return
    seat = state[w + Warp.SEAT]
    q = phases_of(work, layout, seat) + work[e + Happening.PHASE] * _PHASE
    state[q + Phase.LEFT] -= 1
    if happens >= state[q + Phase.END]:
        state[q + Phase.END] = happens
        state[q + Phase.CAUSE] = cause
    if state[q + Phase.LEFT] == 0:
        end_phase(code, work, layout, state, log, seat, now)


@inlined
def last_phase(work: Int, layout: Layout, state: Int, seat: int, record: int) -> int:
    """The phase that ends last of those that somebody waits for; -1 for none, -2 if nobody knows yet."""
    last, phases = -1, phases_of(work, layout, seat)
    for k in range(work[record]):
        number = work[record + 1 + k * _EVENT + Happening.PHASE]
        if number < 0:
            continue
        q = phases + number * _PHASE
        if state[q + Phase.LEFT] > 0:
            return -2
        if last < 0 or state[q + Phase.END] > state[last + Phase.END]:
            last = q
    return last


@inlined
def await_phases(
    code: Int, work: Int, layout: Layout, state: Int, log: Int | None, p: int, w: int, record: int,
    complete: int,
) -> int:  # fmt: skip
    """When a wait is over; if nobody knows yet, its scoreboard becomes pending."""
    board = code[p + Row.WRITE_BOARD]
    last = last_phase(work, layout, state, state[w + Warp.SEAT], record)
    if last == -2 and board >= 0:
        s = side_of(layout, w)
        state[s + Side.PENDING] |= 1 << board
        state[s + Side.WAITS + board] = record
        state[s + Side.WAKE] = code[p + Row.INTERVAL]
        if log is not None:
            state[s + Side.NOTES + board] = state[Sm.ISSUED]
    elif last >= 0 and state[last + Phase.END] + code[p + Row.INTERVAL] > complete:
        state[Sm.CAUSE] = state[last + Phase.CAUSE]
        complete = state[last + Phase.END] + code[p + Row.INTERVAL]
    return complete


@compiled
def end_phase(code: Int, work: Int, layout: Layout, state: Int, log: Int | None, seat: int, now: int) -> None:
    """The end of a phase is known: so are waits that were pending for it."""
    for k in range(work[Job.WARPS_PER_BLOCK]):
        w = state[seat + Seat.WARPS] + k * _WARP
        s = side_of(layout, w)
        if not state[s + Side.PENDING]:
            continue
        held = is_held(code, layout, state, w) and not state[s + Side.MEETING]
        for board in range(BOARDS):
            if state[s + Side.PENDING] >> board & 1:
                last = last_phase(work, layout, state, seat, state[s + Side.WAITS + board])
                if last != -2:
                    settle(state, log, w, s, board, last)
        if held and not state[w + Warp.WAITING]:
            resume(code, layout, state, w)
    for next_of_core in range(layout.nexts, layout.nexts + SUB_CORES):
        state[next_of_core] = min(state[next_of_core], now + 1)


@inlined
def settle(state: Int, log: Int | None, w: int, s: int, board: int, last: int) -> None:
    """A pending scoreboard learns when it is zero."""
    state[s + Side.PENDING] &= ~(1 << board)
    if last < 0:
        return
    end = state[last + Phase.END] + state[s + Side.WAKE]
    if end > state[w + Warp.BOARD_DONE + board]:
        state[w + Warp.BOARD_DONE + board] = end
        state[w + Warp.BOARD_CAUSE + board] = state[last + Phase.CAUSE]
    if log is not None and (state[s + Side.NOTES + board] + 1) * Note.WIDTH <= state[Sm.LOG_SIZE]:
        at = state[s + Side.NOTES + board] * Note.WIDTH
        log[at + Note.COMPLETE] = max(log[at + Note.COMPLETE], end)
        log[at + Note.CAUSE] = state[last + Phase.CAUSE]


@compiled
def follow_up(code: Int, work: Int, layout: Layout, state: Int, p: int, w: int) -> None:
    """What is waited for behind an issue: products, stores, or others at a barrier."""
    kind, s = code[p + Row.KIND], side_of(layout, w)
    if kind == Kind.PRODUCT_WAIT:
        await_products(code, layout, state, p, w)
    elif kind == Kind.STORES_WAIT:
        await_stores(code, state, p, w, s)
    if kind != Kind.MEET:
        return
    record = record_of(code, work, state, p, w)
    for k in range(work[record] if record >= 0 else 0):
        e = record + 1 + k * _EVENT
        m = meets_of(layout, state[w + Warp.SEAT]) + work[e + Happening.NUMBER] % NUMBERS * _MEET
        state[m + Meet.ARRIVED] += 1
        state[m + Meet.EXPECTED] = work[e + Happening.COUNT]
        if work[e + Happening.KIND] == Event.MEET:
            state[s + Side.MEETING] = 1 + work[e + Happening.NUMBER] % NUMBERS


@compiled
def open_meets(
    code: Int, work: Int, machine: Machine, layout: Layout, state: Int, seat: int, now: int
) -> None:
    """All barriers to which enough warps have come let them go on, one after the other."""
    meets = meets_of(layout, seat)
    for number in range(NUMBERS):
        m = meets + number * _MEET
        expected = state[m + Meet.EXPECTED] if state[m + Meet.EXPECTED] else state[seat + Seat.ALIVE]
        if not state[m + Meet.ARRIVED] or state[m + Meet.ARRIVED] < expected:
            continue
        state[m + Meet.ARRIVED] = 0
        release = now + machine.bar_latency
        for k in range(work[Job.WARPS_PER_BLOCK]):
            w = state[seat + Seat.WARPS] + k * _WARP
            s = side_of(layout, w)
            if state[s + Side.MEETING] == 1 + number:
                state[s + Side.MEETING] = 0
                state[w + Warp.RELEASE] = release
                release += machine.bar_gap
                resume(code, layout, state, w)
        for next_of_core in range(layout.nexts, layout.nexts + SUB_CORES):
            state[next_of_core] = min(state[next_of_core], now + 1)
