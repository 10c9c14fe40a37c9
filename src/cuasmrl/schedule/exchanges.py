"""Which neighbours may change places with their control codes, kept up to date from slacks."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from cuasmrl.binary.sass import MAX_STALL
from cuasmrl.compiled import compiled
from cuasmrl.schedule.blocks import Block
from cuasmrl.schedule.cells import STALL, Cell, Int32
from cuasmrl.schedule.reach import LOOSE, Neighbours
from cuasmrl.schedule.retiming import Arrays, Bound, Int

Bytes: TypeAlias = npt.NDArray[np.uint8]
_NOBODY = -1


class Room(NamedTuple):
    """Of all instructions of a kernel, and the swaps it allows."""

    slack_in: Int
    """Cycles by which an instruction could come sooner as far as those before it are concerned."""
    slack_out: Int
    """Cycles by which it could come later as far as those behind it are concerned."""
    mask: Bytes
    """Positions whose instruction may change places with the next."""
    longest_spacing: int
    """Of all pipes."""


class Exchanges:
    """Slacks of a board's instructions, and the swaps they allow. Made when asked for, block by block."""

    def __init__(self, cells: Int32, longest_spacing: int) -> None:
        self.cells = cells
        n = cells.shape[1]
        self._room = Room(
            np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros(n, np.uint8), longest_spacing
        )
        self._rules: dict[int, tuple[Neighbours, Arrays]] = {}
        self._stale: set[int] = set()

    def index(self, block: Block, neighbours: Neighbours, bounds: Arrays) -> None:
        """Take over what holds in a block; in one that is never told of nothing is exchanged."""
        self._rules[block.number] = neighbours, bounds
        self._stale.add(block.number)

    @property
    def slack_in(self) -> list[int]:
        self._settle()
        found: list[int] = self._room.slack_in.tolist()
        return found

    @property
    def slack_out(self) -> list[int]:
        self._settle()
        found: list[int] = self._room.slack_out.tolist()
        return found

    @property
    def mask(self) -> Bytes:
        """Positions whose instruction may change places with the next."""
        self._settle()
        return self._room.mask

    def forget(self, block: Block) -> None:
        """A block has changed."""
        self._stale.add(block.number)

    def has_time(self, block: Block, p: int) -> bool:
        """Do only dependences forbid the exchange of p and p + 1?"""
        self._settle()
        neighbours, bounds = self._rules[block.number]
        return bool(_has_time(self.cells, neighbours, bounds, self._room, p - block.start))

    def after_swap(self, block: Block, p: int) -> None:
        """The instructions at p and p + 1 have changed places."""
        if block.number not in self._stale:
            _after_swap(self.cells, *self._rules[block.number], self._room, p - block.start)

    def _settle(self) -> None:
        for number in self._stale & self._rules.keys():
            _refresh(self.cells, *self._rules[number], self._room)
        self._stale.clear()


@compiled
def _refresh(cells: Int32, block: Neighbours, bounds: Arrays, room: Room) -> None:
    """Recompute slacks and the swap mask of a block."""
    n = len(block.floor)
    for i in range(n):
        _slack_in(cells, block, bounds, room, i)
        _slack_out(cells, block, bounds, room, i)
    for p in range(n):
        room.mask[block.start + p] = _can_swap(cells, block, bounds, room, p)


@compiled
def _slack_in(cells: Int32, block: Neighbours, bounds: Arrays, room: Room, i: int) -> None:
    now = cells[Cell.TIME, block.start + i]
    slack = now - bounds.rows[i, Bound.HEAD]
    for d in range(bounds.starts[i], bounds.starts[i + 1]):
        before = cells[Cell.TIME, block.start + bounds.distances[d, 0]]
        slack = min(slack, now - before - bounds.distances[d, 1])
    room.slack_in[block.start + i] = slack


@compiled
def _slack_out(cells: Int32, block: Neighbours, bounds: Arrays, room: Room, i: int) -> None:
    now = cells[Cell.TIME, block.start + i]
    slack = _length(cells, block) - now - bounds.rows[i, Bound.TAIL]
    for d in range(bounds.later_starts[i], bounds.later_starts[i + 1]):
        behind = cells[Cell.TIME, block.start + bounds.later[d, 0]]
        slack = min(slack, behind - now - bounds.later[d, 1])
    room.slack_out[block.start + i] = slack


@compiled
def _length(cells: Int32, block: Neighbours) -> int:
    last = cells[Cell.ORDER, block.start + len(block.floor) - 1]
    return int(cells[Cell.TIME, last] + (cells[Cell.BITS, last] & STALL))


