"""Waits that are there for more than registers: for fences, for strong accesses, for more registers.

Whatever stood behind such a wait must not be issued while the operation is under way.
"""

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from cuasmrl.binary.sass import BARRIERS, File, Instruction, Order, Pipe, file_of
from cuasmrl.checker import Refusal, Rule
from tests.checker.plants.base import (
    Named,
    Plant,
    Site,
    consumer,
    edit,
    is_atomic,
    is_strong,
    kind,
    move,
)
from tests.checker.plants.scoreboards import named_by_depbar
from tests.checker.subjects import Subject

_STRICT = (Order.SYNC, Order.PRODUCT, Order.PINNED)
_SCOREBOARD = frozenset((Rule.SCOREBOARD,))
_FENCES = ("MEMBAR", "FENCE", "CCTL", "ARRIVES", "ERRBAR", "CGAERRBAR")


class Awaited(NamedTuple):
    """An operation, the scoreboard that announces its end, and the first instruction that waits for it."""

    starter: int
    board: int
    waiter: int


# ---- what is awaited ----


def _without_registers(i: Instruction) -> Iterator[int]:
    """Scoreboards that an instruction raises although no register hangs on them."""
    if i.control.write_barrier is not None and not i.defs:
        yield i.control.write_barrier
    beside = i.declaration is None or i.declaration.pipe is Pipe.ASYNC
    files = (File.R, File.UR) if beside else (File.R,)
    if i.control.read_barrier is not None and not any(file_of(use.register) in files for use in i.uses):
        yield i.control.read_barrier


def _results(i: Instruction) -> Iterator[int]:
    if i.control.write_barrier is not None and i.defs:
        yield i.control.write_barrier


def _awaited(subject: Subject, chosen: Callable[[Instruction], Iterator[int]]) -> Iterator[Awaited]:
    for i in subject.code:
        for board in () if i.never_executes else chosen(i):
            waiter = None if board in named_by_depbar(subject) else _first_waiter(subject, i.index, board)
            if waiter is not None and _was_awaited(subject, i.index, board, waiter):
                yield Awaited(i.index, board, waiter)


def _first_waiter(subject: Subject, p: int, board: int) -> int | None:
    """In the block; None if the scoreboard is raised again before."""
    for i in subject.code[p + 1 :]:
        if subject.block[i.index] != subject.block[p]:
            return None
        if board in i.control.waits:
            return i.index
        if board in i.control.sets:
            return None
    return None


def _was_awaited(subject: Subject, starter: int, board: int, waiter: int) -> bool:
    """By the same instruction in the compiler's order, or by none before it."""
    if subject.origin is None:
        return True
    first, indices = subject.origin
    if board not in first.code[indices[starter]].control.sets:
        return False
    return _first_waiter(first, indices[starter], board) == indices[waiter]


def fences(subject: Subject) -> Iterator[Awaited]:
    """Awaited although no register hangs on them, and whoever is behind touches memory."""
    for found in _awaited(subject, _without_registers):
        if subject.code[found.starter].opcode in _FENCES:
            yield found


def reservations(subject: Subject) -> Iterator[Awaited]:
    """Awaited by everything that is behind them, as they change what a register is."""
    for found in _awaited(subject, _without_registers):
        if subject.code[found.starter].opcode == "USETMAXREG":
            yield found


def strong_loads(subject: Subject) -> Iterator[Awaited]:
    for found in _awaited(subject, _results):
        i = subject.code[found.starter]
        if i.order is Order.MEMORY and is_strong(i) and not is_atomic(i):
            yield found


def atomics(subject: Subject) -> Iterator[Awaited]:
    for found in _awaited(subject, _results):
        if is_atomic(subject.code[found.starter]):
            yield found


# ---- dropped and evaded ----


def _raised_it(subject: Subject, found: Awaited, *places: int) -> Named:
    """Names the operation, or another one that was awaited with it, and one of these consumers."""
    boards = subject.code[found.waiter].control.waits
    setters = {i.index for i in subject.code if set(boards) & set(i.control.sets)}

    def named(refusal: Refusal) -> bool:
        return refusal.consumer in places and refusal.producer in setters

    return named


def _dropped(
    name: str,
    operations: Callable[[Subject], Iterator[Awaited]],
    chosen: Callable[[Instruction], bool],
) -> None:
    @kind(name)
    def sites(subject: Subject) -> Iterator[Site]:
        for found in operations(subject):
            waiter = subject.code[found.waiter]
            at = found.waiter if waiter.order is not Order.FREE else _next_access(subject, found)
            if not chosen(waiter) or at is None:
                continue
            control = replace(waiter.control, wait_mask=waiter.control.wait_mask & ~(1 << found.board))
            rule = Rule.BARRIER if waiter.order in _STRICT else Rule.SCOREBOARD
            named = consumer(at)
            if waiter.order not in _STRICT:
                named = _raised_it(subject, found, at, found.waiter)
            yield partial(edit, subject, found.waiter, control, rule, named, name)


