"""The changes one after the other: every step legal, and each time the one that helps most."""

from __future__ import annotations

import random
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from cuasmrl.explain.moves.changes import Change, Relocate, Retime
from cuasmrl.explain.moves.decompose import Built, Decomposition
from cuasmrl.explain.moves.judge import Judge
from cuasmrl.schedule import Schedule

_ORDERS = 8


@dataclass(frozen=True)
class Step:
    changes: tuple[Change, ...]
    """One, or several of which none is legal without the others."""
    before: Schedule
    after: Schedule


def steps_of(whole: Decomposition, kept: Collection[Change], quick: Judge) -> tuple[Step, ...]:
    """From the original to what these changes lead to; retimings come first."""
    remaining = [change for change in whole.changes if change in kept]
    done: frozenset[Change] = frozenset()
    schedule, steps = whole.original, list[Step]()
    while remaining:
        options = _singles(whole, done, remaining) or _groups(whole, done, remaining)
        chosen, built = min(options, key=lambda option: quick.time(option[1].schedule))
        steps.append(Step(chosen, schedule, built.schedule))
        schedule, done = built.schedule, built.changes | done
        remaining = [change for change in remaining if change not in chosen]
    return tuple(steps)


def _singles(
    whole: Decomposition, done: frozenset[Change], remaining: list[Change]
) -> list[tuple[tuple[Change, ...], Built]]:
    retimings: list[Change] = [change for change in remaining if isinstance(change, Retime)]
    return [
        ((change,), built)
        for change in retimings[:1] or remaining
        if (built := _built(whole, done, (change,))) is not None
    ]


def _groups(
    whole: Decomposition, done: frozenset[Change], remaining: list[Change]
) -> list[tuple[tuple[Change, ...], Built]]:
    """The first pair that is legal, else the first block, else everything, which is."""
    for group in _candidates(whole, remaining):
        built = _built(whole, done, group)
        if built is not None:
            return [(group, built)]
    built = whole.build(done.union(remaining))
    assert built is not None, "these changes have been built before"
    return [(tuple(remaining), built)]


def _candidates(whole: Decomposition, remaining: list[Change]) -> Iterator[tuple[Change, ...]]:
    movers = [change for change in remaining if isinstance(change, Relocate)]
    yield from ((a, b) for a, b in combinations(movers, 2) if a.block == b.block)
    for plan in whole.plans.values():
        group = tuple(change for change in remaining if change in plan.changes)
        if group:
            yield group


def _built(whole: Decomposition, done: frozenset[Change], more: tuple[Change, ...]) -> Built | None:
    """With some more changes, if these and all before are legal together."""
    wanted = done.union(more)
    built = whole.build(wanted)
    return built if built is not None and built.changes == wanted else None


def shares_of(whole: Decomposition, steps: Sequence[Step], judge: Judge) -> tuple[float, ...]:
    """What each step adds, in the mean over orders; in one order it depends on who came before it.

    Retimings come first in all orders. The shares sum to the whole gain.
    """
    first = [k for k, step in enumerate(steps) if isinstance(step.changes[0], Retime)]
    rest = [k for k in range(len(steps)) if k not in first]
    rng = random.Random(0)
    shares = [0.0] * len(steps)
    orders = []
    for _ in range(_ORDERS // 2):
        rng.shuffle(rest)
        # An order and its reverse: who comes early in one comes late in the other.
        orders += [[*first, *rest], [*first, *reversed(rest)]]
    for order in orders:
        done: frozenset[Change] = frozenset()
        time = judge.time(whole.original)
        for k in order:
            done = done.union(steps[k].changes)
            built = whole.build(done)
            # What stall counts cannot express adds nothing until those are there that it needs.
            now = time if built is None else judge.time(built.schedule)
            shares[k] += (time - now) / len(orders)
            time = now
    return tuple(shares)
