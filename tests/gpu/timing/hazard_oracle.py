"""What the sanitizer must find, worked out slowly and in another way: from every access, look back.

Of `cuasmrl.gpu.timing` it knows the log and the latencies alone. What instructions read and write, and their
queues, are facts of `cuasmrl.binary.sass`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from itertools import accumulate, product

from cuasmrl.binary.sass import GUARD, Access, File, Hazard, Instruction, Order, Pipe, file_of
from cuasmrl.gpu.timing import Result
from cuasmrl.gpu.timing.latencies import latencies
from cuasmrl.gpu.timing.records import Note
from cuasmrl.schedule import Schedule, control_flow

Pair = tuple[Hazard, int, int]
"""What is wrong, place of the first instruction, place of the second."""
_LONGEST = 100
"""No fixed latency takes as many cycles."""


@dataclass
class Matter:
    """A pair that comes too close."""

    rows: set[int] = field(default_factory=set)
    """Issues of the second one that are too soon."""
    missing: int = 0
    """Cycles, at worst."""


@dataclass(frozen=True)
class Event:
    """One issue of a warp."""

    row: int
    place: int
    instruction: Instruction
    cycle: int
    complete: int
    freed: int
    listed: int
    """The sum of the listing's stall counts on the way here."""
    condition: tuple[int, int, bool] | None
    """Guard, how often it was written before, and whether it is inverted."""


class Stretch(list[Event]):
    """Issues of a warp until other lanes of it take over."""

    def __init__(self) -> None:
        self.touched: dict[int, list[int]] = defaultdict(list)
        """By register: those that read or write it."""


def matters(schedule: Schedule, result: Result) -> dict[Pair, Matter]:
    """Everything in a log that comes too soon."""
    found: dict[Pair, Matter] = defaultdict(Matter)
    for stretch in _stretches(schedule, result):
        for j, event in enumerate(stretch):
            if not event.instruction.never_executes:
                _look_back(schedule, stretch, j, found)
                for register in {*_reads(event), *_writes(event)}:
                    stretch.touched[register].append(j)
    return dict(found)


@cache
def _timed(accesses: tuple[Access, ...]) -> frozenset[int]:
    return frozenset(a.register for a in accesses if file_of(a.register) is not File.B)


def _reads(event: Event) -> frozenset[int]:
    return _timed(event.instruction.uses)


def _writes(event: Event) -> frozenset[int]:
    return _timed(event.instruction.defs)


def _stretches(schedule: Schedule, result: Result) -> list[Stretch]:
    code, blocks = schedule.listing.instructions, control_flow(schedule.listing)
    head = {block.start: block for block in blocks}
    block_of = {place: block for block in blocks for place in range(block.start, block.end)}
    clock = [0, *accumulate(max(1, i.control.stall) for i in code)]
    warps: dict[tuple[int, int], list[Stretch]] = defaultdict(list)
    blocks_end: dict[tuple[int, int], int] = defaultdict(int)
    written: dict[tuple[int, int, int], int] = defaultdict(int)
    for number, row in enumerate(result.log[result.log[:, Note.CYCLE] >= 0].tolist()):
        warp, place = (row[Note.BLOCK], row[Note.WARP]), row[Note.POSITION]
        index = schedule.order[place]
        i, block = code[index], block_of[place]
        if not warps[warp]:
            warps[warp].append(Stretch())
        elif place in head:
            before = block_of[warps[warp][-1][-1].place]
            blocks_end[warp] += clock[before.end] - clock[before.start]
            if block.number not in before.successors:
                warps[warp].append(Stretch())
        condition = None
        if i.is_conditional and i.guard is not None:
            (guard,) = [use.register for use in i.uses if use.role == GUARD]
            condition = guard, written[*warp, guard], i.guard.inverted
        listed = blocks_end[warp] + clock[index] - clock[block.start]
        times = row[Note.CYCLE], row[Note.COMPLETE], row[Note.FREED]
        warps[warp][-1].append(Event(number, place, i, *times, listed, condition))
        for access in () if i.never_executes else i.defs:
            written[*warp, access.register] += 1
    return [stretch for stretches in warps.values() for stretch in stretches]


