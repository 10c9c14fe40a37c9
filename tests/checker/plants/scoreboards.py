"""Barriers and waits removed or evaded."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import pairwise

from cuasmrl.binary.sass import BARRIERS, Hazard, Order, Pipe
from cuasmrl.checker import Rule
from tests.checker.plants.base import Site, consumer, edit, either, kind, move, producer
from tests.checker.subjects import Subject

_SCOREBOARD = frozenset((Rule.SCOREBOARD,))


@kind("wait removed")
def wait_removed(subject: Subject) -> Iterator[Site]:
    """The first wait for a result, on the very instruction that reads it."""
    for reader in subject.code:
        if reader.order.is_strict:
            continue
        for board in reader.control.waits:
            p = last_raised(subject, reader.index, board)
            if p is not None and _reads_result(subject, p, reader.index, board):
                control = replace(reader.control, wait_mask=reader.control.wait_mask & ~(1 << board))
                # In a loop, a consumer further up may come first.
                named = either(p, reader.index)
                yield partial(edit, subject, reader.index, control, Rule.SCOREBOARD, named, "wait removed")


@kind("reader moved above the wait")
def reader_moved_above_the_wait(subject: Subject) -> Iterator[Site]:
    """A reader that relies on the wait of the instruction before it is put in front of that."""
    for waiter, reader in pairwise(subject.code):
        w, c = waiter.index, reader.index
        movable = subject.is_movable(w) and subject.is_movable(c) and subject.region[w] == subject.region[c]
        if not movable or subject.hazards(w, c) or subject.may_be_ordered(w, c) or waiter.order is Order.SYNC:
            continue
        for board in set(waiter.control.waits) - set(reader.control.waits):
            p = last_raised(subject, w, board)
            if p is not None and _reads_result(subject, p, c, board):
                yield partial(move, subject, c, w, _SCOREBOARD, consumer(c), "moved above the wait")


@kind("source overwritten above the wait")
def source_overwritten_above_the_wait(subject: Subject) -> Iterator[Site]:
    for writer in subject.code:
        if writer.order.is_strict or writer.is_variable:
            continue
        for board in writer.control.waits:
            p = last_raised(subject, writer.index, board)
            if p is not None and subject.code[p].control.read_barrier == board:
                pairs = [x for x in subject.hazards(p, writer.index) if x.hazard is Hazard.WAR]
                # Only general registers are read after issue.
                if any(pair.register < 256 for pair in pairs) and not other_guard(subject, p, writer.index):
                    control = replace(writer.control, wait_mask=writer.control.wait_mask & ~(1 << board))
                    named = either(p, writer.index)
                    yield partial(
                        edit, subject, writer.index, control, Rule.SCOREBOARD, named, "wait removed"
                    )


def other_guard(subject: Subject, p: int, until: int) -> bool:
    """Might something else than its read barrier show that p has read its sources?"""
    return (
        any(
            i.control.wait_mask or i.order is Order.SYNC or i.opcode == "DEPBAR"
            for i in subject.code[p + 1 : until]
        )
        or subject.code[until].control.wait_mask.bit_count() > 1
    )


def queue_of(subject: Subject, i: int) -> str:
    declaration = subject.code[i].declaration
    return declaration.queue if declaration else ""


def last_raised(subject: Subject, waiter: int, board: int) -> int | None:
    """The last instruction of the block before the waiter that raised a board nobody has waited for since."""
    for p in range(waiter - 1, -1, -1):
        i = subject.code[p]
        if subject.block[p] != subject.block[waiter] or board in i.control.waits or i.opcode == "DEPBAR":
            return None
        if board in i.control.sets:
            return p if i.is_variable and not i.never_executes else None
    return None


def _reads_result(subject: Subject, p: int, c: int, board: int) -> bool:
    """Is `board` all that tells c when p's result is there?"""
    raw = any(pair.hazard is Hazard.RAW for pair in subject.hazards(p, c))
    if not raw or subject.code[p].control.write_barrier != board:
        return False
    # A later result of the same queue, waited for through another board, would prove p's as well.
    queue = queue_of(subject, p)
    mates = [i for i in subject.code[p + 1 : c] if i.declaration and i.declaration.queue == queue]
    return all(i.control.write_barrier in (None, board) for i in mates)


@kind("covered load put behind its cover")
def covered_load_put_behind_its_cover(subject: Subject) -> Iterator[Site]:
    """A load without a barrier of its own goes behind the load of its queue that has one."""
    for q, p in enumerate(subject.obstacles):
        cover = subject.code[q]
        if p is None or cover.control.write_barrier is None or subject.hazards(p, q):
            continue
        covered = subject.code[p]
        if covered.declaration is None or cover.declaration is None or covered.control.sets:
            continue
        loads = covered.order is cover.order is Order.MEMORY and covered.is_variable
        writes = covered.declaration.writes or cover.declaration.writes
        same = covered.declaration.queue == cover.declaration.queue
        if loads and not writes and same and _relies_on(subject, p, q):
            yield partial(move, subject, q, p, _SCOREBOARD, producer(p), "cover moved up")


def _relies_on(subject: Subject, p: int, q: int) -> bool:
    """Does the first reader of p's result find it ready only through q's barrier?"""
    queue = queue_of(subject, p)
    for i in subject.code[q + 1 :]:
        if subject.block[i.index] != subject.block[q] or i.opcode == "DEPBAR":
            return False
        if any(pair.hazard is Hazard.RAW for pair in subject.hazards(p, i.index)):
            return True
        if i.control.write_barrier is not None and i.declaration is not None and i.declaration.queue == queue:
            return False
    return False


