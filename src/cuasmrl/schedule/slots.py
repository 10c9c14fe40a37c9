"""Scoreboards assigned anew for every order of a block.

Every operation that somebody waits for gets a scoreboard when it starts, and whoever touches its registers
first waits for that one. A wait is for zero, so it also waits for whatever else has raised the scoreboard by
then: of all scoreboards an operation takes the one where that costs least, and rather the compiler's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from cuasmrl.binary.sass import BARRIERS
from cuasmrl.compiled import compiled
from cuasmrl.schedule.announcements import Sign, Trait, announcements
from cuasmrl.schedule.blocks import Block
from cuasmrl.schedule.dependences import Originals
from cuasmrl.schedule.operations import Traffic
from cuasmrl.schedule.retiming import Int


class Play(NamedTuple):
    """A block in one order, as far as it has been gone through."""

    order: Int
    position: Int
    times: Int
    ends: Int
    """Of each operation: when somebody first needs it to be over."""
    begun: Int
    board_of: Int
    """Of each operation: its scoreboard, -1 while or if it has none."""
    is_under_way: Int
    members: Int
    """Operations under way, in no order: a row of those without a scoreboard, a row of those with one."""
    sizes: Int
    """How many those are."""
    place: Int
    """Of each operation: where it stands in its row."""
    stops: Int
    """Positions that wait or raise a scoreboard whatever is assigned, and the number of positions."""
    next_stop: Int
    """Of each position: the first of these from there on."""
    raisers: Int
    """Positions that raise a scoreboard in the original for an operation, and the number of positions."""
    next_raiser: Int


_LATENCY = 40
"""Cycles after issue within which waiting for an operation is likely to take time. Loads from shared memory
take 33 on an idle machine; with 40 the order of ptxas was about as fast as with its own scoreboards, with
24 and with 64 and more it was slower (six tensor kernels)."""
_HABIT = 15
"""Cycles that another scoreboard has to save before the compiler's is given up."""
_FORBIDDEN = 10_000
_CROWD = 32
"""Operations on one scoreboard at a time: it counts to 63, and other blocks may have some under way."""
_SEEN = 2
_NEVER = 1 << 40


class Slots:
    """The scoreboards of one block."""

    def __init__(self, block: Block, traffic: Traffic, originals: Originals) -> None:
        self.block = block
        self._announcements = announcements(block, traffic, originals)

    def assign(self, window: Sequence[int], times: Sequence[int]) -> Int | None:
        """Three rows for the block's instructions: write barriers, read barriers (-1 for none), and waits.

        They depend on the order and its issue times only. None if six scoreboards do not suffice.
        """
        return self.assigned(np.array(window, np.int64) - self.block.start, np.array(times, np.int64))

    def assigned(self, order: Int, times: Int) -> Int | None:
        """The same for arrays; instructions are counted from the block's first."""
        found = np.empty((3, len(order)), np.int64)
        return found if _assign(order, times, found, *self._announcements) else None


