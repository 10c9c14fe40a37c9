"""Stalls are cut, or instructions taken out, so that a minimum distance is missed by a cycle or more."""

import random
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise

from cuasmrl.binary.sass import GUARD, File, Hazard, Order, Pipe, file_of, name_of
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
        names = {name_of(pair.register) for pair in subject.hazards(p, c)}
        is_one = refusal.rule is not Rule.DISTANCE or refusal.register in names
        return across and is_one and refusal.found < refusal.needed

    return named


def cut(
    subject: Subject, places: tuple[int, ...], by: int, rules: frozenset[Rule], rng: random.Random
) -> Plant | None:
    """Take `by` cycles off the stall of one of these instructions."""
    for x in rng.sample(places, len(places)):
        control = subject.shortened(x, by)
        if control is not None:
            story = f"stall of {subject.code[x]} cut by {by}"
            return Plant(subject.build(controls={x: control}), rules, _spans(subject, x), story)
    return None


def can_cut(subject: Subject, places: tuple[int, ...], by: int) -> bool:
    return any(subject.shortened(x, by) is not None for x in places)


def _declare(name: str, chosen: Callable[[Pair], bool]) -> None:
    @kind(name)
    def sites(subject: Subject) -> Iterator[Site]:
        for pair in subject.timed:
            p, c = pair.producer, pair.consumer
            by = subject.cycle[c] - subject.cycle[p] - (subject.required(pair) or 0) + 1
            places = tuple(range(p, c))
            if chosen(pair) and can_cut(subject, places, by):
                yield partial(cut, subject, places, by, _DISTANCE)


_declare("result read too early", lambda x: x.hazard is Hazard.RAW and file_of(x.register) is File.R)
_declare("predicate read too early", lambda x: x.hazard is Hazard.RAW and file_of(x.register) is File.P)
_declare("guard read too early", lambda x: x.hazard is Hazard.RAW and x.consumer_role == GUARD)
_declare(
    "uniform register read too early", lambda x: x.hazard is Hazard.RAW and file_of(x.register) is File.UR
)
_declare("result overwritten too early", lambda x: x.hazard is Hazard.WAW)


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
    least = _least_spacings(subject if subject.origin is None else subject.origin.subject)
    for a, b in _neighbours_in_tensor_pipe(subject):
        known = subject.table.spacing(subject.code[a])
        keys = subject.code[a].timing_key, subject.code[b].timing_key
        if known is not None and known > 1:
            needed = min(known, least.get(keys, known))
            by = subject.cycle[b] - subject.cycle[a] - needed + 1
            places = tuple(range(a, b))
            if can_cut(subject, places, by):
                yield partial(
                    cut, subject, places, by, frozenset((Rule.SPACING, Rule.DISTANCE, Rule.RELEASE))
                )


def _neighbours_in_tensor_pipe(subject: Subject) -> list[tuple[int, int]]:
    tensor = [i.index for i in subject.code if i.declaration and i.declaration.pipe is Pipe.TENSOR]
    return [(a, b) for a, b in pairwise(tensor) if subject.block[a] == subject.block[b]]


def _least_spacings(subject: Subject) -> dict[tuple[str, str], int]:
    """The closest that any two of these have come."""
    least: dict[tuple[str, str], int] = {}
    for a, b in _neighbours_in_tensor_pipe(subject):
        keys = subject.code[a].timing_key, subject.code[b].timing_key
        least[keys] = min(least.get(keys, 99), subject.cycle[b] - subject.cycle[a])
    return least


@kind("wait too close behind the setter")
def wait_too_close_behind_the_setter(subject: Subject) -> Iterator[Site]:
    for setter, waiter in pairwise(subject.code):
        boards = set(setter.control.sets) & set(waiter.control.waits)
        if not boards or subject.block[setter.index] != subject.block[waiter.index]:
            continue
        known = subject.table.release(setter)
        needed = min(2 if known is None else known, setter.control.stall)
        if subject.was(setter.index, waiter.index) < needed:
            continue
        by = setter.control.stall - needed + 1
        if subject.shortened(setter.index, by) is not None:
            rules = frozenset((Rule.RELEASE, Rule.DISTANCE))
            yield partial(cut, subject, (setter.index,), by, rules)
