"""Scoreboards given out anew for every order of a block.

Every operation that somebody waits for gets a scoreboard when it starts, and whoever touches its registers
first waits for that one. A wait is for zero, so it also waits for whatever else has raised the scoreboard by
then: of all scoreboards an operation takes the one where that costs least, and rather the compiler's.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple

import numpy as np

from cuasmrl.compiled import compiled
from cuasmrl.sass import BARRIERS, Instruction, Pipe
from cuasmrl.schedule.blocks import Block
from cuasmrl.schedule.dependences import Originals
from cuasmrl.schedule.operations import Operation, Traffic
from cuasmrl.schedule.retiming import Int


class Trait(IntEnum):
    """What is to be known of an instruction, a row each."""

    WRITE = 0
    """The compiler's scoreboard for its result, -1 for none."""
    READ = 1
    """The same for its sources."""
    IS_FROZEN = 2
    """It keeps both."""
    RESULT = 3
    """Number of the operation that writes its result, or -1."""
    SOURCES = 4
    """Number of the operation that reads its sources, or -1."""
    QUEUE = 5
    """In-order queue, 0 for none."""
    IS_MEMORY = 6
    IS_CONDITIONAL = 7
    WAITS = 8
    """Wait bits that stay."""
    RELEASE = 9
    """Cycles until what it raises is seen."""
    WIDTH = 10


class Announcements(NamedTuple):
    """A block for compiled code; its instructions are counted from 0."""

    traits: Int
    starters: Int
    """Of each operation: the instruction, or -1 if it is under way when the block begins."""
    given: Int
    """Of each operation: the scoreboard it has in any case, or -1."""
    needed: Int
    """Operations that an instruction has to find over, lists laid end to end."""
    needed_starts: Int
    boards: Int
    """Those that may be given out."""


class Play(NamedTuple):
    """A block in one order, as far as it has been gone through."""

    order: Int
    place: Int
    times: Int
    ends: Int
    """Of each operation: when somebody first needs it to be over."""
    begun: Int
    board_of: Int
    """Of each operation: its scoreboard, -1 while or if it has none."""
    is_under_way: Int


_LATENCY = 40
"""Cycles after issue within which waiting for an operation is likely to take time. Loads from shared memory
take 33 on an idle machine; with 40 the order of ptxas was about as fast as with its own scoreboards, with
24 and with 64 and more it was slower (six tensor kernels)."""
_HABIT = 15
"""Cycles that another scoreboard has to save before the compiler's is given up."""
_FORBIDDEN = 10_000
_SEEN = 2
_NEVER = 1 << 40


class Slots:
    """The scoreboards of one block."""

    def __init__(self, block: Block, traffic: Traffic, originals: Originals) -> None:
        self.block = block
        self._announcements = _announcements(block, traffic, originals)

    def assign(self, window: Sequence[int], times: Sequence[int]) -> Int | None:
        """Three rows for the block's instructions: write barriers, read barriers (-1 for none), and waits.

        They depend on the order and its issue times only. None if six scoreboards do not suffice.
        """
        order = np.array(window, np.int64) - self.block.start
        found = np.empty((3, len(order)), np.int64)
        fits = _assign(order, np.array(times, np.int64), found, *self._announcements)
        return found if fits else None


def _announcements(block: Block, traffic: Traffic, originals: Originals) -> Announcements:
    queues: dict[str, int] = {"": 0}
    code = originals.code[block.start : block.end]
    traits = np.full((len(block), Trait.WIDTH), -1, np.int64)
    for row, i in zip(traits, code, strict=True):
        control, declaration = i.control, i.declaration
        queue = "" if declaration is None else declaration.queue
        row[Trait.WRITE] = -1 if control.write_barrier is None else control.write_barrier
        row[Trait.READ] = -1 if control.read_barrier is None else control.read_barrier
        row[Trait.IS_FROZEN] = i.index in traffic.frozen
        row[Trait.QUEUE] = queues.setdefault(queue, len(queues))
        row[Trait.IS_MEMORY] = declaration is not None and declaration.pipe is Pipe.MEMORY
        row[Trait.IS_CONDITIONAL] = i.is_conditional
        row[Trait.WAITS] = traffic.kept_waits.get(i.index, 0)
        row[Trait.RELEASE] = originals.table.release(i) or 0
    needed: list[list[int]] = [[] for _ in range(len(block))]
    starters, given = [], []
    for number, operation in enumerate(traffic.operations):
        starter = operation.key.index
        keeps = operation.is_earlier or starter in traffic.frozen
        given.append(_board_of(originals.code[starter], operation) if keeps else -1)
        starters.append(-1 if operation.is_earlier else starter - block.start)
        if not operation.is_earlier:
            traits[starter - block.start, Trait.SOURCES if operation.key.is_read else Trait.RESULT] = number
        for c in operation.waiters:
            needed[c - block.start].append(number)
    starts = np.concatenate([[0], np.cumsum([len(numbers) for numbers in needed])]).astype(np.int64)
    flat = np.array([number for numbers in needed for number in numbers], np.int64)
    boards = np.array(sorted(traffic.boards), np.int64)
    return Announcements(
        traits, np.array(starters, np.int64), np.array(given, np.int64), flat, starts, boards
    )


