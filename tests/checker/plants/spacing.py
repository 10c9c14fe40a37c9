"""Two instructions that have no register in common follow each other too closely in one pipe."""

import random
from collections.abc import Iterator
from functools import partial

from cuasmrl.binary.sass import MAX_STALL, Pipe
from cuasmrl.checker import Refusal, Rule
from tests.checker.plants.base import Plant, Site, is_too_close, kind
from tests.checker.plants.paths import ways
from tests.checker.squeezing import squeezed, with_stall
from tests.checker.subjects import Subject


def _pipe(subject: Subject, i: int) -> Pipe | None:
    declaration = subject.code[i].declaration
    return None if declaration is None or subject.code[i].never_executes else declaration.pipe


def _neighbours(subject: Subject) -> Iterator[tuple[int, int]]:
    """One instruction and the next one of its pipe, in a block."""
    last: dict[tuple[int, Pipe], int] = {}
    for i in range(len(subject.code)):
        pipe = _pipe(subject, i)
        if pipe is not None:
            if (subject.block[i], pipe) in last:
                yield last[subject.block[i], pipe], i
            last[subject.block[i], pipe] = i


def _crossing(subject: Subject) -> Iterator[tuple[int, int, int]]:
    """The last one of a pipe in a block, the first in one that may follow, and the cycles between them."""
    last, first = dict[tuple[int, Pipe], int](), dict[tuple[int, Pipe], int]()
    for i in range(len(subject.code)):
        pipe = _pipe(subject, i)
        if pipe is not None:
            last[subject.block[i], pipe] = i
            first.setdefault((subject.block[i], pipe), i)
    for way in ways(subject):
        for pipe in Pipe:
            a, b = last.get((subject.block[way.last], pipe)), first.get((subject.block[way.head], pipe))
            if a is not None and b is not None:
                end = subject.cycle[way.last] + subject.code[way.last].control.stall
                yield a, b, end - subject.cycle[a] + subject.cycle[b]


def _keys(subject: Subject, a: int, b: int) -> tuple[str, str]:
    return subject.code[a].timing_key, subject.code[b].timing_key


def _closest(subject: Subject) -> dict[tuple[str, str], int]:
    """The closest that any two of these have come."""
    inside = ((a, b, subject.cycle[b] - subject.cycle[a]) for a, b in _neighbours(subject))
    closest: dict[tuple[str, str], int] = {}
    for a, b, cycles in (*inside, *_crossing(subject)):
        closest[_keys(subject, a, b)] = min(closest.get(_keys(subject, a, b), cycles), cycles)
    return closest


def _relying(subject: Subject) -> set[int]:
    """Blocks in which a wait passes time, or may: there a shift of a few cycles breaks more than is meant."""
    found = {subject.block[i.index] for i in subject.code if i.is_variable and not i.control.sets and i.defs}
    for kept in subject.kept_by_time:
        p, c = kept.pair.producer, kept.pair.consumer
        needed = subject.longest(p) if kept.known is None else kept.known
        waits = any(subject.waits_of(i) for i in range(p + 1, c + 1))
        if waits and subject.cycle[c] - subject.cycle[p] < needed:
            found.add(subject.block[p])
    return found


@kind("instructions too close in a pipe")
def too_close_in_a_pipe(subject: Subject) -> Iterator[Site]:
    """Only where nothing in the compiler's order is closer than the table asks for."""
    closest = _closest(subject if subject.origin is None else subject.origin.subject)
    relying = _relying(subject)
    for a, b in _neighbours(subject):
        known = subject.table.spacing(subject.code[a])
        if known is None or known < 2 or subject.hazards(a, b):
            continue
        if closest.get(_keys(subject, a, b), known) >= known and subject.block[a] not in relying:
            yield partial(_follow, subject, a, b, known)


def _follow(subject: Subject, a: int, b: int, known: int, _: random.Random) -> Plant | None:
    controls = squeezed(subject, a, b, known - 1)
    stall = subject.code[b].control.stall + subject.cycle[b] - subject.cycle[a] - known + 1
    awaited = any(subject.waits_of(i) for i in range(a + 1, b + 1))
    if controls is None or stall > MAX_STALL or awaited:
        return None
    # What comes behind keeps its distance from the first of them.
    controls[b] = with_stall(subject, b, stall)

    def named(refusal: Refusal) -> bool:
        p, c = refusal.producer, refusal.consumer
        if p is None or c is None:
            return False
        if refusal.rule is Rule.DISTANCE:
            # Seen from another block, or by a pair around or behind the two, a wait may end sooner.
            around = b <= c and is_too_close(refusal)
            return around or subject.block[p] != subject.block[c] or c <= p
        return a <= p < c <= b and _pipe(subject, p) is _pipe(subject, c)

    story = f"{subject.code[b]} only {known - 1} cycles behind {subject.code[a]}"
    return Plant(subject.build(controls=controls), frozenset((Rule.SPACING, Rule.DISTANCE)), named, story)