def _next_access(subject: Subject, found: Awaited) -> int | None:
    """Behind a wait of arithmetic that does not read what is awaited: who is let through without it."""
    if subject.hazards(found.starter, found.waiter):
        return None
    for i in subject.code[found.waiter + 1 :]:
        if not subject.was_behind(found.waiter, i.index):
            return None
        if subject.block[i.index] != subject.block[found.waiter] or found.board in subject.waits_of(i.index):
            return None
        if i.order is not Order.FREE:
            return i.index
        if subject.hazards(found.starter, i.index):
            return None
    return None


def _stores(i: Instruction) -> bool:
    return (
        i.order is Order.MEMORY and i.declaration is not None and not is_atomic(i) and not i.declaration.reads
    )


def _loads(i: Instruction) -> bool:
    return i.order is Order.MEMORY and i.declaration is not None and not i.declaration.writes


def _moved_up(name: str, operations: Callable[[Subject], Iterator[Awaited]], any_order: bool = False) -> None:
    """What directly follows the waiter, and relies on its wait, goes in front of it."""

    @kind(name)
    def sites(subject: Subject) -> Iterator[Site]:
        for found in operations(subject):
            w, m = found.waiter, found.waiter + 1
            if m == len(subject.code) or subject.region[w] != subject.region[m]:
                continue
            movable = subject.is_movable(w) and subject.is_movable(m) and not subject.hazards(w, m)
            relies = subject.code[m].order is Order.MEMORY or any_order
            own = found.board in subject.code[m].control.waits or not subject.was_behind(w, m)
            if movable and relies and not own and may_pass(subject, w, m):
                yield partial(move, subject, m, w, _SCOREBOARD, _raised_it(subject, found, m), name)


def may_pass(subject: Subject, first: int, second: int) -> bool:
    """Surely nothing but scoreboards and registers keeps these two in order."""
    a, b = subject.code[first], subject.code[second]
    if set(a.control.sets) & set(b.control.sets) & named_by_depbar(subject):
        return False
    if not subject.may_be_ordered(first, second):
        return True
    plain = _loads(a) and _loads(b) and not is_strong(a) and not is_strong(b)
    apart = a.declaration is not None and b.declaration is not None
    spaces = [{s for s in (d.reads, d.writes) if s} for d in (a.declaration, b.declaration) if d is not None]
    apart = apart and a.order is b.order is Order.MEMORY and not spaces[0] & spaces[1]
    apart = apart and not any("generic" in space for space in spaces)
    return (plain or apart) and not a.is_dummy_load and not b.is_dummy_load


def _put_off(name: str, operations: Callable[[Subject], Iterator[Awaited]]) -> None:
    """The wait goes from an access to the next instruction."""

    @kind(name)
    def sites(subject: Subject) -> Iterator[Site]:
        for found in operations(subject):
            if subject.code[found.waiter].order is Order.MEMORY and found.waiter + 1 < len(subject.code):
                yield partial(_put_off_one, subject, found, name)


def _put_off_one(subject: Subject, found: Awaited, name: str, _: random.Random) -> Plant:
    waiter, later = subject.code[found.waiter], subject.code[found.waiter + 1]
    bit = 1 << found.board
    controls = {
        waiter.index: replace(waiter.control, wait_mask=waiter.control.wait_mask & ~bit),
        later.index: replace(later.control, wait_mask=later.control.wait_mask | bit),
    }
    named = _raised_it(subject, found, found.waiter)
    return Plant(subject.build(controls=controls), _SCOREBOARD, named, f"{name}: {waiter}")


_dropped("wait for a fence dropped from a store", fences, _stores)
_dropped("wait for a fence dropped from a load", fences, _loads)
_dropped("wait for a fence dropped from an atomic", fences, is_atomic)
_dropped("wait for a fence dropped from arithmetic", fences, lambda i: i.order is Order.FREE)
_dropped("wait for a fence dropped from what is in order itself", fences, lambda i: i.order in _STRICT)
_moved_up("access moved in front of the wait for a fence", fences)
_put_off("wait for a fence put off", fences)
_dropped("wait for a strong load dropped from an access", strong_loads, lambda i: i.order is Order.MEMORY)
_moved_up("access moved in front of the wait for a strong load", strong_loads)
_put_off("wait for a strong load put off", strong_loads)
_dropped("wait for an atomic dropped from an access", atomics, lambda i: i.order is Order.MEMORY)
_moved_up("access moved in front of the wait for an atomic", atomics)
_put_off("wait for an atomic put off", atomics)
_dropped("wait for registers dropped", reservations, lambda i: True)
_moved_up("instruction moved in front of the wait for registers", reservations, any_order=True)


@kind("scoreboard of a fence changed")
def scoreboard_of_a_fence_changed(subject: Subject) -> Iterator[Site]:
    for found in (*fences(subject), *reservations(subject)):
        i = subject.code[found.starter]
        for other in (None, (found.board + 1) % BARRIERS):
            if i.control.write_barrier == found.board:
                control = replace(i.control, write_barrier=other)
            else:
                control = replace(i.control, read_barrier=other)
            yield partial(edit, subject, i.index, control, Rule.BARRIER, consumer(i.index), "board changed")
