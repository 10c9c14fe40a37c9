"""One SM at work: four sub-cores issue the instructions of resident blocks, cycle by cycle.

Everything an instruction will ever wait for is known when it is issued, because units, ports and queues are
reserved in the order of issue: so there is no event queue, and cycles in which nobody can issue are skipped.

An instruction that is issued in cycle t is in Control in t + 1 and, if its latency is fixed, in Allocate from
t + 2 on, where it waits for its read ports and holds up what comes behind.
"""

from typing import NamedTuple

import numpy as np

from cuasmrl.timing.attribution import Tally, attribute
from cuasmrl.timing.code import Code, Int
from cuasmrl.timing.columns import FAR, SUB_CORES, Core, Kind, Reason, Row, Sm, Unit, Warp
from cuasmrl.timing.compiled import compiled
from cuasmrl.timing.front_end import INSTRUCTIONS_PER_LINE, fetch
from cuasmrl.timing.machine import Machine
from cuasmrl.timing.pipes import issue
from cuasmrl.timing.state import State, empty_state
from cuasmrl.timing.waits import issue_time, ready_time
from cuasmrl.timing.work import Work

_REASONS, _UNITS = len(Reason), len(Unit)


class Result(NamedTuple):
    """What one replay gave, in modelled cycles."""

    cycles: int
    instructions: int
    warp_reasons: Int
    """Cycles of all warps by reason: the sum is the sum of their lives."""
    core_reasons: Int
    """Cycles of each sub-core by reason; each row sums to `cycles`."""
    row_reasons: Int
    """Cycles of all warps by row of the code and reason."""
    row_issues: Int
    unit_busy: Int
    """Cycles for which the units of a kind were held, all sub-cores together."""
    block_end: Int
    """When each block was done."""


@compiled
def advance(code: Code, work: Work, warp: Int, machine: Machine, now: int) -> None:
    """To the next instruction on the warp's way."""
    following = warp[Warp.PLACE] + 1
    if following >= code.block_end[work.path[warp[Warp.VISIT]]]:
        warp[Warp.VISIT] += 1
        if warp[Warp.VISIT] < warp[Warp.LAST_VISIT]:
            target = code.block_start[work.path[warp[Warp.VISIT]]]
            if target != following:
                warp[Warp.JUMP_END] = now + machine.branch_taken
            following = target
    warp[Warp.PLACE] = following


@compiled
def start_block(code: Code, work: Work, state: State, seat: int, now: int) -> None:
    """Put the warps of the next block into their slots; they may issue from cycle `now` on."""
    block = state.sm[Sm.STARTED]
    state.sm[Sm.STARTED] += 1
    state.alive[seat] = work.warps_per_block
    first = seat * work.warps_per_block
    for k in range(work.warps_per_block):
        warp = state.warps[first + k]
        warp[:] = 0
        state.results[first + k, :] = 0
        warp[Warp.BLOCK] = block
        warp[Warp.TRACED] = block % work.blocks * work.warps_per_block + k
        warp[Warp.VISIT] = work.path_start[warp[Warp.TRACED]]
        warp[Warp.LAST_VISIT] = work.path_start[warp[Warp.TRACED] + 1]
        warp[Warp.PLACE] = code.block_start[work.path[warp[Warp.VISIT]]]
        warp[Warp.BORN] = now
        warp[Warp.LAST_ISSUE] = now - 1
        warp[Warp.STALL_END] = now
        warp[Warp.READY] = now


@compiled
def open_barrier(code: Code, state: State, seat: int, per_block: int, release: int) -> None:
    """All warps of a block that wait at its barrier may go on."""
    state.arrived[seat] = 0
    for w in range(seat * per_block, (seat + 1) * per_block):
        warp = state.warps[w]
        if warp[Warp.WAITING]:
            warp[Warp.WAITING] = 0
            warp[Warp.RELEASE] = release
            warp[Warp.READY] = ready_time(code.rows[warp[Warp.PLACE]], warp, code.registers, state.results[w])