@kind("wait of a synchronisation removed")
def wait_of_a_synchronisation_removed(subject: Subject) -> Iterator[Site]:
    for i in subject.code:
        needed = subject.compiled(i.index).wait_mask
        if i.order.is_strict and needed:
            control = replace(i.control, wait_mask=i.control.wait_mask & ~(needed & -needed))
            yield partial(edit, subject, i.index, control, Rule.BARRIER, consumer(i.index), "wait removed")


@kind("write barrier removed")
def write_barrier_removed(subject: Subject) -> Iterator[Site]:
    for p, reader, board in announced_results(subject):
        control = replace(subject.code[p].control, write_barrier=None)
        rule = _rule(subject, {board})
        yield partial(edit, subject, p, control, rule, either(p, reader), "barrier removed")


@kind("write barrier changed")
def write_barrier_changed(subject: Subject) -> Iterator[Site]:
    """To a scoreboard that neither the reader nor anybody before it waits for."""
    for p, reader, board in announced_results(subject):
        other = (board + 1) % BARRIERS
        if any(other in i.control.waits for i in subject.code[p + 1 : reader + 1]):
            continue
        control = replace(subject.code[p].control, write_barrier=other)
        rule = _rule(subject, {board, other})
        yield partial(edit, subject, p, control, rule, either(p, reader), "barrier changed")


@kind("write barrier changed where it settles more than registers")
def strict_write_barrier_changed(subject: Subject) -> Iterator[Site]:
    for i in subject.code:
        k = i.control.write_barrier
        if k is None or (i.defs and not i.order.is_strict):
            continue
        for other in (None, (k + 1) % BARRIERS):
            control = replace(i.control, write_barrier=other)
            yield partial(edit, subject, i.index, control, Rule.BARRIER, consumer(i.index), "barrier changed")


@kind("write barrier on a fixed latency")
def barrier_on_a_fixed_latency(subject: Subject) -> Iterator[Site]:
    for i in subject.code:
        if i.declaration is not None and i.defs and not i.is_variable and not i.control.sets:
            control = replace(i.control, write_barrier=5)
            yield partial(edit, subject, i.index, control, Rule.BARRIER, consumer(i.index), "barrier added")


@kind("read barrier removed")
def read_barrier_removed(subject: Subject) -> Iterator[Site]:
    for p, writer, board in announced_readings(subject):
        control = replace(subject.code[p].control, read_barrier=None)
        declaration = subject.code[p].declaration
        usual = declaration is not None and declaration.pipe in (Pipe.MEMORY, Pipe.XU)
        rule = _rule(subject, {board}) if usual else Rule.BARRIER
        yield partial(edit, subject, p, control, rule, either(p, writer), "barrier removed")


@kind("scoreboard changed under a wait of a synchronisation")
def changed_under_a_synchronisation(subject: Subject) -> Iterator[Site]:
    """Such a wait may stand for memory: it has to go on waiting for the same operations."""
    for i in subject.code:
        for board in i.control.waits if i.order.is_strict else ():
            p = last_raised(subject, i.index, board)
            other = (board + 1) % BARRIERS
            if p is None or {board, other} & named_by_depbar(subject):
                continue
            setter = subject.code[p]
            mates = subject.code[p + 1 : i.index]
            if not subject.was_behind(p, i.index) or subject.compiled(p) != setter.control:
                continue
            if any(other in m.control.waits for m in (*mates, i)):
                continue
            if setter.control.write_barrier != board or setter.order.is_strict:
                continue
            if setter.defs and not any(queue_of(subject, m.index) == queue_of(subject, p) for m in mates):
                control = replace(setter.control, write_barrier=other)
                named = either(p, i.index)
                yield partial(edit, subject, p, control, Rule.SCOREBOARD, named, "scoreboard changed")


def announced_results(subject: Subject) -> Iterator[tuple[int, int, int]]:
    """(instruction, first reader of its result, the scoreboard that alone announces it)"""
    for reader in subject.code:
        for board in reader.control.waits:
            p = last_raised(subject, reader.index, board)
            if p is None or not _reads_result(subject, p, reader.index, board):
                continue
            if not subject.code[p].order.is_strict:
                yield p, reader.index, board


def announced_readings(subject: Subject) -> Iterator[tuple[int, int, int]]:
    """(instruction, who overwrites a source of it, the scoreboard that alone says that it is read)"""
    for writer in subject.code:
        for board in () if writer.is_variable else writer.control.waits:
            p = last_raised(subject, writer.index, board)
            if p is None or subject.code[p].control.read_barrier != board:
                continue
            if subject.code[p].control.write_barrier == board or subject.code[p].order is Order.PINNED:
                continue
            pairs = [x for x in subject.hazards(p, writer.index) if x.hazard is Hazard.WAR]
            if any(pair.register < 256 for pair in pairs) and not other_guard(subject, p, writer.index):
                yield p, writer.index, board


def _rule(subject: Subject, boards: set[int]) -> Rule:
    """What a DEPBAR names is kept in any case."""
    return Rule.BARRIER if boards & named_by_depbar(subject) else Rule.SCOREBOARD


def named_by_depbar(subject: Subject) -> set[int]:
    named = [i.depbar for i in subject.code if i.depbar is not None]
    return {k for first, _, others in named for k in (first, *others)}
