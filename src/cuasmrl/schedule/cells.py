"""The state of a board in one array, for compiled code, and lists of it for those who read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from enum import IntEnum
from typing import Generic, TypeAlias, TypeVar, overload

import numpy as np
import numpy.typing as npt

from cuasmrl.binary.sass import Instruction
from cuasmrl.binary.sass.control import LONGEST_STALL_WITHOUT_YIELD, NO_BARRIER
from cuasmrl.compiled import compiled
from cuasmrl.schedule.retiming import Int

T = TypeVar("T")
Int32: TypeAlias = npt.NDArray[np.int32]

STALL = 15
HOLDS = 1 << 4
"""Set where the instruction does not yield."""
WAITS = 0b111111 << 11
BOARDS = 0b111_111 << 5 | WAITS
"""Write barrier, read barrier and waits."""
REUSE = 0b1111 << 17


class Cell(IntEnum):
    """Rows of the state of a board."""

    ORDER = 0
    """Position → instruction."""
    POSITION = 1
    """Instruction → position."""
    TIME = 2
    """Instruction → cycles from the start of its block to its issue."""
    BITS = 3
    """Instruction → control bits as they stand in the word."""
    KEEPS_REUSE = 4
    """Instruction → are its reuse flags set where they are valid?"""
    WIDTH = 5


class View(Sequence[T], Generic[T]):
    """A row of the state as a list that follows it."""

    def __init__(self, row: Int32, read: Callable[[int], T]) -> None:
        self._row = row
        self._read = read

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> list[T]: ...
    def __getitem__(self, index: int | slice) -> T | list[T]:
        if isinstance(index, slice):
            return [self._read(value) for value in self._row[index].tolist()]
        return self._read(self._row.item(index))

    def __iter__(self) -> Iterator[T]:
        return map(self._read, self._row.tolist())

    def __len__(self) -> int:
        return len(self._row)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, (View, list)) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]


def original(code: Sequence[Instruction], times: Sequence[int]) -> Int32:
    """The state of the compiler's schedule."""
    here = range(len(code))
    bits = [i.control.bits for i in code]
    return np.array([here, here, times, bits, [1] * len(code)], np.int32)


@compiled
def renew_reuse(cells: Int32, reuse: Int32, first: int, end: int) -> None:
    """Set or drop reuse flags at some positions: they are valid before the follower they were meant for."""
    n = cells.shape[1]
    for p in range(max(0, first), end):
        i = cells[Cell.ORDER, p]
        if reuse[i]:
            bits = cells[Cell.BITS, i] & ~REUSE
            follows = p + 1 < n and cells[Cell.ORDER, p + 1] == i + 1
            if follows and cells[Cell.KEEPS_REUSE, i] and bits & HOLDS:
                bits |= reuse[i] << 17
            cells[Cell.BITS, i] = bits


@compiled
def forgive(cells: Int32) -> None:
    """Dropped flags that are not valid anyway count as kept: the schedule does not tell."""
    for p in range(cells.shape[1] - 1):
        i = cells[Cell.ORDER, p]
        if not cells[Cell.KEEPS_REUSE, i]:
            is_valid = cells[Cell.BITS, i] & HOLDS and cells[Cell.ORDER, p + 1] == i + 1
            cells[Cell.KEEPS_REUSE, i] = not is_valid


@compiled
def exchange(cells: Int32, reuse: Int32, p: int) -> None:
    """The instructions at p and p + 1 change places; their control codes travel with them."""
    a, b = cells[Cell.ORDER, p], cells[Cell.ORDER, p + 1]
    start = cells[Cell.TIME, a]
    cells[Cell.ORDER, p], cells[Cell.ORDER, p + 1] = b, a
    cells[Cell.POSITION, a], cells[Cell.POSITION, b] = p + 1, p
    cells[Cell.TIME, b] = start
    cells[Cell.TIME, a] = start + (cells[Cell.BITS, b] & STALL)
    renew_reuse(cells, reuse, p - 1, p + 2)


@compiled
def settle(cells: Int32, reuse: Int32, start: int, window: Int, times: Int) -> None:
    """Take over the order of a block, and its issue times (the last is the block's end) as stall counts."""
    for k in range(len(window)):
        i, stall = start + window[k], times[k + 1] - times[k]
        cells[Cell.ORDER, start + k] = i
        cells[Cell.POSITION, i] = start + k
        cells[Cell.TIME, i] = times[k]
        bits = cells[Cell.BITS, i] & ~STALL | stall
        if not 0 < stall <= LONGEST_STALL_WITHOUT_YIELD:
            bits &= ~HOLDS
        cells[Cell.BITS, i] = bits
    # The instruction before the block may have lost its follower, or found it again.
    renew_reuse(cells, reuse, start - 1, start + len(window))


@compiled
def announce(cells: Int32, start: int, scoreboards: Int) -> None:
    """Give the instructions of a block other scoreboards: write and read barriers (-1 for none), waits."""
    for k in range(scoreboards.shape[1]):
        write, read, waits = scoreboards[0, k], scoreboards[1, k], scoreboards[2, k]
        bits = cells[Cell.BITS, start + k] & ~BOARDS
        bits |= (NO_BARRIER if write < 0 else write) << 5 | (NO_BARRIER if read < 0 else read) << 8
        cells[Cell.BITS, start + k] = bits | waits << 11


@compiled
def take_over(cells: Int32, reuse: Int32, starts: Int, ends: Int, indices: Int32, bits: Int32) -> None:
    """Give blocks the order and the control bits that a schedule has there."""
    for start, end in zip(starts, ends):  # noqa: B905 - compiled code knows no `strict`
        time = 0
        for p in range(start, end):
            i = indices[p]
            cells[Cell.ORDER, p] = i
            cells[Cell.POSITION, i] = p
            cells[Cell.TIME, i] = time
            cells[Cell.BITS, i] = bits[i]
            cells[Cell.KEEPS_REUSE, i] = 1
            time += bits[i] & STALL
    for start, end in zip(starts, ends):  # noqa: B905
        renew_reuse(cells, reuse, start, end)
        for i in range(start, end):
            # Without a flag where it could have one, it was dropped.
            if reuse[i]:
                cells[Cell.KEEPS_REUSE, i] = cells[Cell.BITS, i] & REUSE == bits[i] & REUSE
            cells[Cell.BITS, i] = bits[i]
        renew_reuse(cells, reuse, start - 1, start)


@compiled
def last_raisers(cells: Int32, start: int, end: int, before: int, board: int, found: Int) -> int:
    """Note the last two that raise a scoreboard before a position, else the last two of the block.

    In the order of their positions; how many they are.
    """
    count = 0
    for stop in (before, end):
        for p in range(stop - 1, start - 1, -1):
            bits = cells[Cell.BITS, cells[Cell.ORDER, p]]
            if board in (bits >> 5 & 7, bits >> 8 & 7):
                found[1 - count] = cells[Cell.ORDER, p]
                count += 1
                if count == len(found):
                    return count
        if count:
            break
    if count == 1:
        found[0] = found[1]
    return count
