"""Waits and scoreboards that are there, but in the wrong place."""

import random
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import pairwise

from cuasmrl.binary.sass import BARRIERS, Control, Hazard, Instruction, Order, Pipe
from cuasmrl.checker import Rule
from tests.checker.plants.base import (
    Named,
    Plant,
    Site,
    both,
    consumer,
    edit,
    either,
    is_strong,
    kind,
    move,
    one_of,
    raised,
    waiting,
    without,
)
from tests.checker.plants.ordering import may_pass
from tests.checker.plants.scoreboards import (
    announced_readings,
    announced_results,
    last_raised,
    named_by_depbar,
    other_guard,
    queue_of,
)
from tests.checker.subjects import Subject

_STRICT = (Order.SYNC, Order.PRODUCT, Order.PINNED)
_SCOREBOARD = frozenset((Rule.SCOREBOARD,))


def _change(
    subject: Subject, controls: dict[int, Control], rules: frozenset[Rule], named: Named, story: str,
    _: random.Random,
) -> Plant:  # fmt: skip
    return Plant(subject.build(controls=controls), rules, named, story)


# ---- waits ----


@kind("wait put off to a later instruction")
def wait_put_off(subject: Subject) -> Iterator[Site]:
    for p, reader, board in announced_results(subject):
        i = subject.code[reader]
        if i.order not in _STRICT and reader + 1 < len(subject.code):
            controls = {
                reader: without(i.control, board),
                reader + 1: waiting(subject.code[reader + 1].control, board),
            }
            story = f"wait of {i} put off"
            yield partial(_change, subject, controls, _SCOREBOARD, either(p, reader), story)


@kind("wait put in front of what it waits for")
def wait_put_in_front(subject: Subject) -> Iterator[Site]:
    for p, reader, board in announced_results(subject):
        i = subject.code[reader]
        if i.order not in _STRICT and p and subject.block[p - 1] == subject.block[p]:
            controls = {reader: without(i.control, board), p - 1: waiting(subject.code[p - 1].control, board)}
            story = f"wait of {i} put in front of {subject.code[p]}"
            yield partial(_change, subject, controls, _SCOREBOARD, either(p, reader), story)


@kind("wait for another scoreboard")
def wait_for_another_scoreboard(subject: Subject) -> Iterator[Site]:
    for p, reader, board in announced_results(subject):
        i = subject.code[reader]
        other = (board + 2) % BARRIERS
        if i.order not in _STRICT:
            control = waiting(without(i.control, board), other)
            named = either(p, reader)
            yield partial(edit, subject, reader, control, Rule.SCOREBOARD, named, "another scoreboard")


@kind("load put behind the wait for it")
def load_put_behind_the_wait(subject: Subject) -> Iterator[Site]:
    """Somebody waits early on behalf of the reader; the load is issued after that."""
    for p, waiter, reader, _ in _waited_for_others(subject):
        between = range(p + 1, waiter + 1)
        if not subject.is_movable(p) or waiter + 1 == len(subject.code):
            continue
        if any(
            subject.region[j] != subject.region[p] or not subject.is_movable(j)
            for j in (*between, waiter + 1)
        ):
            continue
        if (
            all(not subject.hazards(p, j) and may_pass(subject, p, j) for j in between)
            and waiter + 1 <= reader
        ):
            # It may have announced earlier ones of its queue.
            mates = [j for j in range(p + 1) if queue_of(subject, j) == queue_of(subject, p)]
            named = one_of(*mates)
            yield partial(move, subject, p, waiter + 1, _SCOREBOARD, named, "load put behind the wait")


def _waited_for_others(subject: Subject) -> Iterator[tuple[int, int, int, int]]:
    """(load, who waits for it without needing it, first who needs it, scoreboard)"""
    for waiter in subject.code:
        for board in waiter.control.waits:
            p = last_raised(subject, waiter.index, board)
            if (
                p is None
                or subject.code[p].control.write_barrier != board
                or subject.code[p].order in _STRICT
            ):
                continue
            reader = _first_touch(subject, p)
            mates = [j for j in range(p + 1, reader or p) if queue_of(subject, j) == queue_of(subject, p)]
            later = range(waiter.index + 1, (reader or 0) + 1)
            again = any(board in subject.waits_of(j) for j in later)
            alone = all(subject.code[j].control.write_barrier in (None, board) for j in mates)
            if reader is not None and reader > waiter.index and not again and alone:
                yield p, waiter.index, reader, board