def _board_of(starter: Instruction, operation: Operation) -> int:
    """The compiler's; the result comes after the reading of sources and announces that too."""
    control = starter.control
    boards = (control.read_barrier, control.write_barrier)[0 if operation.key.is_read else 1 :]
    return next((k for k in boards if k is not None), -1)


@compiled
def _assign(
    order: Int, times: Int, found: Int,
    traits: Int, starters: Int, given: Int, needed: Int, needed_starts: Int, boards: Int,
) -> bool:  # fmt: skip
    n, operations = len(order), len(starters)
    ends = np.full(operations, _NEVER, np.int64)
    begun = np.full(operations, -_NEVER, np.int64)
    place = np.empty(n, np.int64)
    for p in range(n):
        place[order[p]] = p
        for d in range(needed_starts[order[p]], needed_starts[order[p] + 1]):
            ends[needed[d]] = min(ends[needed[d]], times[p])
    is_under_way = (starters < 0).astype(np.int64)
    play = Play(order, place, times, ends, begun, given.copy(), is_under_way)
    seen_at = np.zeros(BARRIERS, np.int64)
    for p in range(n):
        i, time = order[p], times[p]
        waits = traits[i, Trait.WAITS]
        for d in range(needed_starts[i], needed_starts[i + 1]):
            if is_under_way[needed[d]]:
                k = _announcer(needed[d], play, traits, starters)
                if k < 0:
                    return False
                waits |= 1 << k
        for k in range(BARRIERS):
            if waits >> k & 1:
                if time < seen_at[k]:
                    return False
                _end(k, play, traits, starters)
        write, read = _start(i, time, play, traits, starters, boards)
        found[0, i], found[1, i], found[2, i] = write, read, waits
        for k in (write, read):
            if k >= 0:
                seen_at[k] = max(seen_at[k], time + traits[i, Trait.RELEASE])
    # Of what has no scoreboard of the compiler's, nobody outside knows.
    return not np.any((is_under_way == 1) & (given < 0))


@compiled
def _start(i: int, time: int, play: Play, traits: Int, starters: Int, boards: Int) -> tuple[int, int]:
    """Scoreboards for the result and for the sources of an instruction that issues now."""
    result, sources = traits[i, Trait.RESULT], traits[i, Trait.SOURCES]
    is_frozen = traits[i, Trait.IS_FROZEN]
    write, read = (traits[i, Trait.WRITE], traits[i, Trait.READ]) if is_frozen else (-1, -1)
    if result >= 0:
        if not is_frozen and play.ends[result] != _NEVER:
            write = _cheapest(result, time, traits[i, Trait.WRITE], play, traits, starters, boards)
            play.board_of[result] = write
        play.begun[result], play.is_under_way[result] = time, 1
    if sources >= 0:
        if play.board_of[sources] < 0 and result >= 0 and play.ends[result] <= play.ends[sources]:
            play.board_of[sources] = play.board_of[result]
        elif not is_frozen and play.ends[sources] != _NEVER:
            read = _cheapest(sources, time, traits[i, Trait.READ], play, traits, starters, boards)
            play.board_of[sources] = read
        play.begun[sources], play.is_under_way[sources] = time, 1
    return write, read


