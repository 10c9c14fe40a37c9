"""Memory accesses, synchronisation and lanes out of order; pinned instructions and padding out of place."""

import random
from collections.abc import Callable, Iterator
from functools import partial

from cuasmrl.binary.sass import Order, Space
from cuasmrl.checker import Rule
from tests.checker.plants.base import Plant, Site, both, either, is_strong, kind, move
from tests.checker.subjects import Subject


def _declare(name: str, rule: Rule, chosen: Callable[[Subject, int, int], bool]) -> None:
    """The second of two instructions without a common register overtakes the first."""

    @kind(name)
    def sites(subject: Subject) -> Iterator[Site]:
        for c, p in enumerate(subject.obstacles):
            if p is None or subject.hazards(p, c) or not _differ(subject, p, c):
                continue
            if chosen(subject, p, c):
                yield partial(move, subject, c, p, frozenset((rule,)), both(p, c), name)


def _conflict(space: Space) -> Callable[[Subject, int, int], bool]:
    def chosen(subject: Subject, p: int, c: int) -> bool:
        orders = {subject.code[p].order, subject.code[c].order}
        return orders == {Order.MEMORY} and subject.may_overlap(p, c) is space

    return chosen


def _warp_wide(subject: Subject, p: int, c: int) -> bool:
    declarations = [subject.code[i].declaration for i in (p, c)]
    return all(declaration is not None and declaration.warp_wide for declaration in declarations)


_declare("order in shared memory", Rule.MEMORY_ORDER, _conflict(Space.SHARED))
_declare("order in global memory", Rule.MEMORY_ORDER, _conflict(Space.GLOBAL))
_declare("order in local memory", Rule.MEMORY_ORDER, _conflict(Space.LOCAL))
_declare(
    "access moved up across a barrier",
    Rule.SYNC_ORDER,
    lambda s, p, c: s.code[p].opcode == "BAR" and s.code[c].order is Order.MEMORY,
)
_declare(
    "barrier moved up across an access",
    Rule.SYNC_ORDER,
    lambda s, p, c: s.code[c].opcode == "BAR" and s.code[p].order is Order.MEMORY,
)
_declare(
    "copy across the commit of its group",
    Rule.SYNC_ORDER,
    lambda s, p, c: {s.code[p].opcode, s.code[c].opcode} == {"LDGSTS", "LDGDEPBAR"},
)
_declare(
    "access or commit across a group wait",
    Rule.SYNC_ORDER,
    lambda s, p, c: (
        "DEPBAR" in (s.code[p].opcode, s.code[c].opcode)
        and Order.FREE not in (s.code[p].order, s.code[c].order)
    ),
)
_declare("order of warp-wide operations", Rule.WARP_ORDER, _warp_wide)


def _strong_in_one_space(s: Subject, p: int, c: int, which: int) -> bool:
    """Is the upper (0) or the lower (1) one strong, and the other a plain access of the same memory?"""
    strong, other = (s.code[p], s.code[c])[:: 1 if which == 0 else -1]
    if strong.order is not Order.MEMORY or other.order is not Order.MEMORY or is_strong(other):
        return False
    spaces = [{d.reads, d.writes} - {None} for d in (strong.declaration, other.declaration) if d is not None]
    return is_strong(strong) and len(spaces) == 2 and bool(spaces[0] & spaces[1])


def _shared_elsewhere(s: Subject, p: int, c: int) -> bool:
    """A read and a write of one base and other bytes: other lanes may be meant."""
    a, b = s.code[p].declaration, s.code[c].declaration
    if a is None or b is None or is_strong(s.code[p]) or is_strong(s.code[c]):
        return False
    first, second = {a.reads, a.writes} - {None}, {b.reads, b.writes} - {None}
    one_writes = (a.writes is None) != (b.writes is None)
    return first == second == {Space.SHARED} and one_writes and s.may_overlap(p, c) is None


_declare("access moved up across a strong one", Rule.MEMORY_ORDER, partial(_strong_in_one_space, which=0))
_declare("strong access moved up", Rule.MEMORY_ORDER, partial(_strong_in_one_space, which=1))
_declare("read and write of other shared bytes exchanged", Rule.MEMORY_ORDER, _shared_elsewhere)


# ---- places ----


def _differ(subject: Subject, first: int, second: int) -> bool:
    return subject.code[first].text != subject.code[second].text


@kind("pinned instruction moved")
def pinned_moved(subject: Subject) -> Iterator[Site]:
    for a in range(len(subject.code) - 1):
        pinned = Order.PINNED in (subject.code[a].order, subject.code[a + 1].order)
        if pinned and _differ(subject, a, a + 1):
            rules = frozenset((Rule.PINNED,))
            yield partial(move, subject, a + 1, a, rules, either(a, a + 1), "pinned moved")


@kind("filler moved")
def filler_moved(subject: Subject) -> Iterator[Site]:
    for a in range(len(subject.code) - 1):
        same = subject.block[a] == subject.block[a + 1]
        if same and subject.code[a + 1].is_filler and _differ(subject, a, a + 1):
            rules = frozenset((Rule.PINNED,))
            yield partial(move, subject, a + 1, a, rules, either(a, a + 1), "filler moved")


@kind("instruction moved to another block")
def moved_to_another_block(subject: Subject) -> Iterator[Site]:
    for a in range(len(subject.code) - 1):
        if subject.block[a] != subject.block[a + 1] and _differ(subject, a, a + 1):
            rules = frozenset((Rule.BLOCK, Rule.PINNED))
            yield partial(move, subject, a + 1, a, rules, either(a, a + 1), "moved to another block")


@kind("instructions exchanged across a pinned one")
def exchanged_across_a_pinned_one(subject: Subject) -> Iterator[Site]:
    for middle in subject.code[1:-1]:
        a, b = middle.index - 1, middle.index + 1
        free = all(subject.is_movable(i) and subject.block[i] == subject.block[middle.index] for i in (a, b))
        if middle.order is Order.PINNED and free and _differ(subject, a, b):
            yield partial(_exchange, subject, a, b)


def _exchange(subject: Subject, a: int, b: int, _: random.Random) -> Plant:
    order = list(range(len(subject.code)))
    order[a], order[b] = b, a
    story = f"{subject.code[a]} and {subject.code[b]} exchanged"
    return Plant(subject.build(order), frozenset((Rule.BLOCK,)), either(a, b), story)


@kind("padding split")
def padding_split(subject: Subject) -> Iterator[Site]:
    """Something slips in between a dummy load and what it pads."""
    for dummy in subject.code[:-2]:
        d, padded, x = dummy.index, dummy.index + 1, dummy.index + 2
        together = subject.region[x] == subject.region[padded] == subject.region[d]
        if dummy.is_dummy_load and together and _differ(subject, padded, x):
            rules = frozenset((Rule.PADDING,))
            yield partial(move, subject, x, padded, rules, either(d, padded), "padding split")


@kind("padding moved away")
def padding_moved_away(subject: Subject) -> Iterator[Site]:
    """A dummy load goes up by one."""
    for dummy in subject.code[1:-1]:
        a, d = dummy.index - 1, dummy.index
        if dummy.is_dummy_load and subject.region[a] == subject.region[d] and subject.is_movable(a):
            rules = frozenset((Rule.PADDING,))
            yield partial(move, subject, d, a, rules, either(d, d + 1), "padding moved away")
