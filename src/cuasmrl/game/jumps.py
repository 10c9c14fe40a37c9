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

DISTANCES = (1, 2, 4, 8, 16, 32, 64, 128)
"""Of drags: a move by one is often too small to matter, the farthest too large."""
GROUP_DISTANCES = (2, 8, 32, 96)
GROUP = 6
"""Instructions of one opcode that move together."""
VIEWS = (24, 192)
"""Places to either side in which the longest wait is looked for."""


class Kind(StrEnum):
    DRAG = "drag"
    """By a distance. What it depends on comes along, and on the way down what depends on it."""
    REACH = "reach"
    """As far as dependences allow."""
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
    """Places, negative upwards; only the sign counts for the reach."""

    @property
    def name(self) -> str:
        return f"{self.kind} {self.by:+}" if self.by else str(self.kind)


def _directed(sign: int) -> tuple[Jump, ...]:
    return (
        *(Jump(Kind.DRAG, sign * by) for by in DISTANCES),
        Jump(Kind.REACH, sign),
        *(Jump(Kind.WAIT, sign * view) for view in VIEWS),
        *(Jump(Kind.GROUP, sign * by) for by in GROUP_DISTANCES),
    )


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


def destinations(board: Board, block: Block, low: Int, high: Int, waits: Float) -> Int:
    """Where each jump leads from every place of a block, a column per jump; NOWHERE if it is no move.

    `low` and `high` are the reaches of the places, `waits` the cycles that warps waited at them. Drags may go
    beyond the reach, but not past what is pinned. A flip leads to where it is.
    """
    order = board.order[block.start : block.end]
    here = np.arange(block.start, block.end)
    pins = np.array([block.start - 1, *(p for p in here if board.fixed[board.order[p]]), block.end])
    floor = pins[np.searchsorted(pins, here) - 1] + 1
    ceiling = pins[np.searchsorted(pins, here, side="right")] - 1
    has_alike = _have_alike(board, order)
    places = np.concatenate(
        [_places(-1, here, floor, low, waits, has_alike), _places(1, here, ceiling, high, waits, has_alike)],
        axis=1,
    )
    places[[board.fixed[i] or i in board.glued for i in order]] = NOWHERE
    flips = np.where(_can_flip(board, order), here[:, None], NOWHERE)
    return np.concatenate([places, flips], axis=1)


def _places(sign: int, here: Int, limit: Int, reach: Int, waits: Float, has_alike: Bool) -> Int:
    """The columns of `destinations` in one direction, in the order of `_directed`."""
    drags = here[:, None] + sign * np.array(DISTANCES)
    drags[sign * (limit[:, None] - drags) < 0] = NOWHERE
    drags[reach == here, 0] = NOWHERE
    farthest = np.where((drags == reach[:, None]).any(axis=1) | (reach == here), NOWHERE, reach)
    far = np.concatenate([drags, farthest[:, None]], axis=1)
    for view in VIEWS:
        wait = _longest_wait(sign, here, limit, waits, view)[:, None]
        far = np.concatenate([far, np.where((far == wait).any(axis=1, keepdims=True), NOWHERE, wait)], axis=1)
    groups = here[:, None] + sign * np.array(GROUP_DISTANCES)
    groups[~has_alike[:, None] | (sign * (limit[:, None] - groups) < 0)] = NOWHERE
    return np.concatenate([far, groups], axis=1)


@compiled
def _longest_wait(sign: int, here: Int, limit: Int, waits: Float, view: int) -> Int:
    """The place in front of the one at which warps wait longest, of those not too far away."""
    found = np.full(len(here), NOWHERE, np.int64)
    for row in range(len(here)):
        longest = 0.0
        for step in range(1, view + 1):
            place = here[row] + sign * step
            waiting = place + (1 if sign > 0 else 0) - here[0]
            if sign * (limit[row] - place) < 0 or not 0 <= waiting < len(here):
                break
            if waits[waiting] > longest:
                longest, found[row] = waits[waiting], place
    return found


def _have_alike(board: Board, order: list[int]) -> Bool:
    """Which places have one of the same opcode behind them."""
    opcodes = [board.code[i].opcode for i in order]
    last = {opcode: place for place, opcode in enumerate(opcodes)}
    return np.array([last[opcode] > place for place, opcode in enumerate(opcodes)])


def _can_flip(board: Board, order: list[int]) -> Bool:
    """Whether the yield hint and the reuse flags of every place can be flipped, a column each."""
    if board.is_opaque:
        return np.zeros((len(order), 2), bool)
    found = [(0 < board.stall[i] <= LONGEST_STALL_WITHOUT_YIELD and not board.fixed[i],
              board.code[i].control.reuse != 0) for i in order]  # fmt: skip
    return np.array(found)


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