@compiled
def _assign(
    order: Int, times: Int, found: Int, traits: Int, signs: Int, needed: Int, needed_starts: Int, boards: Int,
    entry: Int,
) -> bool:  # fmt: skip
    n, operations = len(order), len(signs)
    ends = np.full(operations, _NEVER, np.int64)
    begun = np.full(operations, -_NEVER, np.int64)
    position = np.empty(n, np.int64)
    for p in range(n):
        position[order[p]] = p
        for d in range(needed_starts[order[p]], needed_starts[order[p] + 1]):
            ends[needed[d]] = min(ends[needed[d]], times[p])
    is_under_way = np.zeros(operations, np.int64)
    waits_anyway = (traits[order, Trait.WAITS] != 0) | (traits[order, Trait.IS_FROZEN] != 0)
    raises = (traits[order, Trait.RESULT] >= 0) & (traits[order, Trait.WRITE] >= 0)
    raises |= (traits[order, Trait.SOURCES] >= 0) & (traits[order, Trait.READ] >= 0)
    stops, next_stop = _marked(waits_anyway)
    raisers, next_raiser = _marked(raises)
    play = Play(
        order, position, times, ends, begun, signs[:, Sign.BOARD].copy(), is_under_way,
        np.empty((2, operations), np.int64), np.zeros(2, np.int64), np.empty(operations, np.int64),
        stops, next_stop, raisers, next_raiser,
    )  # fmt: skip
    for o in range(operations):
        if signs[o, Sign.STARTER] < 0:
            _begin(o, play)
    seen_at = np.zeros(BARRIERS, np.int64)
    seen_behind = np.zeros(BARRIERS, np.int64)
    waited = 0
    raised = np.zeros(BARRIERS, np.int64)
    for p in range(n):
        i, time = order[p], times[p]
        waits = traits[i, Trait.WAITS]
        for d in range(needed_starts[i], needed_starts[i + 1]):
            if is_under_way[needed[d]]:
                k = _announcer(needed[d], play, signs)
                if k < 0:
                    return False
                waits |= 1 << k
        for k in range(BARRIERS):
            if waits >> k & 1:
                if not _sees(k, time, waited | traits[i, Trait.FIRST], seen_at, entry):
                    return False
                waited |= 1 << k
                raised[k] = seen_behind[k] = 0
                _end(k, play, signs)
        write, read = _start(i, time, play, traits, signs, boards)
        found[0, i], found[1, i], found[2, i] = write, read, waits
        for k in (write, read):
            if k >= 0:
                raised[k] += 1
                if raised[k] > _CROWD:
                    return False
                seen_at[k] = max(seen_at[k], time + traits[i, Trait.RELEASE])
                # Frozen ones keep their distance from the end of the block.
                seen_behind[k] = 0 if traits[i, Trait.IS_FROZEN] else seen_at[k]
    # Somebody in the next block might wait for it too soon.
    if np.any(seen_behind > times[n]):
        return False
    # Nobody outside knows of the others.
    return not np.any((is_under_way == 1) & (signs[:, Sign.IS_LEFT] == 0))


@compiled
def _sees(k: int, time: int, settled: int, seen_at: Int, entry: Int) -> bool:
    """Does a wait come late enough for all that raised the scoreboard, here and in earlier blocks?

    For the latter it does behind another wait, and where it was the first one in the original.
    """
    return bool(time >= seen_at[k] and (settled >> k & 1 or time >= entry[k]))


@compiled
def _marked(is_marked: npt.NDArray[np.bool_]) -> tuple[Int, Int]:
    """Marked positions, closed by their number; and for each position the first of them from there on."""
    n = len(is_marked)
    found = np.append(np.flatnonzero(is_marked), n)
    following = np.empty(n + 1, np.int64)
    k = len(found) - 1
    for p in range(n, -1, -1):
        if k > 0 and found[k - 1] >= p:
            k -= 1
        following[p] = k
    return found, following


@compiled
def _begin(o: int, play: Play) -> None:
    row = 1 if play.board_of[o] >= 0 else 0
    play.is_under_way[o] = 1
    play.place[o] = play.sizes[row]
    play.members[row, play.sizes[row]] = o
    play.sizes[row] += 1


@compiled
def _finish(o: int, play: Play) -> None:
    row = 1 if play.board_of[o] >= 0 else 0
    play.is_under_way[o] = 0
    play.sizes[row] -= 1
    last = play.members[row, play.sizes[row]]
    play.members[row, play.place[o]] = last
    play.place[last] = play.place[o]


@compiled
def _start(i: int, time: int, play: Play, traits: Int, signs: Int, boards: Int) -> tuple[int, int]:
    """Scoreboards for the result and for the sources of an instruction that issues now."""
    result, sources = traits[i, Trait.RESULT], traits[i, Trait.SOURCES]
    is_frozen = traits[i, Trait.IS_FROZEN]
    write, read = (traits[i, Trait.WRITE], traits[i, Trait.READ]) if is_frozen else (-1, -1)
    if result >= 0:
        if not is_frozen and play.ends[result] != _NEVER:
            write = _cheapest(result, time, traits[i, Trait.WRITE], play, traits, signs, boards)
            play.board_of[result] = write
        play.begun[result] = time
        _begin(result, play)
    if sources >= 0:
        if play.board_of[sources] < 0 and result >= 0 and play.ends[result] <= play.ends[sources]:
            play.board_of[sources] = play.board_of[result]
        elif not is_frozen and play.ends[sources] != _NEVER:
            read = _cheapest(sources, time, traits[i, Trait.READ], play, traits, signs, boards)
            play.board_of[sources] = read
        play.begun[sources] = time
        _begin(sources, play)
    return write, read