def _first_touch(subject: Subject, p: int) -> int | None:
    for j in range(p + 1, len(subject.code)):
        if subject.block[j] != subject.block[p]:
            return None
        if any(pair.hazard is not Hazard.WAR for pair in subject.hazards(p, j)):
            return j
    return None


@kind("wait on behalf of others removed")
def wait_on_behalf_of_others_removed(subject: Subject) -> Iterator[Site]:
    """Who waits does not need it, but somebody behind does."""
    for p, waiter, _, board in _waited_for_others(subject):
        if subject.code[waiter].order not in _STRICT:
            control = without(subject.code[waiter].control, board)
            # Earlier ones of its queue may have been announced with it.
            mates = [j for j in range(p + 1) if queue_of(subject, j) == queue_of(subject, p)]
            named = raised(subject, board, *mates)
            yield partial(edit, subject, waiter, control, Rule.SCOREBOARD, named, "wait removed")


@kind("source overwritten before the result says that it was read")
def source_overwritten_before_the_result(subject: Subject) -> Iterator[Site]:
    """No read barrier: that the sources were read is known from the result only."""
    for writer in subject.code:
        for board in () if writer.is_variable or writer.order in _STRICT else writer.control.waits:
            p = last_raised(subject, writer.index, board)
            if p is None or other_guard(subject, p, writer.index):
                continue
            control = subject.code[p].control
            pairs = subject.hazards(p, writer.index)
            sources = [x for x in pairs if x.hazard is Hazard.WAR and x.register < 256]
            alone = control.write_barrier == board and control.read_barrier in (None, board)
            if alone and sources and len({x.hazard for x in pairs}) == 1:
                named = raised(subject, board)
                yield partial(
                    edit,
                    subject,
                    writer.index,
                    without(writer.control, board),
                    Rule.SCOREBOARD,
                    named,
                    "wait removed",
                )


# ---- scoreboards ----


@kind("write barrier turned into a read barrier")
def write_turned_into_read(subject: Subject) -> Iterator[Site]:
    for p, reader, board in announced_results(subject):
        if subject.code[p].control.read_barrier is not None:
            continue
        control = replace(subject.code[p].control, write_barrier=None, read_barrier=board)
        rules = frozenset((Rule.SCOREBOARD, Rule.BARRIER))
        yield partial(
            _change,
            subject,
            {p: control},
            rules,
            either(p, reader),
            f"{subject.code[p]} announces its sources",
        )


@kind("read barrier of a store turned into a write barrier")
def read_turned_into_write(subject: Subject) -> Iterator[Site]:
    for i in subject.code:
        board = i.control.read_barrier
        if board is not None and not i.defs and i.control.write_barrier is None:
            control = replace(i.control, write_barrier=board, read_barrier=None)
            yield partial(edit, subject, i.index, control, Rule.BARRIER, consumer(i.index), "barrier turned")


@kind("read barrier changed")
def read_barrier_changed(subject: Subject) -> Iterator[Site]:
    """To a scoreboard that nobody waits for before the source is overwritten."""
    for p, writer, board in announced_readings(subject):
        other = (board + 1) % BARRIERS
        declaration = subject.code[p].declaration
        if any(other in subject.waits_of(j) for j in range(p + 1, writer + 1)):
            continue
        usual = declaration is not None and declaration.pipe in (Pipe.MEMORY, Pipe.XU)
        counted = {board, other} & named_by_depbar(subject)
        rule = Rule.SCOREBOARD if usual and not counted else Rule.BARRIER
        control = replace(subject.code[p].control, read_barrier=other)
        yield partial(edit, subject, p, control, rule, either(p, writer), "read barrier changed")