@compiled
def choose(code: Code, machine: Machine, state: State, number: int, now: int) -> tuple[int, int]:
    """The warp that issues now, or -1; and when the next one of this sub-core may.

    Greedy, then youngest: the warp that issued last, else the one that came last or has the highest number.
    """
    warps, core, constants = state.warps, state.cores[number], state.constants[number]
    best, soonest = -1, FAR
    for w in range(number, warps.shape[0], SUB_CORES):
        at = warps[w, Warp.READY]
        if at <= now:
            at = issue_time(code.rows[warps[w, Warp.PLACE]], core, constants, w, machine, now)
        if at > now:
            soonest = min(soonest, at)
        elif w == core[Core.LAST_WARP]:
            return w, soonest
        elif best < 0 or warps[w, Warp.BORN] >= warps[best, Warp.BORN]:
            best = w
    return best, soonest


@compiled
def go_on(code: Code, work: Work, machine: Machine, state: State, number: int, w: int, now: int) -> int:
    """After an issue: to the next instruction, into a barrier, or out. Says when this warp may issue."""
    warp = state.warps[w]
    at_barrier = code.rows[warp[Warp.PLACE], Row.KIND] == Kind.BARRIER
    seat, following = w // work.warps_per_block, FAR
    advance(code, work, warp, machine, now)
    warp[Warp.READY] = FAR
    if warp[Warp.VISIT] >= warp[Warp.LAST_VISIT]:
        state.alive[seat] -= 1
        if state.alive[seat] == 0:
            state.block_end[warp[Warp.BLOCK]] = now + 1
            state.sm[Sm.FINISHED] += 1
            if state.sm[Sm.STARTED] < state.block_end.size:
                following = now + machine.block_start
                start_block(code, work, state, seat, following)
    else:
        if warp[Warp.PLACE] % INSTRUCTIONS_PER_LINE == 0 or warp[Warp.JUMP_END]:
            warp[Warp.FETCH_END] = fetch(
                state.lines[number], state.held[number], warp[Warp.PLACE], now, machine
            )
        if at_barrier:
            state.arrived[seat] += 1
            warp[Warp.WAITING] = 1
        else:
            following = ready_time(code.rows[warp[Warp.PLACE]], warp, code.registers, state.results[w])
            warp[Warp.READY] = following
    if state.arrived[seat] and state.arrived[seat] == state.alive[seat]:
        open_barrier(code, state, seat, work.warps_per_block, now + machine.bar_latency)
        following = now + 1
    return following


@compiled
def replay(code: Code, work: Work, machine: Machine, resident: int, blocks: int, seed: int) -> Result:
    """Run `blocks` blocks, `resident` at a time, on the ways of the traced blocks in turn."""
    rows = code.rows.shape[0]
    state = empty_state(machine, resident, work.warps_per_block, blocks)
    tally = Tally(
        np.zeros(_REASONS, np.int64),
        np.zeros((SUB_CORES, _REASONS), np.int64),
        np.zeros((rows, _REASONS), np.int64),
        np.zeros(rows, np.int64),
        np.zeros(_UNITS, np.int64),
    )
    for seat in range(min(resident, blocks)):
        start_block(code, work, state, seat, 0)
    now = 0
    while state.sm[Sm.FINISHED] < blocks:
        following = FAR
        for number in range(SUB_CORES):
            w, soonest = choose(code, machine, state, number, now)
            following = min(following, soonest)
            if w >= 0:
                attribute(code, machine, state, tally, number, w, now)
                issue(code, work, machine, state, tally, number, w, now, seed)
                state.sm[Sm.ISSUED] += 1
                following = min(following, go_on(code, work, machine, state, number, w, now))
        if following >= FAR:
            # Nobody can ever issue again: the last block has just ended, or a barrier waits for ever.
            break
        now = max(now + 1, following)
    cycles = state.block_end.max()
    for number in range(SUB_CORES):
        tally.cores[number, Reason.NO_WARP] += cycles - state.cores[number, Core.LAST_ISSUE] - 1
    return Result(
        cycles if state.sm[Sm.FINISHED] == blocks else -1,
        state.sm[Sm.ISSUED],
        tally.warps,
        tally.cores,
        tally.rows,
        tally.issues,
        tally.units,
        state.block_end,
    )
