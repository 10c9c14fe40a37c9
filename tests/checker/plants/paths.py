"""Faults that need two blocks: the path from one to the other is too short, or a wait is missing on it."""

import random
from collections.abc import Iterator
from dataclasses import replace
from enum import StrEnum
from functools import partial
from typing import NamedTuple

from cuasmrl.binary.sass import BARRIERS, File, Hazard, Order, file_of
from cuasmrl.checker import Rule
from tests.checker.plants.base import Plant, Site, edit, kind, raised, waiting, without
from tests.checker.plants.scoreboards import last_raised, named_by_depbar, queue_of
from tests.checker.plants.timing import can_cut, cut
from tests.checker.subjects import Subject, Timed

_STRICT = (Order.SYNC, Order.PRODUCT, Order.PINNED)
_LEAVES = ("BRA", "BRX", "BRXU", "JMP", "JMX", "EXIT", "RET", "CALL", "BSYNC", "KILL")
_NEAR = 30
"""Cycles before the end of a block in which a producer is looked for."""


class How(StrEnum):
    TAKEN = "behind a branch"
    BACK = "round a loop"
    FALLS = "behind a branch that is not taken"
    TABLE = "behind a jump by a table"
    CALL = "in a function that is called"
    RETURN = "behind a return"


class Way(NamedTuple):
    """From the last instruction of a block to the first of one that may follow it."""

    how: How
    last: int
    head: int