@kind("scoreboards of two loads exchanged")
def scoreboards_exchanged(subject: Subject) -> Iterator[Site]:
    for (p, reader, first), (q, _, second) in pairwise(announced_results(subject)):
        if first == second or subject.block[p] != subject.block[q] or p == q:
            continue
        if any(second in subject.waits_of(j) for j in range(p + 1, reader + 1)):
            continue
        controls = {
            p: replace(subject.code[p].control, write_barrier=second),
            q: replace(subject.code[q].control, write_barrier=first),
        }
        rules = frozenset((Rule.BARRIER if {first, second} & named_by_depbar(subject) else Rule.SCOREBOARD,))
        story = f"scoreboards of {subject.code[p]} and {subject.code[q]} exchanged"
        yield partial(_change, subject, controls, rules, one_of(p, q, reader), story)


@kind("scoreboard changed where all know of it but a synchronisation")
def all_told_but_a_synchronisation(subject: Subject) -> Iterator[Site]:
    """Everybody who touches the result waits for the new one; memory behind the old wait is not settled."""
    for i in subject.code:
        for board in i.control.waits if i.order in _STRICT else ():
            p, other = last_raised(subject, i.index, board), (board + 1) % BARRIERS
            if p is None or {board, other} & named_by_depbar(subject):
                continue
            load = subject.code[p]
            plain = load.order not in _STRICT and load.control.write_barrier == board and load.defs
            unchanged = load.control == subject.compiled(p) and subject.was_behind(p, i.index)
            between = subject.code[p + 1 : i.index]
            mates = any(queue_of(subject, j.index) == queue_of(subject, p) for j in between)
            awaited = any(other in subject.waits_of(j) for j in range(p + 1, i.index + 1))
            if plain and unchanged and not mates and not awaited and not is_strong(load):
                yield partial(_tell_all_but, subject, load, i.index, other)


def _tell_all_but(
    subject: Subject, load: Instruction, sync: int, other: int, _: random.Random
) -> Plant | None:
    written = {access.register for access in load.defs}
    touching = [j for j in subject.code if written & {access.register for access in (*j.uses, *j.defs)}]
    if sync in {j.index for j in touching}:
        return None
    controls = {j.index: waiting(j.control, other) for j in touching if j.index != load.index}
    # In a loop it touches its own result.
    controls[load.index] = waiting(replace(load.control, write_barrier=other), other)
    story = f"{subject.code[sync]} does not know of the new scoreboard of {load}"
    return Plant(subject.build(controls=controls), _SCOREBOARD, both(load.index, sync), story)


@kind("counted scoreboard raised by a load")
def counted_scoreboard_raised(subject: Subject) -> Iterator[Site]:
    """One more operation on a scoreboard that a DEPBAR counts on would let an older one run on."""
    for i in subject.code:
        for board in named_by_depbar(subject):
            if i.control.write_barrier not in (None, board) and i.defs and i.order not in _STRICT:
                control = replace(i.control, write_barrier=board)
                yield partial(
                    edit, subject, i.index, control, Rule.BARRIER, consumer(i.index), "board reused"
                )


@kind("group wait that lets one more run on")
def group_wait_lets_one_more_run_on(subject: Subject) -> Iterator[Site]:
    for i in subject.code:
        if i.depbar is not None:
            yield partial(_one_more, subject, i)


_COUNT = 1 << 38
"""Lowest bit of the count in a DEPBAR."""


def _one_more(subject: Subject, i: Instruction, _: random.Random) -> Plant:
    word = (int.from_bytes(i.word, "little") + _COUNT).to_bytes(16, "little")
    words = tuple(word if j.index == i.index else j.word for j in subject.code)
    broken = subject.cubin.with_words(subject.listing.kernel, words, {})
    rules = frozenset((Rule.WORD, Rule.BLOCK, Rule.PINNED))
    others = {j.index for j in subject.code if j.depbar is not None}
    return Plant(broken, rules, lambda refusal: refusal.consumer in others, f"{i} lets one more run on")
