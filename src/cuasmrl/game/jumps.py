"""The moves of AssemblyGame-v1: for every instruction a few positions to go to, and two bits to flip."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from cuasmrl.binary.sass import Order, Pipe
from cuasmrl.binary.sass.control import LONGEST_STALL_WITHOUT_YIELD
from cuasmrl.compiled import compiled
from cuasmrl.schedule import Block, Board, Drag, Move, SetReuse, SetYield

Int: TypeAlias = npt.NDArray[np.int64]
Float: TypeAlias = npt.NDArray[np.float64]
Bool: TypeAlias = npt.NDArray[np.bool_]
NOWHERE = -1

PARTS = 2
"""Of a reach: a move by one is often too small to matter, the farthest too large."""
GAPS = 8
"""Parts of the cycles that warps wait within a reach."""
DRAGS = (2, 8, 32)
"""Least distances of drags, beyond the reach as well."""
GROUP_DRAGS = (4, 16)
SCALE = 4
"""Times the least distance is the limit of a drag."""
GROUP = 6
"""Instructions of one opcode that move together."""


class Kind(StrEnum):
    REACH = "reach"
    """Alone, to a position drawn from a part of the way that dependences allow."""
    GAP = "gap"
    """The same, but drawn by how long warps wait there: a cycle that is lost there may be of use."""
    DRAG = "drag"
    """By a distance of some scale. What it depends on comes along, and on the way down what depends on it."""
    GROUP = "group"
    """With the next ones of its opcode, all dragged by the same distance."""
    YIELD = "yield"
    """Flip the yield hint."""
    REUSE = "reuse"
    """Drop the operand-cache flags, or take them up again."""


@dataclass(frozen=True)
class Jump:
    """What can be done with an instruction."""

    kind: Kind
    by: int = 0
    """Negative upwards: which part of the reach or of the waiting, or the least distance."""

    @property
    def is_flip(self) -> bool:
        return self.kind in (Kind.YIELD, Kind.REUSE)

    @property
    def name(self) -> str:
        return f"{self.kind} {self.by:+}" if self.by else str(self.kind)


def _directed(sign: int) -> tuple[Jump, ...]:
    return (
        *(Jump(Kind.REACH, sign * part) for part in range(1, PARTS + 1)),
        *(Jump(Kind.GAP, sign * part) for part in range(1, GAPS + 1)),
        *(Jump(Kind.DRAG, sign * by) for by in DRAGS),
        *(Jump(Kind.GROUP, sign * by) for by in GROUP_DRAGS),
    )


_DIRECTED = len(_directed(1))
JUMPS = (*_directed(-1), *_directed(1), Jump(Kind.YIELD), Jump(Kind.REUSE))


def is_anchor(board: Board) -> Bool:
    """By instruction: those of the tensor or memory pipe, or synchronisation; others are placed by them."""
    return np.array([
        i.order in (Order.MEMORY, Order.SYNC)
        or (i.declaration is not None and i.declaration.pipe in (Pipe.TENSOR, Pipe.MEMORY))
        for i in board.code
    ])  # fmt: skip


def reaches(board: Board, block: Block) -> tuple[Int, Int]:
    """First and last position that the instruction at every position of a block may take."""
    order = np.array(board.order[block.start : block.end], np.int64)
    low, high = (limits[order - block.start] for limits in board.reaches(block))
    return low, high


class Destinations:
    """Where jumps lead on a board."""

    def __init__(self, board: Board) -> None:
        self.board = board
        opcodes = {opcode: n for n, opcode in enumerate({i.opcode: None for i in board.code})}
        self._opcodes = np.array([opcodes[i.opcode] for i in board.code])
        self._fixed = np.array(board.fixed, bool)
        self._is_tied = np.array([board.fixed[i] or i in board.glued for i in range(len(board.code))])
        self._has_reuse = np.array([i.control.reuse != 0 for i in board.code])

    def of(self, block: Block, low: Int, high: Int, waits: Float, rng: np.random.Generator) -> Int:
        """From every position of a block, a column per jump; NOWHERE if it is no move.

        `low` and `high` are the reaches of the positions, `waits` the cycles that warps waited at them. Drags
        may go beyond the reach, but not past what is pinned. A flip leads to where it is. Positions are drawn
        anew each time: fixed ones leave most of a plateau out of sight.
        """
        order = np.array(self.board.order[block.start : block.end], np.int64)
        here = np.arange(block.start, block.end)
        pins = np.concatenate([[block.start - 1], here[self._fixed[order]], [block.end]])
        floor = pins[np.searchsorted(pins, here) - 1] + 1
        ceiling = pins[np.searchsorted(pins, here, side="right")] - 1
        has_alike = self._have_alike(order)
        found = np.full((len(order), len(JUMPS)), NOWHERE, np.int64)
        up, down = rng.random((2, len(order), _DIRECTED))
        _positions(-1, here, floor, low, waits, has_alike, up, found[:, :_DIRECTED])
        _positions(1, here, ceiling, high, waits, has_alike, down, found[:, _DIRECTED : 2 * _DIRECTED])
        found[self._is_tied[order]] = NOWHERE
        found[:, 2 * _DIRECTED :] = np.where(self._can_flip(order), here[:, None], NOWHERE)
        return found

    def _have_alike(self, order: Int) -> Bool:
        """Which positions have one of the same opcode behind them."""
        opcodes, positions = self._opcodes[order], np.arange(len(order))
        last = np.zeros(len(self._opcodes), np.int64)
        last[opcodes] = positions
        return np.asarray(last[opcodes] > positions)

    def _can_flip(self, order: Int) -> Bool:
        """Whether the yield hint and the reuse flags of every position can be flipped, a column each."""
        board = self.board
        if board.is_opaque:
            return np.zeros((len(order), 2), bool)
        stall = np.array([board.stall[i] for i in order])
        yields = (stall > 0) & (stall <= LONGEST_STALL_WITHOUT_YIELD) & ~self._fixed[order]
        return np.stack([yields, self._has_reuse[order]], axis=1)


@compiled
def _positions(
    sign: int, here: Int, limit: Int, reach: Int, waits: Float, has_alike: Bool, luck: Float, found: Int
) -> None:
    """The columns of `Destinations.of` in one direction, in the order of `_directed`; `luck` is as large.

    A place that an earlier column leads to is left out; groups are moves of another kind.
    """
    for row in range(len(here)):
        start, column = here[row], 0
        most = sign * (limit[row] - start)
        within = sign * (reach[row] - start)
        for part in range(PARTS):
            by = 1 + int((part + luck[row, column]) / PARTS * within)
            _go(sign, start, by, within, found[row], column)
            column += 1
        _gaps(sign, row, start, within, waits, luck[row], found[row], column)
        column += GAPS
        for least in DRAGS:
            _go(sign, start, int(least * SCALE ** luck[row, column]), most, found[row], column)
            column += 1
        for least in GROUP_DRAGS:
            by = int(least * SCALE ** luck[row, column])
            if has_alike[row] and by <= most:
                found[row, column] = start + sign * by
            column += 1


@compiled
def _go(sign: int, start: int, by: int, most: int, found: Int, column: int) -> None:
    """Note a position in its column, unless it is too far, or in a column before."""
    position = start + sign * by
    if by <= most and position not in found[:column]:
        found[column] = position


@compiled
def _gaps(
    sign: int, row: int, start: int, within: int, waits: Float, luck: Float, found: Int, column: int
) -> None:
    """Note a position from every part of the waiting within the reach: in front of whoever waits there."""
    first = row - 1 if sign < 0 else row + 2
    # Behind the last of a block nobody waits.
    positions = min(within, first + 1 if sign < 0 else len(waits) - first)
    total = 0.0
    for by in range(positions):
        total += waits[first + sign * by]
    if total == 0:
        return
    passed, part = 0.0, 0
    for by in range(positions):
        passed += waits[first + sign * by]
        while part < GAPS and passed > (part + luck[column + part]) / GAPS * total:
            _go(sign, start, by + 1, within, found, column + part)
            part += 1


def moves_of(board: Board, block: Block, i: int, jump: Jump, to: int) -> list[Move]:
    """The moves that a jump of an instruction stands for."""
    if jump.kind is Kind.YIELD:
        return [SetYield(i, not board.yields[i])]
    if jump.kind is Kind.REUSE:
        return [SetReuse(i, not board.keeps_reuse[i])]
    if jump.kind is not Kind.GROUP:
        return [Drag(i, to)]
    opcode = board.code[i].opcode
    behind = board.order[board.position[i] : block.end]
    alike = [j for j in behind if board.code[j].opcode == opcode][:GROUP]
    # Whoever goes first must not run into the others of the group.
    alike = alike if jump.by < 0 else alike[::-1]
    last = block.end - 1
    by = to - board.position[i]
    return [Drag(j, min(max(board.position[j] + by, block.start), last)) for j in alike]
