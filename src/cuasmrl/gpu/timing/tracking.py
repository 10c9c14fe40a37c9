"""Warps followed through the log of a replay: who touched a register too soon. Compiled, for the sanitizer.

A step is an issue of the warp that is being followed. Operations under way are kept by register: results
until it is overwritten, and reads. In compiled functions `j` is the number of a step, `t` the place of a
`Touch`.
"""

from enum import IntEnum

import numpy as np

from cuasmrl.binary.sass import RESOURCES
from cuasmrl.compiled import compiled, pointer_to
from cuasmrl.gpu.timing.arrivals import Arrivals, Clock, Touch, Trait
from cuasmrl.gpu.timing.code import Int
from cuasmrl.gpu.timing.endings import (
    RAW,
    WAR,
    WAW,
    Sight,
    Step,
    in_order,
    read_end,
    result_end,
    same_guard,
    same_sign,
)  # fmt: skip
from cuasmrl.gpu.timing.records import Note
from cuasmrl.schedule import Schedule

MEETINGS = 1 << 14
"""Room for pairs of instructions; half of it is used at most, so that a free place is soon found."""
_DEPTH = 32
"""Operations under way that are kept for a register; beyond that the oldest are forgotten."""


class Pending(IntEnum):
    """An operation under way; those of a register stand behind their number."""

    STEP = 0
    TOUCH = 1
    UNTIL = 2
    """From this cycle on nobody can come too soon."""
    WIDTH = 3


class Meeting(IntEnum):
    """Two instructions that came too close; all but the first three fields are of the worst time."""

    KEY = 0
    """Names hazard and pair; 0 for a free place."""
    TIMES = 1
    LAST = 2
    """Row of the second one when it was last too soon."""
    FIRST = 3
    """Row of the log."""
    SECOND = 4
    REGISTER = 5
    AT = 6
    """When the second one touched the register."""
    END = 7
    """When it might have."""
    WIDTH = 8


_NOTE, _STEP, _TRAIT, _TOUCH = int(Note.WIDTH), int(Step.WIDTH), int(Trait.WIDTH), int(Touch.WIDTH)
_PENDING, _MEETING = int(Pending.WIDTH), int(Meeting.WIDTH)
_SLOT = 1 + _DEPTH * _PENDING
"""A register has two: one for results and, RESOURCES further on, one for reads."""
_TAKEN = MEETINGS * _MEETING
"""Behind the last meeting: how many there are."""


@compiled
def enter(sight: Sight, j: int, second: int, register: int, hazard: int, at: int, end: int) -> None:
    """Enter a meeting: one for each hazard and pair of instructions, with its worst time."""
    steps, meetings = sight.steps, sight.meetings
    first, other = steps[j * _STEP + Step.INSTRUCTION], steps[second * _STEP + Step.INSTRUCTION]
    key = 1 + (hazard * sight.instructions + first) * sight.instructions + other
    m = key % MEETINGS * _MEETING
    while meetings[m + Meeting.KEY] not in (0, key):
        m = (m + _MEETING) % _TAKEN
    if meetings[m + Meeting.KEY] == 0:
        if 2 * meetings[_TAKEN] >= MEETINGS:
            return
        meetings[_TAKEN] += 1
        meetings[m + Meeting.KEY] = key
        meetings[m + Meeting.LAST] = -1
    row = steps[second * _STEP + Step.ROW]
    if meetings[m + Meeting.LAST] != row:
        meetings[m + Meeting.LAST] = row
        meetings[m + Meeting.TIMES] += 1
    if end - at > meetings[m + Meeting.END] - meetings[m + Meeting.AT]:
        meetings[m + Meeting.FIRST] = steps[j * _STEP + Step.ROW]
        meetings[m + Meeting.SECOND] = row
        meetings[m + Meeting.REGISTER] = register
        meetings[m + Meeting.AT] = at
        meetings[m + Meeting.END] = end