def _look_back(schedule: Schedule, stretch: Stretch, j: int, found: dict[Pair, Matter]) -> None:
    """All operations on the registers of an issue, back to who replaced for sure what was there before."""
    now = stretch[j]
    for register in _reads(now) | _writes(now):
        for k in reversed(stretch.touched[register]):
            then = stretch[k]
            recent = now.cycle < max(then.complete, then.freed, then.cycle + _LONGEST)
            for hazard, touched in (
                (
                    (Hazard.RAW, register in _reads(now) and register in _writes(then)),
                    (Hazard.WAW, register in _writes(now) and register in _writes(then)),
                    (Hazard.WAR, register in _writes(now) and register in _reads(then)),
                )
                if recent
                else ()
            ):
                at = now.cycle if hazard is Hazard.RAW else now.complete
                if touched:
                    missing = _allowed(schedule, stretch, k, j, register, hazard) - at
                    if missing > 0:
                        matter = found[hazard, then.place, now.place]
                        matter.rows.add(now.row)
                        matter.missing = max(matter.missing, missing)
            if register in _writes(then) and then.condition is None:
                break


def _allowed(schedule: Schedule, stretch: Stretch, k: int, j: int, register: int, hazard: Hazard) -> int:
    """The cycle from which on the later issue may touch the register."""
    then, now = stretch[k], stretch[j]
    if _exclude(then, now):
        return 0
    if hazard is not Hazard.RAW and _share_queue(then.instruction, now.instruction, hazard):
        return 0
    declaration = then.instruction.declaration
    assert declaration is not None
    if then.instruction.is_variable:
        if hazard is Hazard.WAR and file_of(register) is File.R:
            return min(event.freed for event in _spokesmen(schedule, stretch, k, j, hazard))
        if hazard is not Hazard.WAR:
            if declaration.predicate_with_sources and file_of(register) is File.P:
                return then.freed
            return min(event.complete for event in _spokesmen(schedule, stretch, k, j, hazard))
    after = then.cycle + _distance(then, now, register, hazard)
    return after if hazard is Hazard.WAR else max(then.complete, after)


def _exclude(then: Event, now: Event) -> bool:
    if then.condition is None or now.condition is None:
        return False
    return then.condition[:2] == now.condition[:2] and then.condition[2] != now.condition[2]


def _distance(then: Event, now: Event, register: int, hazard: Hazard) -> int:
    """Cycles that the chip needs between the two; or what the listing has, if they may exclude each other."""
    longest = max(_latencies(then.instruction, now.instruction, register, hazard), default=0)
    listed = now.listed - then.listed
    unsure = None not in (then.condition, now.condition) and then.condition != now.condition
    return min(longest, listed) if unsure and listed >= 0 else longest


@cache
def _latencies(first: Instruction, second: Instruction, register: int, hazard: Hazard) -> tuple[int, ...]:
    """What is claimed for the roles that the register has in the two."""
    times, file = latencies(first.arch), file_of(register)
    early = [a.role for a in (first.uses if hazard is Hazard.WAR else first.defs) if a.register == register]
    late = [a.role for a in (second.uses if hazard is Hazard.RAW else second.defs) if a.register == register]
    if hazard is not Hazard.RAW and second.is_variable:
        return ()
    found = []
    for role, other in product(early, late):
        if hazard is Hazard.RAW:
            cycles = times.read_after(file, first.timing_key, role, second.timing_key, other)
        elif hazard is Hazard.WAW:
            cycles = times.overwrite_after(file, first.timing_key, role, second.timing_key, other)
        else:
            cycles = times.free_after(file, first.timing_key, role, second.timing_key)
        found.append(cycles or 0)
    return tuple(found)


def _share_queue(first: Instruction, second: Instruction, hazard: Hazard) -> bool:
    """Does hardware keep their results, or the reading of their sources, in order?"""
    one, other = first.declaration, second.declaration
    if one is None or other is None or not (first.is_variable and second.is_variable):
        return False
    if Order.SYNC in (first.order, second.order):
        return False
    if hazard is Hazard.WAR:
        return one.queue == other.queue or one.pipe is other.pipe is Pipe.MEMORY
    return one.queue == other.queue and one.returns_in_order(first.arch)


def _spokesmen(schedule: Schedule, stretch: Stretch, k: int, j: int, hazard: Hazard) -> Iterator[Event]:
    """An operation, and those behind it in its queue that somebody has waited for by now."""
    then, waited = stretch[k], set(_waits(schedule, stretch[j].instruction))
    yield then
    for later in reversed(stretch[k + 1 : j]):
        control = schedule.controls[later.instruction.index]
        boards = set(control.sets) if hazard is Hazard.WAR else {control.write_barrier}
        sure = later.condition in (None, then.condition) and bool(later.instruction.defs)
        speaks = boards & waited and (hazard is Hazard.WAR or sure)
        if speaks and _share_queue(then.instruction, later.instruction, hazard):
            yield later
        waited.update(_waits(schedule, later.instruction))


def _waits(schedule: Schedule, i: Instruction) -> tuple[int, ...]:
    waits = schedule.controls[i.index].waits
    if i.depbar is None:
        return waits
    board, count, others = i.depbar
    return (*waits, *others) if count else (*waits, *others, board)
