"""One SM at work: four sub-cores issue the instructions of resident blocks, cycle by cycle.

Everything an instruction will ever wait for is known when it is issued, because units, ports and queues are
reserved then: so there is no event queue, and cycles in which nobody can issue are skipped.

An instruction that is issued in cycle t is in Control in t + 1 and, if its latency is fixed, in Allocate from
t + 2 on, where it waits for its read ports and holds up what comes behind.
"""

import numpy as np

from cuasmrl.compiled import compiled, inlined, lowest_bit, pointer_to
from cuasmrl.gpu.timing.attribution import attribute
from cuasmrl.gpu.timing.code import Int
from cuasmrl.gpu.timing.front_end import fetch
from cuasmrl.gpu.timing.machine import TAG_WORDS, Layout, Machine
from cuasmrl.gpu.timing.phases import begin_sides, open_meets
from cuasmrl.gpu.timing.pipes import issue
from cuasmrl.gpu.timing.records import (
    FAR,
    PARTS,
    SUB_CORES,
    Choice,
    Core,
    Job,
    Kind,
    Reason,
    Row,
    Seat,
    Sm,
    Tally,
    Warp,
)
from cuasmrl.gpu.timing.sheet import Limits, Pointers, Sheet
from cuasmrl.gpu.timing.tensor_engine import begin_squads, is_parked
from cuasmrl.gpu.timing.waits import issue_time, resume

_ROW_WIDTH, _WARP_WIDTH, _SEAT_WIDTH = int(Row.WIDTH), int(Warp.WIDTH), int(Seat.WIDTH)
_VISIT_WIDTH = 2


@compiled
def empty_state(layout: Layout, per_block: int) -> Int:
    """Nothing has been launched, all caches are cold. Every replay begins with a copy."""
    state = np.zeros(layout.size, np.int64)
    state[Sm.ACCEPTS : Sm.WIDTH] = -1
    for k in range(SUB_CORES):
        c = layout.cores + k * layout.core_width
        state[c + Core.LAST_ISSUE] = -1
        state[c + Core.LAST_WARP] = -1
        state[c + Core.LAST_TENSOR] = -1
        state[c + Core.ACCEPTED] = -FAR
        state[c + Core.CACHED : c + Core.QUEUE] = -1
        state[c + Core.CONSTANTS : c + layout.lines] = FAR
        state[c + layout.lines + layout.l0_lines : c + layout.core_width] = -1
    state[layout.ready : layout.squads] = FAR
    for k, seat in enumerate(range(layout.seats, layout.warps, _SEAT_WIDTH)):
        state[seat + Seat.WARPS] = layout.warps + k * per_block * _WARP_WIDTH
    for tag in range(layout.tags, layout.nexts, TAG_WORDS):
        state[tag] = -1
    return state


@compiled
def next_start(machine: Machine, state: Int, ready: int) -> int:
    """When a seat that is free from `ready` on gets a block: the chip gives out one after the other."""
    at = max(ready * PARTS, state[Sm.START_FREE])
    state[Sm.START_FREE] = at + machine.share.block_interval
    return at // PARTS


@inlined
def set_gate(code: Int, layout: Layout, state: Int, c: int, w: int) -> None:
    """Note where the sub-core says whether it has room for the next instruction of a warp."""
    gate = code[state[w + Warp.POSITION] + Row.GATE]
    state[state[w + Warp.READY] + layout.gates - layout.ready] = c + gate if gate >= 0 else -1


@compiled
def start_block(
    code: Int, work: Int, machine: Machine, layout: Layout, state: Int, seat: int, now: int
) -> None:
    """Put the warps of the next block into their slots; the first may issue from cycle `now` on."""
    per_block = work[Job.WARPS_PER_BLOCK]
    block = state[Sm.STARTED]
    state[Sm.STARTED] += 1
    state[seat + Seat.ALIVE] = per_block
    if layout.sides < layout.ends:
        begin_sides(work, layout, state, seat, block)
    if layout.engine > layout.squads:
        begin_squads(layout, state, state[seat + Seat.WARPS], per_block)
    for k in range(per_block):
        w = state[seat + Seat.WARPS] + k * _WARP_WIDTH
        for field in range(w, w + _WARP_WIDTH):
            state[field] = 0
        path = work[Job.PATH_STARTS] + block % work[Job.BLOCKS] * per_block + k
        state[w + Warp.BLOCK] = block
        state[w + Warp.SEAT] = seat
        state[w + Warp.NUMBER] = k
        state[w + Warp.VISIT] = work[path]
        state[w + Warp.LAST_VISIT] = work[path + 1]
        state[w + Warp.POSITION] = work[work[Job.BLOCK_STARTS] + work[work[path]]]
        born = now + k * machine.warp_start
        state[w + Warp.BORN] = born
        state[w + Warp.LAST_ISSUE] = born - 1
        state[w + Warp.STALL_END] = born
        slot = (w - layout.warps) // _WARP_WIDTH
        state[w + Warp.READY] = layout.ready + slot % SUB_CORES * layout.slots + slot // SUB_CORES
        state[state[w + Warp.READY]] = born
        set_gate(code, layout, state, layout.cores + slot % SUB_CORES * layout.core_width, w)