@compiled
def _end(k: int, play: Play, signs: Int) -> None:
    """A wait for a scoreboard ends what raised it, and what queues have finished before that."""
    announced = play.members[1, : play.sizes[1]]
    for a in np.sort(announced[play.board_of[announced] == k]):
        if play.is_under_way[a]:
            _finish(a, play)
            for row in range(2):
                # From behind, since the last one takes the place of one that ends.
                for m in range(play.sizes[row] - 1, -1, -1):
                    if _is_over_with(play.members[row, m], a, play, signs):
                        _finish(play.members[row, m], play)


@compiled
def _is_over_with(o: int, a: int, play: Play, signs: Int) -> bool:
    """Is an operation over when another one is? Queues read in order, all of memory too; some end so."""
    first, later = signs[o, Sign.STARTER], signs[a, Sign.STARTER]
    if later < 0:
        return False
    if first >= 0 and play.position[first] >= play.position[later]:
        return bool(first == later and not signs[o, Sign.IS_RESULT])
    same_queue = signs[o, Sign.QUEUE] > 0 and signs[o, Sign.QUEUE] == signs[a, Sign.QUEUE]
    if signs[o, Sign.IS_RESULT]:
        in_order = same_queue and signs[o, Sign.RETURNS_IN_ORDER] and signs[a, Sign.RETURNS_IN_ORDER]
        return bool(in_order and signs[a, Sign.IS_RESULT] and not signs[a, Sign.IS_CONDITIONAL])
    return bool(same_queue or (signs[o, Sign.IS_MEMORY] and signs[a, Sign.IS_MEMORY]))


@compiled
def _announcer(o: int, play: Play, signs: Int) -> int:
    """The scoreboard to wait for: its own, else that of the next one that ends only after it; or -1."""
    best, first = int(play.board_of[o]), _NEVER
    if best >= 0:
        return best
    announcer = -1
    for a in play.members[1, : play.sizes[1]]:
        if _is_over_with(o, a, play, signs):
            position = play.position[signs[a, Sign.STARTER]]
            if position < first or (position == first and a < announcer):
                best, first, announcer = int(play.board_of[a]), position, a
    return best


@compiled
def _cheapest(o: int, time: int, habit: int, play: Play, traits: Int, signs: Int, boards: Int) -> int:
    """The scoreboard with which an operation delays others, and is delayed, least; -1 to rely on the next."""
    i, end, queue = signs[o, Sign.STARTER], play.ends[o], signs[o, Sign.QUEUE]
    cost = np.zeros(BARRIERS, np.int64)
    for s in range(play.next_stop[play.position[i] + 1], len(play.stops) - 1):
        at, j = play.times[play.stops[s]], play.order[play.stops[s]]
        if at >= end:
            break
        for k in range(BARRIERS):
            if traits[j, Trait.WAITS] >> k & 1:
                cost[k] += _wait(at - time)
        if traits[j, Trait.IS_FROZEN]:
            for column in (Trait.WRITE, Trait.READ):
                if traits[j, column] >= 0:
                    cost[traits[j, column]] += _wait(end - at)
    for a in play.members[1, : play.sizes[1]]:
        k = play.board_of[a]
        if play.ends[a] < end:
            cost[k] += _wait(play.ends[a] - time)
        elif signs[a, Sign.STARTER] >= 0 and (not queue or signs[a, Sign.QUEUE] != queue):
            cost[k] += _wait(end - play.begun[a])
    best, least = -1, _NEVER
    if habit < 0:
        least = _reliance(o, play, traits, signs) - _HABIT
    for k in boards:
        price = cost[k] - _HABIT if k == habit else cost[k]
        if price < least:
            best, least = k, price
    return best


@compiled
def _reliance(o: int, play: Play, traits: Int, signs: Int) -> int:
    """What it costs to go without a scoreboard: the next one that ends only after it has to be waited for."""
    i, end = signs[o, Sign.STARTER], play.ends[o]
    for r in range(play.next_raiser[play.position[i] + 1], len(play.raisers) - 1):
        p = play.raisers[r]
        if play.times[p] + _SEEN > end:
            break
        j = play.order[p]
        for a, board in ((traits[j, Trait.RESULT], Trait.WRITE), (traits[j, Trait.SOURCES], Trait.READ)):
            # Those that the compiler left without one may go without one here as well.
            if a >= 0 and traits[j, board] >= 0 and _is_over_with(o, a, play, signs):
                return 0 if play.ends[a] <= end else _wait(end - play.times[p])
    return _NEVER


@compiled
def _wait(cycles: int) -> int:
    """What it costs to wait for something that was issued so long ago."""
    return _FORBIDDEN if cycles < _SEEN else max(0, _LATENCY - cycles)
