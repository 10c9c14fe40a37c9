"""Stalls are cut, or instructions taken out, so that a minimum distance is missed by a cycle or more."""

import random
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise

from cuasmrl.binary.sass import GUARD, File, Hazard, Order, Pipe, file_of
from cuasmrl.checker import Refusal, Rule
from tests.checker.plants.base import Named, Plant, Site, kind, move
from tests.checker.subjects import Pair, Subject

_DISTANCE = frozenset((Rule.DISTANCE,))


def _spans(subject: Subject, cut: int) -> Named:
    """Every dependence across the cut may be broken by it: the one with the first consumer is named."""

    def named(refusal: Refusal) -> bool:
        p, c = refusal.producer, refusal.consumer
        if p is None or c is None or refusal.needed is None or refusal.found is None:
            return False
        block = subject.block
        if block[p] == block[c] and p < c:
            across = block[p] == block[cut] and p <= cut < c
        else:
            # Over a border: behind the producer, in front of the consumer, or in a block on the way.
            behind, before = block[p] == block[cut] and p <= cut, block[c] == block[cut] and cut < c
            across = behind or before or block[cut] not in (block[p], block[c])
        return across and refusal.found < refusal.needed

    return named


def _cut(
    subject: Subject, places: tuple[int, ...], by: int, rules: frozenset[Rule], rng: random.Random
) -> Plant | None:
    """Take `by` cycles off the stall of one of these instructions."""
    for x in rng.sample(places, len(places)):
        control = subject.shortened(x, by)
        if control is not None:
            story = f"stall of {subject.code[x]} cut by {by}"
            return Plant(subject.build(controls={x: control}), rules, _spans(subject, x), story)
    return None


def _can_cut(subject: Subject, places: tuple[int, ...], by: int) -> bool:
    return any(subject.shortened(x, by) is not None for x in places)


def _declare(name: str, chosen: Callable[[Pair], bool]) -> None:
    @kind(name)
    def sites(subject: Subject) -> Iterator[Site]:
        for pair in subject.timed:
            p, c = pair.producer, pair.consumer
            by = subject.cycle[c] - subject.cycle[p] - (subject.required(pair) or 0) + 1
            places = tuple(range(p, c))
            if chosen(pair) and _can_cut(subject, places, by):
                yield partial(_cut, subject, places, by, _DISTANCE)


_declare("result read too early", lambda x: x.hazard is Hazard.RAW and file_of(x.register) is File.R)
_declare("predicate read too early", lambda x: x.hazard is Hazard.RAW and file_of(x.register) is File.P)
_declare("guard read too early", lambda x: x.hazard is Hazard.RAW and x.consumer_role == GUARD)
_declare(
    "uniform register read too early", lambda x: x.hazard is Hazard.RAW and file_of(x.register) is File.UR
)
_declare("result overwritten too early", lambda x: x.hazard is Hazard.WAW)


@kind("result read too early behind a branch")
def behind_a_branch(subject: Subject) -> Iterator[Site]:
    """Producer in one block, consumer near the head of the block branched to, back edges included."""
    for jump in subject.code:
        if jump.opcode == "BRA" and jump.target is not None and not jump.never_executes:
            for pair, distance in _pairs_across(subject, jump.index, jump.target // 16):
                by = distance - (subject.required(pair) or 0) + 1
                places = (*range(pair.producer, jump.index + 1), *range(jump.target // 16, pair.consumer))
                if _can_cut(subject, places, by):
                    yield partial(_cut, subject, places, by, _DISTANCE)


def _pairs_across(subject: Subject, last: int, head: int) -> Iterator[tuple[Pair, int]]:
    rewritten: set[int] = set()
    for p in range(last, -1, -1):
        tail = subject.cycle[last] + subject.code[last].control.stall - subject.cycle[p]
        if subject.block[p] != subject.block[last] or tail > 30:
            return
        overwritten = set(rewritten)
        for c in range(head, min(head + 12, len(subject.code))):
            if subject.block[c] != subject.block[head] or subject.code[p].is_variable:
                break
            distance = tail + subject.cycle[c]
            for pair in subject.hazards(p, c):
                needed = subject.required(pair)
                alive = pair.hazard is Hazard.RAW and pair.register not in overwritten
                if alive and needed is not None and needed <= distance:
                    yield pair, distance
            overwritten |= {access.register for access in subject.code[c].defs}
        rewritten |= {access.register for access in subject.code[p].defs}


@kind("instruction taken out from between")
def taken_out_from_between(subject: Subject) -> Iterator[Site]:
    """p, x, c becomes x, p, c: the order is right, but c now follows p too closely."""
    for pair in subject.timed:
        p, x, c = pair.producer, pair.producer + 1, pair.consumer
        if pair.hazard is not Hazard.RAW or c != p + 2 or subject.region[p] != subject.region[x]:
            continue
        free = subject.code[x].order is Order.FREE and subject.is_movable(x) and subject.is_movable(p)
        free = free and not subject.code[p].control.wait_mask
        if not free or subject.hazards(p, x) or subject.may_be_ordered(p, x):
            continue
        if subject.code[p].control.stall < (subject.required(pair) or 0):
            yield partial(move, subject, x, p, _DISTANCE, _spans(subject, p), "taken out from between")


@kind("matrix instructions too close")
def matrix_instructions_too_close(subject: Subject) -> Iterator[Site]:
    tensor = [i.index for i in subject.code if i.declaration and i.declaration.pipe is Pipe.TENSOR]
    pairs = [(a, b) for a, b in pairwise(tensor) if subject.block[a] == subject.block[b]]
    least: dict[tuple[str, str], int] = {}
    for a, b in pairs:
        keys = subject.code[a].timing_key, subject.code[b].timing_key
        least[keys] = min(least.get(keys, 99), subject.cycle[b] - subject.cycle[a])
    for a, b in pairs:
        known = subject.table.spacing(subject.code[a])
        if known is not None and known > 1:
            needed = min(known, least[subject.code[a].timing_key, subject.code[b].timing_key])
            by = subject.cycle[b] - subject.cycle[a] - needed + 1
            places = tuple(range(a, b))
            if _can_cut(subject, places, by):
                yield partial(
                    _cut, subject, places, by, frozenset((Rule.SPACING, Rule.DISTANCE, Rule.RELEASE))
                )


@kind("wait too close behind the setter")
def wait_too_close_behind_the_setter(subject: Subject) -> Iterator[Site]:
    for setter, waiter in pairwise(subject.code):
        boards = set(setter.control.sets) & set(waiter.control.waits)
        if not boards or subject.block[setter.index] != subject.block[waiter.index]:
            continue
        known = subject.table.release(setter)
        needed = min(2 if known is None else known, setter.control.stall)
        by = setter.control.stall - needed + 1
        if subject.shortened(setter.index, by) is not None:
            rules = frozenset((Rule.RELEASE, Rule.DISTANCE))
            yield partial(_cut, subject, (setter.index,), by, rules)