@compiled
def meet(a: Arrivals, sight: Sight, second: int, register: int, kind: int, hazard: int, at: int) -> None:
    """A step touches a register at some time: enter the operations under way that mind."""
    slot = (register + RESOURCES if hazard == WAR else register) * _SLOT
    for p in range(slot + 1, slot + 1 + sight.pending[slot] * _PENDING, _PENDING):
        if sight.pending[p + Pending.UNTIL] <= at:
            continue
        j, t = sight.pending[p + Pending.STEP], sight.pending[p + Pending.TOUCH]
        if hazard != RAW and in_order(a, sight, j, second, hazard):
            continue
        if same_guard(a, sight, j, second) and not same_sign(a, sight, j, second):
            continue
        if hazard == WAR:
            end = read_end(a, sight, j, t, second, kind)
        else:
            end = result_end(a, sight, j, t, second, kind, hazard)
        if end > at:
            enter(sight, j, second, register, hazard, at, end)


@compiled
def touch(a: Arrivals, sight: Sight, j: int) -> None:
    """Compare what a step reads and writes with what is under way."""
    row = sight.steps[j * _STEP + Step.INSTRUCTION] * _TRAIT
    now, complete = sight.steps[j * _STEP + Step.CYCLE], sight.steps[j * _STEP + Step.COMPLETE]
    for t in range(a.traits[row + Trait.USES], a.traits[row + _TRAIT + Trait.USES], _TOUCH):
        meet(a, sight, j, a.uses[t + Touch.REGISTER], a.uses[t + Touch.KIND], RAW, now)
    for t in range(a.traits[row + Trait.DEFS], a.traits[row + _TRAIT + Trait.DEFS], _TOUCH):
        register, kind = a.defs[t + Touch.REGISTER], a.defs[t + Touch.KIND]
        meet(a, sight, j, register, kind, WAW, complete)
        meet(a, sight, j, register, kind, WAR, complete)


@compiled
def begin(pending: Int, slot: int, j: int, t: int, until: int, now: int) -> None:
    """Keep an operation in mind; those that are over make room, else the oldest."""
    slot *= _SLOT
    count = pending[slot]
    if count == _DEPTH:
        count = 0
        for p in range(slot + 1, slot + _SLOT, _PENDING):
            if pending[p + Pending.UNTIL] > now:
                for field in range(_PENDING):
                    pending[slot + 1 + count * _PENDING + field] = pending[p + field]
                count += 1
        if count == _DEPTH:
            count -= 1
            for p in range(slot + 1, slot + 1 + count * _PENDING):
                pending[p] = pending[p + _PENDING]
    p = slot + 1 + count * _PENDING
    pending[p + Pending.STEP] = j
    pending[p + Pending.TOUCH] = t
    pending[p + Pending.UNTIL] = until
    pending[slot] = count + 1


@compiled
def set_off(a: Arrivals, sight: Sight, j: int) -> None:
    """What a step sets under way, unless it is over a cycle later, when the next one may issue."""
    steps, pending = sight.steps, sight.pending
    row = steps[j * _STEP + Step.INSTRUCTION] * _TRAIT
    now, freed = steps[j * _STEP + Step.CYCLE], steps[j * _STEP + Step.FREED]
    defs, defs_end = a.traits[row + Trait.DEFS], a.traits[row + _TRAIT + Trait.DEFS]
    for t in range(defs, defs_end, _TOUCH):
        register = a.defs[t + Touch.REGISTER]
        sight.writes[register] += 1
        if a.traits[row + Trait.GUARD] < 0:
            pending[register * _SLOT] = 0
            pending[(RESOURCES + register) * _SLOT] = 0
    for t in range(a.traits[row + Trait.USES], a.traits[row + _TRAIT + Trait.USES], _TOUCH):
        until = now + a.free_reach[a.uses[t + Touch.KIND]]
        if a.uses[t + Touch.CLOCK] == Clock.FREED:
            until = freed
        if until > now + 1:
            begin(pending, RESOURCES + a.uses[t + Touch.REGISTER], j, t, until, now)
    for t in range(defs, defs_end, _TOUCH):
        until = steps[j * _STEP + Step.COMPLETE]
        if a.defs[t + Touch.CLOCK] == Clock.FREED:
            until = freed
        elif a.defs[t + Touch.CLOCK] == Clock.FIXED:
            until = max(until, now + a.reach[a.defs[t + Touch.KIND]])
        if until > now + 1:
            begin(pending, a.defs[t + Touch.REGISTER], j, t, until, now)