@compiled
def _can_swap(cells: Int32, block: Neighbours, bounds: Arrays, room: Room, p: int) -> bool:
    n = len(block.floor)
    # Behind what is pinned, and in front of it, the ceiling is the position itself.
    if p + 1 >= n or block.ceiling[p] == p:
        return False
    a = cells[Cell.ORDER, block.start + p] - block.start
    b = cells[Cell.ORDER, block.start + p + 1] - block.start
    if block.glued[a] != LOOSE or block.glued[b] != LOOSE:
        return False
    for k in range(block.behind_starts[a], block.behind_starts[a + 1]):
        if block.behind[k] == b:
            return False
    return _has_time(cells, block, bounds, room, p)


@compiled
def _has_time(cells: Int32, block: Neighbours, bounds: Arrays, room: Room, p: int) -> bool:
    """Would every distance hold if p and p + 1 changed places with their control codes?"""
    start, rows = block.start, bounds.rows
    a, b = cells[Cell.ORDER, start + p] - start, cells[Cell.ORDER, start + p + 1] - start
    stall_a, stall_b = cells[Cell.BITS, start + a] & STALL, cells[Cell.BITS, start + b] & STALL
    if room.slack_in[start + b] < stall_a or room.slack_out[start + a] < stall_b:
        return False
    # Slacks are about one of the two moving, but both do: b ends up ahead of a by its own stall.
    for d in range(bounds.starts[b], bounds.starts[b + 1]):
        if bounds.distances[d, 0] == a and -stall_b < bounds.distances[d, 1]:
            return False
    if rows[a, Bound.PIPE] == rows[b, Bound.PIPE] and stall_b < rows[b, Bound.LEAST_SPACING]:
        return False
    now = cells[Cell.TIME, start + a]
    before = _nearest(cells, block, bounds, room, p - 1, -1, rows[b, Bound.PIPE], now)
    if before != _NOBODY and now - cells[Cell.TIME, start + before] < rows[before, Bound.LEAST_SPACING]:
        return False
    later = now + stall_b
    after = _nearest(cells, block, bounds, room, p + 2, 1, rows[a, Bound.PIPE], later)
    return bool(after == _NOBODY or cells[Cell.TIME, start + after] - later >= rows[a, Bound.LEAST_SPACING])


@compiled
def _nearest(
    cells: Int32, block: Neighbours, bounds: Arrays, room: Room, p: int, step: int, pipe: int, time: int
) -> int:
    """The nearest instruction of a pipe in the block, looking no farther than a spacing can matter."""
    while 0 <= p < len(block.floor):
        i = cells[Cell.ORDER, block.start + p] - block.start
        if abs(cells[Cell.TIME, block.start + i] - time) > room.longest_spacing:
            return _NOBODY
        if bounds.rows[i, Bound.PIPE] == pipe:
            return int(i)
        p += step
    return _NOBODY


@compiled
def _after_swap(cells: Int32, block: Neighbours, bounds: Arrays, room: Room, p: int) -> None:
    """Only slacks of the two and of those at a distance from them change, and swaps near any of these."""
    for q in (p, p + 1):
        i = cells[Cell.ORDER, block.start + q] - block.start
        _slack_in(cells, block, bounds, room, i)
        _slack_out(cells, block, bounds, room, i)
        for d in range(bounds.later_starts[i], bounds.later_starts[i + 1]):
            _slack_in(cells, block, bounds, room, bounds.later[d, 0])
        for d in range(bounds.starts[i], bounds.starts[i + 1]):
            _slack_out(cells, block, bounds, room, bounds.distances[d, 0])
    for q in (p, p + 1):
        i = cells[Cell.ORDER, block.start + q] - block.start
        _judge_around(cells, block, bounds, room, i)
        for d in range(bounds.later_starts[i], bounds.later_starts[i + 1]):
            _judge_around(cells, block, bounds, room, bounds.later[d, 0])
        for d in range(bounds.starts[i], bounds.starts[i + 1]):
            _judge_around(cells, block, bounds, room, bounds.distances[d, 0])
    # Positions whose pipe spacing the pair can influence; a swap of their own shifts them by up to a stall.
    reach = room.longest_spacing + 2 * MAX_STALL
    now = cells[Cell.TIME, cells[Cell.ORDER, block.start + p]]
    for step in (-1, 1):
        q = p
        while 0 <= q < len(block.floor):
            if abs(cells[Cell.TIME, cells[Cell.ORDER, block.start + q]] - now) > reach:
                break
            room.mask[block.start + q] = _can_swap(cells, block, bounds, room, q)
            q += step


@compiled
def _judge_around(cells: Int32, block: Neighbours, bounds: Arrays, room: Room, i: int) -> None:
    """An instruction with each of its neighbours."""
    p = cells[Cell.POSITION, block.start + i] - block.start
    room.mask[block.start + p] = _can_swap(cells, block, bounds, room, p)
    if p > 0:
        room.mask[block.start + p - 1] = _can_swap(cells, block, bounds, room, p - 1)