@compiled
def _end(k: int, play: Play, traits: Int, starters: Int) -> None:
    """A wait for a scoreboard ends what raised it, and what queues have finished before that."""
    for a in range(len(starters)):
        if play.is_under_way[a] and play.board_of[a] == k:
            play.is_under_way[a] = 0
            for o in range(len(starters) if starters[a] >= 0 else 0):
                if play.is_under_way[o] and starters[o] >= 0 and _is_over_with(o, a, play, traits, starters):
                    play.is_under_way[o] = 0


@compiled
def _is_over_with(o: int, a: int, play: Play, traits: Int, starters: Int) -> bool:
    """Is an operation over when another one is? A queue ends and reads in order, and all memory reads so."""
    first, later = starters[o], starters[a]
    if play.place[first] >= play.place[later]:
        return bool(first == later and traits[first, Trait.SOURCES] == o)
    same_queue = traits[first, Trait.QUEUE] > 0 and traits[first, Trait.QUEUE] == traits[later, Trait.QUEUE]
    if traits[first, Trait.RESULT] == o:
        return same_queue and traits[later, Trait.RESULT] == a and not traits[later, Trait.IS_CONDITIONAL]
    return same_queue or bool(traits[first, Trait.IS_MEMORY] and traits[later, Trait.IS_MEMORY])


@compiled
def _announcer(o: int, play: Play, traits: Int, starters: Int) -> int:
    """The scoreboard to wait for: its own, else that of the next one that ends only after it; or -1."""
    best, first = int(play.board_of[o]), _NEVER
    if best >= 0 or starters[o] < 0:
        return best
    for a in range(len(starters)):
        if starters[a] >= 0 and play.is_under_way[a] and play.board_of[a] >= 0:
            place = play.place[starters[a]]
            if place < first and _is_over_with(o, a, play, traits, starters):
                best, first = int(play.board_of[a]), place
    return best


@compiled
def _cheapest(o: int, time: int, habit: int, play: Play, traits: Int, starters: Int, boards: Int) -> int:
    """The scoreboard with which an operation delays others, and is delayed, least; -1 to rely on the next."""
    i, end = starters[o], play.ends[o]
    queue = traits[i, Trait.QUEUE]
    cost = np.zeros(BARRIERS, np.int64)
    for p in range(play.place[i] + 1, len(play.order)):
        at, j = play.times[p], play.order[p]
        if at >= end:
            break
        for k in range(BARRIERS):
            if traits[j, Trait.WAITS] >> k & 1:
                cost[k] += _wait(at - time)
        if traits[j, Trait.IS_FROZEN]:
            for column in (Trait.WRITE, Trait.READ):
                if traits[j, column] >= 0:
                    cost[traits[j, column]] += _wait(end - at)
    for a in range(len(starters)):
        k = play.board_of[a]
        if not play.is_under_way[a] or k < 0:
            continue
        if play.ends[a] < end:
            cost[k] += _wait(play.ends[a] - time)
        elif starters[a] >= 0 and (not queue or traits[starters[a], Trait.QUEUE] != queue):
            cost[k] += _wait(end - play.begun[a])
    best, least = -1, _NEVER
    if habit < 0:
        least = _reliance(o, play, traits, starters) - _HABIT
    for k in boards:
        price = cost[k] - _HABIT if k == habit else cost[k]
        if price < least:
            best, least = k, price
    return best


@compiled
def _reliance(o: int, play: Play, traits: Int, starters: Int) -> int:
    """What it costs to go without a scoreboard: the next one that ends only after it has to be waited for."""
    i, end = starters[o], play.ends[o]
    for p in range(play.place[i] + 1, len(play.order)):
        if play.times[p] + _SEEN > end:
            break
        j = play.order[p]
        for a, board in ((traits[j, Trait.RESULT], Trait.WRITE), (traits[j, Trait.SOURCES], Trait.READ)):
            # Those that the compiler left without one may go without one here as well.
            if a >= 0 and traits[j, board] >= 0 and _is_over_with(o, a, play, traits, starters):
                return 0 if play.ends[a] <= end else _wait(end - play.times[p])
    return _NEVER


@compiled
def _wait(cycles: int) -> int:
    """What it costs to wait for something that was issued so long ago."""
    return _FORBIDDEN if cycles < _SEEN else max(0, _LATENCY - cycles)
