"""The smallest stalls for an order, compiled: this is asked for every move of the game."""

from enum import IntEnum
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from cuasmrl.binary.sass import MAX_STALL
from cuasmrl.compiled import compiled

Int: TypeAlias = npt.NDArray[np.int64]


class Bound(IntEnum):
    """What bounds an instruction of a block, a row each."""

    HEAD = 0
    TAIL = 1
    STALL = 2
    PIPE = 3
    SPACING = 4
    FOLLOWER = 5
    """The next of its pipe in the original, which may be closer; -1 for none."""
    FOLLOWER_SPACING = 6
    LEAST_SPACING = 7
    """Cycles to any other one of its pipe, for swaps, which do not look who follows."""
    WIDTH = 8


class Arrays(NamedTuple):
    """The bounds of a block."""

    rows: Int
    starts: Int
    """Where the distances of an instruction begin."""
    distances: Int
    """(earlier instruction, cycles); a negative number of cycles is how far it may lie behind at most."""
    least_length: int
    later_starts: Int
    later: Int
    """The same distances by the earlier of the two: (later instruction, cycles)."""

    def earliest(self, order: Int) -> Int | None:
        """Issue times of an order and the block's end, as early as possible; None if no stalls express it."""
        times = np.empty(len(order) + 1, np.int64)
        fits = earliest_times(order, times, self.rows, self.starts, self.distances, self.least_length)
        return times if fits else None

    def hold(self, order: Int, times: Int) -> bool:
        """Do these issue times, the last being the block's end, keep every bound of the block?"""
        return bool(times_hold(order, times, self.rows, self.starts, self.distances, self.least_length))


_PIPES = 16
_UNSET = -1


@compiled
def earliest_times(order: Int, times: Int, rows: Int, starts: Int, distances: Int, least_length: int) -> bool:
    """Fill in the earliest issue times of an order and the block's end; False if no stalls express them."""
    n = len(order)
    at = np.full(n, _UNSET, np.int64)
    last = np.full(_PIPES, _UNSET, np.int64)
    time, end = 0, least_length
    is_settled = True
    for k in range(n):
        i = order[k]
        time = max(time, rows[i, Bound.HEAD])
        for d in range(starts[i], starts[i + 1]):
            earlier = at[distances[d, 0]]
            if earlier != _UNSET:
                time = max(time, earlier + distances[d, 1])
            elif distances[d, 1] > 0:
                return False
            else:
                is_settled = False
        previous = last[rows[i, Bound.PIPE]]
        if previous != _UNSET:
            time = max(time, at[previous] + _spacing(rows, previous, i))
        last[rows[i, Bound.PIPE]] = i
        times[k] = at[i] = time
        end = max(end, time + rows[i, Bound.TAIL])
        time += rows[i, Bound.STALL]
    times[n] = max(end, time)
    # A gap no stall count can span is shared with the gaps before it.
    for k in range(n - 1, 0, -1):
        if times[k] < times[k + 1] - MAX_STALL:
            times[k] = times[k + 1] - MAX_STALL
            is_settled = False
    if times[0] > 0 or times[1] > MAX_STALL:
        return False
    # As early as possible everything holds, but for who may lie so far behind and came first.
    return is_settled or times_hold(order, times, rows, starts, distances, least_length)


@compiled
def times_hold(order: Int, times: Int, rows: Int, starts: Int, distances: Int, least_length: int) -> bool:
    """Do these issue times, the last being the block's end, keep every bound of the block?"""
    n = len(order)
    end = times[n]
    if end < least_length:
        return False
    at = np.empty(n, np.int64)
    last = np.full(_PIPES, _UNSET, np.int64)
    for k in range(n):
        at[order[k]] = times[k]
    for k in range(n):
        i, time = order[k], times[k]
        if time < rows[i, Bound.HEAD] or end - time < rows[i, Bound.TAIL]:
            return False
        for d in range(starts[i], starts[i + 1]):
            if time - at[distances[d, 0]] < distances[d, 1]:
                return False
        previous = last[rows[i, Bound.PIPE]]
        if previous != _UNSET and time - at[previous] < _spacing(rows, previous, i):
            return False
        last[rows[i, Bound.PIPE]] = i
    return True


@compiled
def _spacing(rows: Int, first: int, second: int) -> int:
    """ptxas itself may have put two neighbours closer than the table says; that stays allowed."""
    if rows[first, Bound.FOLLOWER] == second:
        return rows[first, Bound.FOLLOWER_SPACING]
    return rows[first, Bound.SPACING]