@compiled
def forget(pending: Int) -> None:
    for slot in range(0, 2 * RESOURCES * _SLOT, _SLOT):
        pending[slot] = 0


@compiled
def take(a: Arrivals, sight: Sight, log: Int, row: int, j: int, i: int, clock: int) -> None:
    """Make step j of a row of the log."""
    step, note = j * _STEP, row * _NOTE
    sight.steps[step + Step.INSTRUCTION] = i
    sight.steps[step + Step.CYCLE] = log[note + Note.CYCLE]
    sight.steps[step + Step.COMPLETE] = log[note + Note.COMPLETE]
    sight.steps[step + Step.FREED] = log[note + Note.FREED]
    sight.steps[step + Step.CLOCK] = clock + a.traits[i * _TRAIT + Trait.START]
    guard = a.traits[i * _TRAIT + Trait.GUARD]
    sight.steps[step + Step.VERSION] = sight.writes[guard] if guard >= 0 else 0
    sight.steps[step + Step.ROW] = row


@compiled
def follow_warp(
    a: Arrivals, sight: Sight, log: Int, order: Int, positions: Int, first: int, last: int
) -> None:
    """One warp from its first issue to its last.

    Where it goes on along no edge of the control flow, other lanes of it do: what is under way is not theirs.
    """
    forget(sight.pending)
    clock, block = 0, -1
    for j in range(last - first):
        row = order[first + j]
        position = log[row * _NOTE + Note.POSITION]
        i = positions[position]
        before, block = block, a.traits[i * _TRAIT + Trait.BLOCK]
        if before >= 0 and position == a.heads[block]:
            clock += a.totals[before]
            if not a.edges[before * a.blocks + block]:
                forget(sight.pending)
        take(a, sight, log, row, j, i, clock)
        if not a.traits[i * _TRAIT + Trait.SKIPPED]:
            touch(a, sight, j)
            set_off(a, sight, j)


@compiled
def follow(
    arrivals: Arrivals, log: Int, order: Int, bounds: Int, positions: Int, controls: Int, steps: Int,
    pending: Int, writes: Int, meetings: Int,
) -> None:  # fmt: skip
    """All warps, one after the other; `bounds` says where each begins in `order`."""
    a = Arrivals(
        pointer_to(arrivals.traits), pointer_to(arrivals.uses), pointer_to(arrivals.defs), arrivals.kinds,
        pointer_to(arrivals.read_after), pointer_to(arrivals.overwrite_after),
        pointer_to(arrivals.free_after), pointer_to(arrivals.reach), pointer_to(arrivals.free_reach),
        arrivals.blocks, pointer_to(arrivals.heads), pointer_to(arrivals.totals),
        pointer_to(arrivals.edges),
    )  # fmt: skip
    sight = Sight(
        pointer_to(steps), pointer_to(controls), pointer_to(pending), pointer_to(writes),
        pointer_to(meetings), positions.size,
    )  # fmt: skip
    for w in range(bounds.size - 1):
        follow_warp(
            a, sight, pointer_to(log), pointer_to(order), pointer_to(positions), bounds[w], bounds[w + 1]
        )


def track(log: Int, schedule: Schedule, arrivals: Arrivals) -> Int:
    """A `Meeting` for each pair of instructions that came too close anywhere in the log."""
    warps = log[:, Note.BLOCK] * (log[:, Note.WARP].max() + 1) + log[:, Note.WARP]
    order = np.argsort(warps, kind="stable")
    ends = 1 + np.flatnonzero(np.diff(warps[order]))
    bounds = np.concatenate([[0], ends, [len(order)]]).astype(np.int64)
    positions, controls = schedule.indices.astype(np.int64), schedule.bits.astype(np.int64)
    steps = np.zeros(int(np.diff(bounds).max()) * _STEP, np.int64)
    pending = np.zeros(2 * RESOURCES * _SLOT, np.int64)
    writes = np.zeros(RESOURCES, np.int64)
    meetings = np.zeros(_TAKEN + 1, np.int64)
    follow(
        arrivals, log.reshape(-1), order, bounds, positions, controls, steps, pending, writes, meetings
    )  # fmt: skip
    rows = meetings[:_TAKEN].reshape(-1, _MEETING)
    return rows[rows[:, Meeting.KEY] > 0]
