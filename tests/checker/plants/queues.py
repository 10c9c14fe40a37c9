"""Results that come back in any order: a later one of the same queue says nothing about an earlier one."""

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

from cuasmrl.binary.sass import Control, Order
from cuasmrl.checker import Refusal, Rule
from tests.checker.plants.base import Named, Plant, Site, kind, waiting, without
from tests.checker.plants.scoreboards import named_by_depbar, queue_of
from tests.checker.subjects import Subject

_SCOREBOARD = frozenset((Rule.SCOREBOARD,))
ANY_ORDER = ("LDG", "LD", "LDL", "ATOMG", "S2R", "LDC", "LDCU")
"""Compilers give each of these its own scoreboard."""
_IN_ORDER = ("LDS", "LDSM", "SHFL", "MUFU", "ATOMS", "POPC", "FLO", "I2F", "F2I", "F2F")

Edit = Callable[[Subject, int, int, int, int], dict[int, Control]]
"""Of a load, a later one of its queue, the first wait for the load, and the first who touches its result."""


def _without_own(subject: Subject, p: int, q: int, _: int, reader: int) -> dict[int, Control]:
    """It has no scoreboard; who needs it waits for the later one."""
    board = subject.code[q].control.write_barrier or 0
    return {
        p: replace(subject.code[p].control, write_barrier=None),
        reader: waiting(subject.code[reader].control, board),
    }


def _later_awaited(subject: Subject, p: int, q: int, waiter: int, reader: int) -> dict[int, Control]:
    """It has its scoreboard, but only the later one is waited for."""
    own, later = subject.code[p].control.write_barrier or 0, subject.code[q].control.write_barrier or 0
    control = subject.code[waiter].control
    return {waiter: waiting(without(control, own), later)}


def _declare(
    name: str, opcodes: tuple[str, ...], change: Edit, guarded: bool = False, mixed: bool = False
) -> None:
    @kind(name)
    def sites(subject: Subject) -> Iterator[Site]:
        for p, q, waiter, reader in _pairs(subject, opcodes, guarded):
            if mixed and subject.code[p].opcode == subject.code[q].opcode:
                continue
            strict = (Order.SYNC, Order.PRODUCT, Order.PINNED)
            if change is _later_awaited and (waiter <= q or subject.code[waiter].order in strict):
                continue
            own, behind = subject.code[p].control.write_barrier, range(waiter + 1, reader + 1)
            if change is _later_awaited and any(own in subject.waits_of(j) for j in behind):
                continue
            named = _of_its_queue(subject, p) if guarded else _of_its_scoreboard(subject, p)
            yield partial(_plant, subject, p, q, waiter, reader, change, named, name)


def _plant(
    subject: Subject, p: int, q: int, waiter: int, reader: int, change: Edit, named: Named, name: str,
    _: random.Random,
) -> Plant:  # fmt: skip
    broken = subject.build(controls=change(subject, p, q, waiter, reader))
    return Plant(broken, _SCOREBOARD, named, f"{name}: {subject.code[p]}, later {subject.code[q]}")


def _of_its_scoreboard(subject: Subject, p: int) -> Named:
    """It, or somebody who waits for its scoreboard misses another one that was announced there."""
    board = subject.code[p].control.write_barrier or 0
    setters = {i.index for i in subject.code if board in i.control.sets}
    waiters = {i.index for i in subject.code if board in i.control.waits}

    def named(refusal: Refusal) -> bool:
        return refusal.producer == p or refusal.producer in setters or refusal.consumer in waiters

    return named


def _of_its_queue(subject: Subject, p: int) -> Named:
    """An earlier one of the queue may have relied on the same scoreboard."""

    def named(refusal: Refusal) -> bool:
        return refusal.producer is not None and queue_of(subject, refusal.producer) == queue_of(subject, p)

    return named


def _pairs(subject: Subject, opcodes: tuple[str, ...], guarded: bool) -> Iterator[tuple[int, int, int, int]]:
    """(load, a later one of its queue with another scoreboard, first wait for it, who first needs it)"""
    for i in subject.code:
        board = i.control.write_barrier
        if i.opcode not in opcodes or board is None or board in named_by_depbar(subject) or i.never_executes:
            continue
        found = first_touch(subject, i.index)
        if found is None:
            continue
        waiter, reader = found
        for q in range(i.index + 1, reader):
            later = subject.code[q].control.write_barrier
            fits = later not in (None, board) and later not in named_by_depbar(subject)
            fits = (
                fits
                and subject.code[q].opcode in opcodes
                and queue_of(subject, q) == queue_of(subject, i.index)
            )
            if fits and _vouches_falsely(subject, i.index, q, reader, guarded):
                yield i.index, q, waiter, reader


def _vouches_falsely(subject: Subject, p: int, q: int, reader: int, guarded: bool) -> bool:
    if not guarded:
        return not subject.code[q].is_conditional
    # What may be skipped announces nothing; nor may anybody else of the queue.
    awaited = {k for i in range(p + 1, reader + 1) for k in subject.waits_of(i)}
    awaited |= {subject.code[q].control.write_barrier or 0}
    others = [i for i in range(p + 1, reader) if i != q and queue_of(subject, i) == queue_of(subject, p)]
    alone = not any(subject.code[i].control.write_barrier in awaited for i in others)
    return alone and subject.code[q].is_conditional and subject.code[q].guard != subject.code[p].guard


def first_touch(subject: Subject, p: int) -> tuple[int, int] | None:
    """Who first waits for it and who first needs it, if that is in its block and nobody raises its board."""
    board, waiter = subject.code[p].control.write_barrier, None
    written = {access.register for access in subject.code[p].defs}
    for i in subject.code[p + 1 :]:
        if subject.block[i.index] != subject.block[p] or i.declaration is None or i.opcode == "DEPBAR":
            return None
        if board in i.control.waits and waiter is None:
            waiter = i.index
        touched = {access.register for access in (*i.uses, *i.defs)} if not i.never_executes else set()
        if written & touched:
            return None if waiter is None else (waiter, i.index)
        if board in i.control.sets and waiter is None:
            return None
    return None


for _opcode in ANY_ORDER:
    _declare(f"{_opcode} announced by a later one only", (_opcode,), _without_own)
    _declare(f"{_opcode} not awaited, but a later one", (_opcode,), _later_awaited)
_MIXED = ("LDG", "LD", "LDL", "ATOMG")
_declare("result announced by a later one of another kind only", _MIXED, _without_own, mixed=True)
_declare("result not awaited, but a later one of another kind", _MIXED, _later_awaited, mixed=True)
_declare("result announced by one that may be skipped", _IN_ORDER, _without_own, guarded=True)
