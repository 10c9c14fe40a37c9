"""Blind changes of several instructions at once; what they lose is found without the checker."""

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

from cuasmrl.binary.sass import BARRIERS, Control
from cuasmrl.checker import Refusal, Rule
from cuasmrl.schedule import Schedule
from tests.checker.plants.base import Plant, Site, kind, without
from tests.checker.plants.keeping import lost
from tests.checker.squeezing import with_stall
from tests.checker.subjects import Subject

_SITES = 24
_PLACES = (Rule.CONTAINER, Rule.WORD, Rule.BLOCK, Rule.PINNED)

Change = Callable[[Subject, random.Random, list[int], list[Control]], None]
"""Of an order and of the control bits by instruction, in place."""


def _declare(name: str, *changes: Change) -> None:
    @kind(name)
    def sites(subject: Subject) -> Iterator[Site]:
        for _ in range(_SITES):
            yield partial(_scramble, subject, changes)


def _scramble(subject: Subject, changes: tuple[Change, ...], rng: random.Random) -> Plant | None:
    order, controls = list(range(len(subject.code))), [i.control for i in subject.code]
    for _ in range(rng.randint(1, 4)):
        rng.choice(changes)(subject, rng, order, controls)
    changed = {i.index: controls[i.index] for i in subject.code if controls[i.index] != i.control}
    missing = lost(subject, Schedule(subject.listing, tuple(order), tuple(controls)))
    if not missing:
        return None

    def named(refusal: Refusal) -> bool:
        """A rule that a change inside of blocks can break; its register is looked at in any case."""
        return refusal.rule not in _PLACES and refusal.consumer is not None

    return Plant(subject.build(order, changed), frozenset(Rule), named, f"scrambled: {missing[0]}")


def _cut_a_stall(subject: Subject, rng: random.Random, _: list[int], controls: list[Control]) -> None:
    i = rng.randrange(len(controls))
    if controls[i].stall > 1:
        controls[i] = with_stall(subject, i, rng.randrange(1, controls[i].stall))


def _drop_a_wait(_: Subject, rng: random.Random, __: list[int], controls: list[Control]) -> None:
    waiting = [i for i, control in enumerate(controls) if control.wait_mask]
    if waiting:
        i = rng.choice(waiting)
        controls[i] = without(controls[i], rng.choice(controls[i].waits))


def _change_a_scoreboard(_: Subject, rng: random.Random, __: list[int], controls: list[Control]) -> None:
    setting = [i for i, control in enumerate(controls) if control.write_barrier is not None]
    if setting:
        i = rng.choice(setting)
        controls[i] = replace(controls[i], write_barrier=rng.choice((None, *range(BARRIERS))))


def _move_one(subject: Subject, rng: random.Random, order: list[int], _: list[Control]) -> None:
    """By a few places, in its region."""
    place = rng.randrange(len(order))
    other = place + rng.choice((-4, -3, -2, -1, 1, 2, 3, 4))
    if not 0 <= other < len(order):
        return
    between = order[min(place, other) : max(place, other) + 1]
    alike = len({subject.region[i] for i in between}) == 1
    if alike and all(subject.is_movable(i) and not subject.twins[i] for i in between):
        order.insert(other, order.pop(place))


_declare("stalls cut blindly", _cut_a_stall)
_declare("waits and scoreboards changed blindly", _drop_a_wait, _change_a_scoreboard)
_declare("instructions moved blindly", _move_one)
_declare("everything changed blindly", _cut_a_stall, _drop_a_wait, _change_a_scoreboard, _move_one)