@inlined
def advance(code: Int, work: Int, machine: Machine, state: Int, w: int, now: int) -> None:
    """To the next instruction on the warp's way."""
    p = state[w + Warp.POSITION]
    following = p + _ROW_WIDTH
    if code[p + Row.LAST]:
        visit = state[w + Warp.VISIT] + _VISIT_WIDTH
        state[w + Warp.VISIT] = visit
        if visit < state[w + Warp.LAST_VISIT]:
            target = work[work[Job.BLOCK_STARTS] + work[visit]]
            if target != following:
                state[w + Warp.JUMP_END] = now + machine.branch_taken
            following = target
    state[w + Warp.POSITION] = following


@compiled
def open_barrier(
    code: Int, work: Int, machine: Machine, layout: Layout, state: Int, seat: int, now: int
) -> None:
    """All warps of a block that wait at its barrier may go on, one after the other."""
    state[seat + Seat.ARRIVED] = 0
    release = now + machine.bar_latency
    for k in range(work[Job.WARPS_PER_BLOCK]):
        w = state[seat + Seat.WARPS] + k * _WARP_WIDTH
        if state[w + Warp.WAITING]:
            state[w + Warp.WAITING] = 0
            state[w + Warp.RELEASE] = release
            release += machine.bar_gap
            resume(code, layout, state, w)


@compiled
def wake(layout: Layout, state: Int, at: int) -> None:
    """Let every sub-core look at its warps again."""
    for next_of_core in range(layout.nexts, layout.nexts + SUB_CORES):
        state[next_of_core] = min(state[next_of_core], at)


@inlined
def comes_before(choice: int, state: Int, w: int, best: int, last: int) -> bool:
    """Is a warp chosen rather than the best of those before it? `last` is the one that issued last.

    Of warps that began together, the one with the higher number is the younger.
    """
    if choice == Choice.NEXT:
        return w > last >= best
    if last in (w, best):
        return w == last
    if choice == Choice.LEAST_RECENT:
        return state[w + Warp.LAST_ISSUE] <= state[best + Warp.LAST_ISSUE]
    if choice == Choice.OLDEST:
        return state[w + Warp.BORN] < state[best + Warp.BORN]
    return state[w + Warp.BORN] >= state[best + Warp.BORN]


@inlined
def choose(
    code: Int, machine: Machine, layout: Layout, state: Int, number: int, c: int, now: int
) -> tuple[int, int]:
    """The warp that issues now, or -1; and when the next one of this sub-core may."""
    best, soonest, able = -1, FAR, 0
    last = state[c + Core.LAST_WARP]
    first = layout.ready + number * layout.slots
    gates = layout.gates + number * layout.slots
    # Without jumps that depend on the times, which the processor would have to guess.
    for k in range(layout.slots):
        at = state[first + k]
        able |= (at <= now) << k
        soonest = min(soonest, at if at > now else FAR)
    while able:
        k = lowest_bit(able)
        able &= able - 1
        w = layout.warps + (number + k * SUB_CORES) * _WARP_WIDTH
        gate = state[gates + k]
        if gate >= 0:
            at = max(state[c + Core.CONTROL_FREE], state[gate])
        else:
            at = issue_time(code, machine, state, c, w, now)
        # Only one of those that could issue now will.
        soonest = min(soonest, max(at, now + 1))
        if at > now:
            # Units, ports and queues only get fuller, so nobody need look before. Only the warp that has sent
            # the last product may do better once another has.
            if state[c + Core.LAST_TENSOR] != w:
                state[first + k] = at
            continue
        if best < 0 or comes_before(machine.warp_choice, state, w, best, last):
            best = w
    return best, soonest


