"""The moves of AssemblyGame-v1: for every instruction a few places worth going to, and two bits to flip."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from cuasmrl.compiled import compiled
from cuasmrl.sass import Order, Pipe
from cuasmrl.sass.control import LONGEST_STALL_WITHOUT_YIELD
from cuasmrl.schedule import Block, Board, Drag, Move, SetReuse, SetYield

Int: TypeAlias = npt.NDArray[np.int64]
Float: TypeAlias = npt.NDArray[np.float64]
Bool: TypeAlias = npt.NDArray[np.bool_]
NOWHERE = -1

SHARES = 8
"""Parts that a reach is cut into: a move by one is often too small to matter, the farthest too large."""
DISTANCES = (4, 16, 64)
"""Of drags, beyond the reach as well."""
GROUP_DISTANCES = (8, 32)
GROUP = 6
"""Instructions of one opcode that move together."""
VIEWS = (24, 192)
"""Places to either side in which the longest wait is looked for."""


class Kind(StrEnum):
    REACH = "reach"
    """Alone, by a share of the way that dependences allow."""
    DRAG = "drag"
    """By a distance. What it depends on comes along, and on the way down what depends on it."""
    WAIT = "wait"
    """Dragged to where warps wait longest, so far away at most: a cycle that is lost there may be of use."""
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
    """Negative upwards: places; of the reach, parts of it; of the longest wait, how far away it may be."""

    @property
    def name(self) -> str:
        return f"{self.kind} {self.by:+}" if self.by else str(self.kind)


def _directed(sign: int) -> tuple[Jump, ...]:
    return (
        *(Jump(Kind.REACH, sign * share) for share in range(1, SHARES + 1)),
        *(Jump(Kind.DRAG, sign * by) for by in DISTANCES),
        *(Jump(Kind.WAIT, sign * view) for view in VIEWS),
        *(Jump(Kind.GROUP, sign * by) for by in GROUP_DISTANCES),
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
    """First and last position that the instruction at every place of a block may take."""
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

    def of(self, block: Block, low: Int, high: Int, waits: Float) -> Int:
        """From every place of a block, a column per jump; NOWHERE if it is no move.

        `low` and `high` are the reaches of the places, `waits` the cycles that warps waited at them. Drags
        may go beyond the reach, but not past what is pinned. A flip leads to where it is.
        """
        order = np.array(self.board.order[block.start : block.end], np.int64)
        here = np.arange(block.start, block.end)
        pins = np.concatenate([[block.start - 1], here[self._fixed[order]], [block.end]])
        floor = pins[np.searchsorted(pins, here) - 1] + 1
        ceiling = pins[np.searchsorted(pins, here, side="right")] - 1
        has_alike = self._have_alike(order)
        found = np.full((len(order), len(JUMPS)), NOWHERE, np.int64)
        _places(-1, here, floor, low, waits, has_alike, found[:, :_DIRECTED])
        _places(1, here, ceiling, high, waits, has_alike, found[:, _DIRECTED : 2 * _DIRECTED])
        found[self._is_tied[order]] = NOWHERE
        found[:, 2 * _DIRECTED :] = np.where(self._can_flip(order), here[:, None], NOWHERE)
        return found

    def _have_alike(self, order: Int) -> Bool:
        """Which places have one of the same opcode behind them."""
        opcodes, places = self._opcodes[order], np.arange(len(order))
        last = np.zeros(len(self._opcodes), np.int64)
        last[opcodes] = places
        return np.asarray(last[opcodes] > places)

    def _can_flip(self, order: Int) -> Bool:
        """Whether the yield hint and the reuse flags of every place can be flipped, a column each."""
        board = self.board
        if board.is_opaque:
            return np.zeros((len(order), 2), bool)
        stall = np.array([board.stall[i] for i in order])
        yields = (stall > 0) & (stall <= LONGEST_STALL_WITHOUT_YIELD) & ~self._fixed[order]
        return np.stack([yields, self._has_reuse[order]], axis=1)


@compiled
def _places(sign: int, here: Int, limit: Int, reach: Int, waits: Float, has_alike: Bool, found: Int) -> None:
    """The columns of `Destinations.of` in one direction, in the order of `_directed`.

    A place that an earlier column leads to is left out; groups are moves of another kind.
    """
    for row in range(len(here)):
        start, column = here[row], 0
        most = sign * (limit[row] - start)
        within = sign * (reach[row] - start)
        for share in range(1, SHARES + 1):
            _go(sign, start, (share * within + SHARES - 1) // SHARES, most, found[row], column)
            column += 1
        for by in DISTANCES:
            _go(sign, start, by, most, found[row], column)
            column += 1
        for view in VIEWS:
            _go(sign, start, _longest_wait(sign, row, min(most, view), waits), most, found[row], column)
            column += 1
        for by in GROUP_DISTANCES:
            if has_alike[row] and by <= most:
                found[row, column] = start + sign * by
            column += 1


@compiled
def _go(sign: int, start: int, by: int, most: int, found: Int, column: int) -> None:
    """Note a place in its column, unless it is where it was, too far, or in a column before."""
    place = start + sign * by
    if 0 < by <= most and place not in found[:column]:
        found[column] = place


@compiled
def _longest_wait(sign: int, row: int, most: int, waits: Float) -> int:
    """How far it is to the place in front of the one at which warps wait longest, at most so far away."""
    longest, found = 0.0, 0
    for by in range(1, most + 1):
        waiting = row + sign * by + (1 if sign > 0 else 0)
        if not 0 <= waiting < len(waits):
            break
        if waits[waiting] > longest:
            longest, found = waits[waiting], by
    return found


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
    return [Drag(j, min(max(board.position[j] + jump.by, block.start), last)) for j in alike]
