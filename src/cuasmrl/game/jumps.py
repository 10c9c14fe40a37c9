"""The moves of AssemblyGame-v1: for every instruction a few positions to go to, and two bits to flip."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from cuasmrl.binary.sass import Order, Pipe
from cuasmrl.binary.sass.control import LONGEST_STALL_WITHOUT_YIELD
from cuasmrl.compiled import compiled, inlined
from cuasmrl.schedule import Block, Board, Drag, Move, SetReuse, SetYield
from cuasmrl.schedule.cells import STALL, Cell, Int32
from cuasmrl.schedule.reach import Neighbours, limits

Int: TypeAlias = npt.NDArray[np.int64]
Float: TypeAlias = npt.NDArray[np.float64]
Bool: TypeAlias = npt.NDArray[np.bool_]
NOWHERE = -1
_NOBODY = 1 << 40

PARTS = 2
"""Of a reach: a move by one is often too small to matter, the farthest too large."""
GAPS = 8
"""Parts of the cycles that warps wait within a reach."""
DRAGS = (2, 8, 32)
"""Least distances of drags, beyond the reach as well."""
GROUP_DRAGS = (4, 16)
SCALE = 4
"""Times the least distance is the limit of a drag."""
_DOUBLINGS = math.log2(SCALE)
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


class Destinations:
    """Where jumps lead on a board."""

    def __init__(self, board: Board) -> None:
        self.board = board
        self._is_tied = np.array([board.fixed[i] or i in board.glued for i in range(len(board.code))])
        self._flips = np.array([[not is_fixed, i.control.reuse != 0]
                                for i, is_fixed in zip(board.code, board.fixed, strict=True)])  # fmt: skip
        if board.is_opaque:
            self._flips[:] = False

    def find(
        self,
        block: Block,
        waits: Float,
        rng: np.random.Generator,
        low: Int,
        high: Int,
        found: Int,
        legal: Bool,
    ) -> None:
        """Fill in, from every position of a block, a column per jump; NOWHERE if it is not `legal`.

        `waits` are the cycles that warps waited at each position of the kernel; the reaches of the block's
        positions are noted in `low` and `high`. Drags may go beyond the reach, but not past what is pinned. A
        flip leads to where it is. Positions are drawn anew each time: fixed ones leave most of a plateau out
        of sight.
        """
        board, luck = self.board, rng.random((2, len(block), _DIRECTED))
        _destinations(
            board.cells, board.neighbours[block.number], board.opcodes, self._is_tied, self._flips, waits,
            luck, low, high, found, legal,
        )  # fmt: skip


@compiled
def _destinations(  # noqa: PLR0913, PLR0917 - compiled code takes arrays one by one
    cells: Int32, block: Neighbours, opcodes: Int, is_tied: Bool, flips: Bool, waits: Float, luck: Float,
    low: Int, high: Int, found: Int, legal: Bool,
) -> None:  # fmt: skip
    """Fill in the columns of `Destinations.find`, in the order of `JUMPS`."""
    n, start = len(found), block.start
    last_alike = np.zeros(opcodes.max() + 1, np.int64)
    passed = np.zeros(n + 1)
    noted = np.full(n + 1, _NOBODY, np.int64)
    for p in range(n):
        last_alike[opcodes[cells[Cell.ORDER, start + p]]] = p
        passed[p + 1] = passed[p] + waits[start + p]
    found[:] = NOWHERE
    for p in range(n):
        i = cells[Cell.ORDER, start + p]
        first, last = limits(cells, block, i - start)
        low[p], high[p] = start + first, start + last
        if not is_tied[i]:
            has_alike = last_alike[opcodes[i]] > p
            up, down = found[p, :_DIRECTED], found[p, _DIRECTED : 2 * _DIRECTED]
            _directed_jumps(
                -1, p, start, p - block.floor[p], p - first, passed, has_alike, luck[0, p], noted, up
            )
            _directed_jumps(
                1, p, start, block.ceiling[p] - p, last - p, passed, has_alike, luck[1, p], noted, down
            )
        stall = cells[Cell.BITS, i] & STALL
        if flips[i, 0] and 0 < stall <= LONGEST_STALL_WITHOUT_YIELD:
            found[p, 2 * _DIRECTED] = start + p
        if flips[i, 1]:
            found[p, 2 * _DIRECTED + 1] = start + p
        for column in range(found.shape[1]):
            legal[p, column] = found[p, column] != NOWHERE


@inlined
def _directed_jumps(
    sign: int, p: int, start: int, most: int, within: int, passed: Float, has_alike: bool, luck: Float,
    noted: Int, found: Int,
) -> None:  # fmt: skip
    """The columns of one position in one direction, in the order of `_directed`; `luck` is as large.

    `most` positions are there before something pinned, `within` of them allowed by dependences. A place that
    an earlier column leads to is left out; groups are moves of another kind.
    """
    here, column = start + p, 0
    for part in range(PARTS):
        by = 1 + int((part + luck[column]) / PARTS * within)
        if by <= within:
            _go(sign, here, by, noted, found, column)
        column += 1
    _gaps(sign, p, here, within, passed, luck, noted, found, column)
    column += GAPS
    for least in DRAGS:
        if least <= most:
            by = int(least * np.exp2(_DOUBLINGS * luck[column]))
            if by <= most:
                _go(sign, here, by, noted, found, column)
        column += 1
    for least in GROUP_DRAGS:
        if has_alike and least <= most:
            by = int(least * np.exp2(_DOUBLINGS * luck[column]))
            if by <= most:
                found[column] = here + sign * by
        column += 1


@inlined
def _go(sign: int, here: int, by: int, noted: Int, found: Int, column: int) -> None:
    """Note a position in its column, unless one before leads there; `noted` says who noted it last."""
    if noted[by] != sign * here:
        noted[by] = sign * here
        found[column] = here + sign * by


@inlined
def _gaps(
    sign: int, p: int, here: int, within: int, passed: Float, luck: Float, noted: Int, found: Int, column: int
) -> None:
    """Note a position from every part of the waiting within the reach: in front of whoever waits there.

    `passed` is what warps wait before each position of the block.
    """
    # Behind the last of a block nobody waits.
    positions = min(within, p) if sign < 0 else min(within, len(passed) - 3 - p)
    first = p if sign < 0 else p + 2
    if positions <= 0 or passed[first + sign * positions] == passed[first]:
        return
    total = passed[first + sign * positions] - passed[first]
    at, by = first + sign, 1
    for part in range(GAPS):
        limit = abs((part + luck[column + part]) / GAPS * total)
        while by < positions and abs(passed[at] - passed[first]) <= limit:
            at += sign
            by += 1
        _go(sign, here, by, noted, found, column + part)


def moves_of(board: Board, block: Block, i: int, jump: Jump, to: int) -> list[Move]:
    """The moves that a jump of an instruction stands for."""
    if jump.kind is Kind.YIELD:
        return [SetYield(i, not board.yields[i])]
    if jump.kind is Kind.REUSE:
        return [SetReuse(i, not board.keeps_reuse[i])]
    if jump.kind is not Kind.GROUP:
        return [Drag(i, to)]
    alike = board.alike(i, GROUP)
    # Whoever goes first must not run into the others of the group.
    alike = alike if jump.by < 0 else alike[::-1]
    last = block.end - 1
    by = to - board.position[i]
    return [Drag(j, min(max(board.position[j] + by, block.start), last)) for j in alike]