@inlined
def go_on(
    code: Int, work: Int, machine: Machine, layout: Layout, state: Int, number: int, c: int, w: int,
    blocks: int, now: int,
) -> None:  # fmt: skip
    """After an issue: to the next instruction, into a barrier, or out."""
    kind = code[state[w + Warp.POSITION] + Row.KIND]
    seat = state[w + Warp.SEAT]
    advance(code, work, machine, state, w, now)
    place = state[w + Warp.READY]
    state[place] = FAR
    if state[w + Warp.VISIT] >= state[w + Warp.LAST_VISIT]:
        state[seat + Seat.ALIVE] -= 1
        if state[seat + Seat.ALIVE] == 0:
            state[layout.ends + state[w + Warp.BLOCK]] = now + 1
            state[Sm.FINISHED] += 1
            if state[Sm.STARTED] < blocks:
                at = next_start(machine, state, now + machine.block_start)
                start_block(code, work, machine, layout, state, seat, at)
                wake(layout, state, at)
    else:
        p = state[w + Warp.POSITION]
        if code[p + Row.FIRST] or state[w + Warp.JUMP_END]:
            state[w + Warp.FETCH_END] = fetch(machine, layout, state, c, code[p + Row.LINE], now)
        set_gate(code, layout, state, c, w)
        if kind == Kind.BARRIER:
            state[seat + Seat.ARRIVED] += 1
            state[w + Warp.WAITING] = 1
        elif kind != Kind.PRODUCT_WAIT or not is_parked(layout, state, w):
            resume(code, layout, state, w)
            at = layout.nexts + number
            state[at] = min(state[at], max(now + 1, state[place]))
    if layout.sides < layout.ends and (kind in (Kind.MEET, Kind.EXIT)):
        open_meets(code, work, machine, layout, state, seat, now)
    if state[seat + Seat.ARRIVED] and state[seat + Seat.ARRIVED] == state[seat + Seat.ALIVE]:
        open_barrier(code, work, machine, layout, state, seat, now)
        wake(layout, state, now + 1)


@inlined
def soonest_issue(layout: Layout, state: Int) -> int:
    """No sub-core can issue before."""
    at = layout.nexts
    return min(state[at], state[at + 1], state[at + 2], state[at + 3])


@inlined
def come_to(looks: Int, state: Int, w: int, now: int) -> None:
    """Note when a warp first came to its next instruction."""
    if state[w + Warp.VISIT] < state[w + Warp.LAST_VISIT]:
        row = state[w + Warp.POSITION] // _ROW_WIDTH
        looks[row] = min(looks[row], now)


@inlined
def end_visit(passes: Int, rival: Int, limits: Limits, state: Int, now: int) -> bool:
    """Note when a visit of a block ended; has every warp been behind the rival by too much, one after the
    other?"""
    number = state[Sm.VISITS]
    state[Sm.VISITS] = number + 1
    passes[number] = now
    is_late = number < limits.rivals and now - rival[number] > limits.allowed
    state[Sm.LATE] = state[Sm.LATE] + 1 if is_late else 0
    return bool(state[Sm.LATE] >= limits.patience)


@compiled
def run(
    code: Int, work: Int, machine: Machine, layout: Layout, state: Int, tally: Int | None, log: Int | None,
    course: Pointers | None, resident: int, blocks: int,
) -> int:  # fmt: skip
    """Until all blocks are done, or nobody can issue again: a barrier or products are waited for in vain.

    A state in which blocks have started already is gone on from. Says how many marks were reached.
    """
    p = 0
    if not state[Sm.STARTED]:
        for k in range(min(resident, blocks)):
            seat = layout.seats + k * _SEAT_WIDTH
            start_block(code, work, machine, layout, state, seat, next_start(machine, state, 0))
            if course is not None:
                come_to(course.looks, state, state[seat + Seat.WARPS], 0)
    now, mark = soonest_issue(layout, state), 0
    while now < FAR and state[Sm.FINISHED] < blocks:
        if course is not None:
            while mark < course.limits.marks and course.marks[mark] <= now:
                for k in range(layout.size):
                    course.kept[mark * layout.size + k] = state[k]
                mark += 1
        for number in range(SUB_CORES):
            if state[layout.nexts + number] <= now:
                c = layout.cores + number * layout.core_width
                w, state[layout.nexts + number] = choose(code, machine, layout, state, number, c, now)
                if w >= 0:
                    if tally is not None:
                        attribute(code, state, tally, c, w, Tally.CORES + number * Tally.REASONS, now)
                    if course is not None:
                        p = state[w + Warp.POSITION]
                    issue(code, work, machine, layout, state, tally, log, c, w, now)
                    go_on(code, work, machine, layout, state, number, c, w, blocks, now)
                    if course is not None:
                        come_to(course.looks, state, w, now)
                        if code[p + Row.LAST] and end_visit(
                            course.passes, course.rival, course.limits, state, now
                        ):
                            return mark
        now = soonest_issue(layout, state)
    return mark