def ways(subject: Subject) -> Iterator[Way]:
    tables = subject.listing.kernel.branch_targets()
    behind_calls = [i.index + 1 for i in subject.code if i.opcode == "CALL"]
    for i in subject.code:
        ends = i.index + 1 == len(subject.code) or subject.block[i.index] != subject.block[i.index + 1]
        if not ends or i.never_executes:
            continue
        if i.opcode == "BRA" and i.target is not None:
            yield Way(How.BACK if i.target <= i.address else How.TAKEN, i.index, i.target // 16)
        if i.opcode == "CALL" and i.target is not None:
            yield Way(How.CALL, i.index, i.target // 16)
        for target in tables.get(i.address, ()) if i.opcode in ("BRX", "BRXU") else ():
            yield Way(How.TABLE, i.index, target // 16)
        for behind in behind_calls if i.opcode == "RET" else ():
            yield Way(How.RETURN, i.index, behind)
        if (i.is_conditional or i.opcode not in _LEAVES) and i.index + 1 < len(subject.code):
            yield Way(How.FALLS, i.index, i.index + 1)


# ---- too short ----


def _crossing(subject: Subject, way: Way) -> Iterator[tuple[Timed, int]]:
    """What time keeps over a way, and the cycles that it has."""
    rewritten: set[int] = set()
    for p in range(way.last, -1, -1):
        tail = subject.cycle[way.last] + subject.code[way.last].control.stall - subject.cycle[p]
        if subject.block[p] != subject.block[way.last] or tail > _NEAR:
            return
        overwritten = set(rewritten)
        for c in range(way.head, min(way.head + 12, len(subject.code))):
            if subject.block[c] != subject.block[way.head]:
                break
            distance = tail + subject.cycle[c]
            for found in subject.between(p, c, subject.was_across(p, way.last, c)):
                if found.pair.register not in overwritten and 1 < found.needed <= distance:
                    yield found, distance
            overwritten |= {access.register for access in subject.code[c].defs}
        rewritten |= {access.register for access in subject.code[p].defs}


def _too_short(name: str, hazard: Hazard, files: tuple[File, ...], hows: tuple[How, ...]) -> None:
    @kind(name)
    def sites(subject: Subject) -> Iterator[Site]:
        for way in ways(subject):
            for found, distance in _crossing(subject, way) if way.how in hows else ():
                p, c = found.pair.producer, found.pair.consumer
                places = (*range(p, way.last + 1), *range(way.head, c))
                by = distance - found.needed + 1
                fits = found.pair.hazard is hazard and file_of(found.pair.register) in files
                if fits and can_cut(subject, places, by):
                    yield partial(cut, subject, places, by, frozenset((Rule.DISTANCE,)))


for _how in How:
    _too_short(f"result read too early {_how}", Hazard.RAW, (File.R,), (_how,))
_too_short("predicate read too early in another block", Hazard.RAW, (File.P,), tuple(How))
_too_short("uniform value read too early in another block", Hazard.RAW, (File.UR, File.UP), tuple(How))
_too_short("convergence barrier met too early in another block", Hazard.RAW, (File.B,), tuple(How))
_too_short("result overwritten too early in another block", Hazard.WAW, tuple(File), tuple(How))
_too_short("source overwritten too early in another block", Hazard.WAR, tuple(File), tuple(How))


# ---- not awaited ----


class Carried(NamedTuple):
    """A load that another block waits for."""

    load: int
    board: int
    way: Way
    reader: int


def _carried(subject: Subject) -> Iterator[Carried]:
    for way in ways(subject):
        for reader in range(way.head, len(subject.code)):
            if subject.block[reader] != subject.block[way.head]:
                break
            for board in subject.code[reader].control.waits:
                load = _needed_load(subject, way, reader, board)
                if load is not None:
                    yield Carried(load, board, way, reader)


def _needed_load(subject: Subject, way: Way, reader: int, board: int) -> int | None:
    """What the reader needs and, on this way, nothing but this scoreboard announces."""
    if any(board in (*subject.waits_of(j), *subject.code[j].control.sets) for j in range(way.head, reader)):
        return None
    if board in subject.waits_of(way.last):
        return None
    at_end = board in subject.code[way.last].control.sets
    p = way.last if at_end else last_raised(subject, way.last, board)
    if p is None or subject.code[p].control.write_barrier != board or subject.code[p].order in _STRICT:
        return None
    between = [*range(p + 1, way.last + 1), *range(way.head, reader)]
    mates = [j for j in between if queue_of(subject, j) == queue_of(subject, p)]
    if any(subject.code[j].control.write_barrier not in (None, board) for j in mates):
        return None
    touched = {a.register for j in between for a in subject.code[j].defs}
    raw = [x.register for x in subject.hazards(p, reader) if x.hazard is Hazard.RAW]
    return p if any(register not in touched for register in raw) else None


def _not_awaited(name: str, hows: tuple[How, ...]) -> None:
    @kind(name)
    def sites(subject: Subject) -> Iterator[Site]:
        for found in _carried(subject):
            if found.way.how in hows and subject.code[found.reader].order not in _STRICT:
                control = without(subject.code[found.reader].control, found.board)
                named = raised(subject, found.board)
                yield partial(edit, subject, found.reader, control, Rule.SCOREBOARD, named, name)


_not_awaited("wait removed behind a branch", (How.TAKEN,))
_not_awaited("wait removed behind a branch that is not taken", (How.FALLS,))
_not_awaited("wait removed round a loop", (How.BACK,))
_not_awaited("wait removed behind a jump by a table, a call or a return", (How.TABLE, How.CALL, How.RETURN))


@kind("wait left on one of two ways")
def wait_left_on_one_way(subject: Subject) -> Iterator[Site]:
    """It goes from a block to the end of only one of those in front, as if hoisted out of a loop."""
    for found in _carried(subject):
        for other in ways(subject):
            reader = subject.code[found.reader]
            elsewhere = other.head == found.way.head and other.last != found.way.last
            if elsewhere and reader.order not in _STRICT:
                yield partial(_put_on, subject, found, other)


def _put_on(subject: Subject, found: Carried, other: Way, _: random.Random) -> Plant:
    reader, last = subject.code[found.reader], subject.code[other.last]
    controls = {
        found.reader: without(reader.control, found.board),
        other.last: waiting(last.control, found.board),
    }
    story = f"wait of {reader} put on {last}"
    named = raised(subject, found.board)
    return Plant(subject.build(controls=controls), frozenset((Rule.SCOREBOARD,)), named, story)


@kind("scoreboard changed and a waiter forgotten")
def waiter_forgotten(subject: Subject) -> Iterator[Site]:
    """The load has a new scoreboard, which one of those who wait for it has heard of, and another has not."""
    found = list(_carried(subject))
    for first in found:
        for second in found:
            apart = first.load == second.load and first.board == second.board
            if apart and first.way.head != second.way.head:
                other = _free_board(subject, first, second)
                if other is not None:
                    yield partial(_forget, subject, first, second, other)


def _free_board(subject: Subject, told: Carried, forgotten: Carried) -> int | None:
    """That nobody on the forgotten way waits for, and that nobody counts on."""
    way = (
        *range(forgotten.load + 1, forgotten.way.last + 1),
        *range(forgotten.way.head, forgotten.reader + 1),
    )
    taken = {k for i in way for k in subject.waits_of(i)} | named_by_depbar(subject) | {told.board}
    return next((k for k in range(BARRIERS) if k not in taken), None)


def _forget(subject: Subject, told: Carried, forgotten: Carried, other: int, _: random.Random) -> Plant:
    load, reader = subject.code[told.load], subject.code[told.reader]
    controls = {
        told.load: replace(load.control, write_barrier=other),
        told.reader: waiting(reader.control, other),
    }
    readers = {forgotten.reader, told.load}
    setters = {i.index for i in subject.code if forgotten.board in i.control.sets}
    story = f"{load} has SB{other}, and {subject.code[forgotten.reader]} does not know"
    rule = Rule.BARRIER if told.board in named_by_depbar(subject) else Rule.SCOREBOARD
    return Plant(
        subject.build(controls=controls),
        frozenset((rule,)),
        lambda refusal: refusal.producer in setters or refusal.consumer in readers,
        story,
    )
