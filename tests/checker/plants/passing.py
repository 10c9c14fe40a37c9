"""Waits that pass the time a dependence needs: they are moved, or end sooner.

Two instructions may stand closer than the table asks for because something between them waits. Then that
wait has to stay between them, and what it waits for must not be issued any sooner.
"""

import random
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from cuasmrl.binary.sass import MAX_STALL, name_of
from cuasmrl.checker import Refusal, Rule
from tests.checker.plants.base import Named, Plant, Site, is_too_close, kind, waiting, without
from tests.checker.plants.ordering import may_pass
from tests.checker.plants.scoreboards import last_raised, queue_of
from tests.checker.squeezing import with_stall
from tests.checker.subjects import Subject

_DISTANCE = frozenset((Rule.DISTANCE,))


class Passed(NamedTuple):
    """Producer and consumer that are close, who waits between them, for what, and who raised it."""

    producer: int
    consumer: int
    waiter: int
    board: int
    setter: int


def _passed(subject: Subject) -> Iterator[Passed]:
    for found in subject.kept_by_time:
        p, c = found.pair.producer, found.pair.consumer
        needed = subject.longest(p) if found.known is None else found.known
        if max(found.was, subject.cycle[c] - subject.cycle[p]) >= needed:
            continue
        for w in range(p + 1, c + 1):
            stays = subject.was_behind(p, w) and (w == c or subject.was_behind(w, c))
            if not stays or subject.code[w].order.is_strict:
                continue
            for board in subject.compiled(w).waits:
                setter = last_raised(subject, w, board) if board in subject.code[w].control.waits else None
                if setter is not None and setter != p:
                    yield Passed(p, c, w, board, setter)


def _around(subject: Subject, boards: tuple[int, ...]) -> Named:
    """A dependence that is closer than the table allows, over a wait for one of these scoreboards."""

    def named(refusal: Refusal) -> bool:
        p, c = refusal.producer, refusal.consumer
        if p is None or c is None or refusal.needed is None or refusal.found is None:
            return False
        registers = {name_of(pair.register) for pair in subject.hazards(p, c)}
        # From another block it may come in, or go out to one.
        waits = {board for i in range(p + 1, c + 1) for board in subject.waits_of(i)}
        across = waits.intersection(boards) or subject.block[p] != subject.block[c] or c <= p
        return bool(across) and refusal.register in registers and refusal.found < refusal.needed

    return named


@kind("wait that passes the time put in front of the producer")
def put_in_front(subject: Subject) -> Iterator[Site]:
    """Every result is still waited for, only sooner."""
    for found in _passed(subject):
        if found.setter < found.producer:
            yield partial(_put_in_front, subject, found)


def _put_in_front(subject: Subject, found: Passed, _: random.Random) -> Plant:
    p, w = subject.code[found.producer], subject.code[found.waiter]
    controls = {
        p.index: waiting(p.control, found.board),
        w.index: without(w.control, found.board),
    }
    story = f"{w} leaves it to {p} to wait for SB{found.board}"
    return Plant(subject.build(controls=controls), _DISTANCE, _around(subject, (found.board,)), story)


@kind("what a wait passes the time with is issued sooner")
def issued_sooner(subject: Subject) -> Iterator[Site]:
    """The setter goes in front of the producer; who stood in front of it stalls longer instead."""
    for found in _passed(subject):
        p, s = found.producer, found.setter
        if not p < s < found.waiter or not subject.was_behind(p, s) or subject.region[p] != subject.region[s]:
            continue
        stall = subject.code[s - 1].control.stall + subject.code[s].control.stall
        alone = not subject.code[s].control.wait_mask and stall <= MAX_STALL
        between = range(p, s)
        if not alone or not all(subject.is_movable(j) for j in (*between, s)):
            continue
        if any(subject.hazards(j, s) or not may_pass(subject, j, s) for j in between):
            continue
        if any(queue_of(subject, j) == queue_of(subject, s) for j in between):
            # It may announce an earlier one of its queue.
            continue
        awaited = any(set(subject.code[s].control.sets) & set(subject.waits_of(j)) for j in between)
        if not awaited and _may_issue(subject, s, p):
            yield partial(_issue_sooner, subject, found, stall)


def _may_issue(subject: Subject, i: int, place: int) -> bool:
    """Is everything that it needs there when the instruction at this place issues?"""
    for q in range(place - 1, -1, -1):
        distance = subject.cycle[place] - subject.cycle[q]
        if subject.block[q] != subject.block[place]:
            # What other blocks have under way is not looked at; nothing takes that long.
            return subject.cycle[place] > subject.longest(q)
        if distance > subject.longest(q):
            return True
        if any(found.needed > distance for found in subject.between(q, i)):
            return False
    return False


def _issue_sooner(subject: Subject, found: Passed, stall: int, _: random.Random) -> Plant:
    p, s = found.producer, found.setter
    longer = replace(with_stall(subject, s - 1, stall), reuse=0)
    broken = subject.build(subject.moved(s, p), {s - 1: longer})
    meant = _around(subject, subject.code[s].control.sets)

    def named(refusal: Refusal) -> bool:
        """The pair that relies on the wait, or another one around whoever waits for what is issued sooner."""
        first, last = refusal.producer, refusal.consumer
        if first is None or last is None:
            return False
        is_around = subject.block[first] == subject.block[p] and first <= found.waiter and p <= last
        return meant(refusal) or (is_around and is_too_close(refusal))

    story = f"{subject.code[s]} issued before {subject.code[p]}"
    return Plant(broken, _DISTANCE, named, story)