@compiled
def replay(
    code: Int, work: Int, machine: Machine, layout: Layout, empty: Int, resident: int, blocks: int, seed: int,
    tally: Int, log: Int,
) -> Int:  # fmt: skip
    """Run `blocks` blocks, `resident` at a time, on the ways of the traced blocks in turn.

    Counts in `tally`, writes a `Note` of every issue to `log` as far as it reaches, and gives the cycle in
    which each block was done; 0 for one that never was.
    """
    state = empty.copy()
    state[Sm.LOG_SIZE] = log.size
    state[Sm.SEED] = seed
    run(
        pointer_to(code), pointer_to(work), machine, layout, pointer_to(state), pointer_to(tally),
        pointer_to(log), None, resident, blocks,
    )  # fmt: skip
    ends = block_ends(layout, state, blocks)
    for number in range(SUB_CORES):
        issued = state[layout.cores + number * layout.core_width + Core.LAST_ISSUE]
        tally[Tally.CORES + number * Tally.REASONS + Reason.NO_WARP] += ends.max() - issued - 1
    return ends


@compiled
def replay_time(
    code: Int, work: Int, machine: Machine, layout: Layout, begun: Int, resident: int, blocks: int, seed: int,
    sheet: Sheet,
) -> tuple[Int, Int, int]:  # fmt: skip
    """As `replay`, but nothing is counted or written down: Numba leaves out what is for a tally or a log.

    `begun` is an empty state, or one that was kept at a mark of a replay under the same seed. Gives the cycle
    in which each block was done, the state at each mark that was reached, and by how many cycles it was
    behind the rival when it was given up; 0 if it was not.
    """
    state = begun.copy()
    state[Sm.SEED] = seed
    kept = np.empty(len(sheet.marks) * layout.size, np.int64)
    patience = resident * work[Job.WARPS_PER_BLOCK]
    limits = Limits(len(sheet.marks), len(sheet.rival), sheet.allowed, patience)
    course = Pointers(
        pointer_to(sheet.looks), pointer_to(sheet.passes), pointer_to(sheet.marks), pointer_to(kept),
        pointer_to(sheet.rival), limits,
    )  # fmt: skip
    # What happened before the mark counts as if it had been replayed.
    past, reached = state[Sm.VISITS], 0
    state[Sm.VISITS] = state[Sm.LATE] = 0
    is_given_up = False
    while state[Sm.VISITS] < past and not is_given_up:
        at = sheet.passes[state[Sm.VISITS]]
        is_given_up = end_visit(course.passes, course.rival, limits, pointer_to(state), at)
    if not is_given_up:
        reached = run(
            pointer_to(code), pointer_to(work), machine, layout, pointer_to(state), None, None, course,
            resident, blocks,
        )  # fmt: skip
    behind = 0
    if state[Sm.LATE] >= patience:
        last = state[Sm.VISITS] - 1
        behind = sheet.passes[last] - sheet.rival[last]
    return block_ends(layout, state, blocks), kept[: reached * layout.size], behind


@compiled
def block_ends(layout: Layout, state: Int, blocks: int) -> Int:
    """When each block was done; 0 for one that never was."""
    ends = state[layout.ends : layout.ends + blocks].copy()
    # The kernel has ended when its last stores are through.
    drained = max(state[Sm.L2_FREE], state[Sm.L2_DUE], state[Sm.DRAM_DUE]) // PARTS
    last = ends.argmax()
    if ends.all():
        ends[last] = max(ends[last], drained)
    return ends
