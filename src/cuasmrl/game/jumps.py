"""The moves of AssemblyGame-v1: for every instruction a few places worth going to, and two bits to flip."""

from __future__ import annotations

from enum import IntEnum
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from cuasmrl.sass import Order, Pipe
from cuasmrl.sass.control import LONGEST_STALL_WITHOUT_YIELD
from cuasmrl.schedule import Block, Board, Drag, Move, SetReuse, SetYield

Int: TypeAlias = npt.NDArray[np.int64]
Bool: TypeAlias = npt.NDArray[np.bool_]
NOWHERE = -1


PAST = (1, 2, 4, 8, 16)
"""Jumps past this many anchors: a move by one is often too small to matter, the farthest too large."""


class Jump(IntEnum):
    UP = 0
    UP_PAST_1 = 1
    """Above the next anchor: an instruction of the tensor or memory pipe, or synchronisation.

    What it depends on comes along, and on the way down what depends on it.
    """
    UP_PAST_2 = 2
    UP_PAST_4 = 3
    UP_PAST_8 = 4
    UP_PAST_16 = 5
    TOP = 6
    """As far up as dependences allow."""
    DOWN = 7
    DOWN_PAST_1 = 8
    DOWN_PAST_2 = 9
    DOWN_PAST_4 = 10
    DOWN_PAST_8 = 11
    DOWN_PAST_16 = 12
    BOTTOM = 13
    YIELD = 14
    """Flip the yield hint."""
    REUSE = 15
    """Drop the operand-cache flags, or take them up again."""


SHIFTS = 14


def is_anchor(board: Board) -> Bool:
    """By instruction: those that others are worth moving past."""
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


def destinations(board: Board, block: Block, anchors: Bool, low: Int, high: Int) -> Int:
    """Where each shift leads from every place of a block, a column per jump; NOWHERE if it is no move.

    A jump that leads to the same place as a shorter one is none. `low` and `high` are the reaches: jumps past
    anchors may go beyond, but not past what is pinned.
    """
    order = np.array(board.order[block.start : block.end], np.int64)
    here = np.arange(block.start, block.end)
    places = here[anchors[order]]
    above = np.searchsorted(places, here) - 1
    below = np.searchsorted(places, here, side="right")
    up = [_at(places, above - (count - 1)) for count in PAST]
    down = [_at(places, below + (count - 1)) for count in PAST]
    pins = np.array([block.start - 1, *(p for p in here if board.fixed[board.order[p]]), block.end])
    floor = pins[np.searchsorted(pins, here) - 1] + 1
    ceiling = pins[np.searchsorted(pins, here, side="right")] - 1
    found = np.stack([here - 1, *up, low, here + 1, *down, high], axis=1)
    half = SHIFTS // 2
    found[:, :half][~_are_new(-found[:, :half], -here, -floor)] = NOWHERE
    found[:, half:][~_are_new(found[:, half:], here, ceiling)] = NOWHERE
    found[low == here, Jump.UP] = NOWHERE
    found[high == here, Jump.DOWN] = NOWHERE
    found[[board.fixed[i] or i in board.glued for i in order.tolist()]] = NOWHERE
    return found


def _at(places: Int, index: Int) -> Int:
    """Places by index; NOWHERE outside."""
    if not len(places):
        return np.full(len(index), NOWHERE)
    is_inside = (index >= 0) & (index < len(places))
    return np.where(is_inside, places[index.clip(0, len(places) - 1)], NOWHERE)


def _are_new(found: Int, here: Int, limit: Int) -> Bool:
    """Which places are within the limit and in no column before; counted forwards.

    All columns but the last, which is the end of the reach, go farther from one to the next.
    """
    is_inside = (found > here[:, None]) & (found <= limit[:, None])
    farthest = np.maximum.accumulate(np.where(is_inside, found, here[:, None]), axis=1)
    is_inside[:, 1:-1] &= found[:, 1:-1] > farthest[:, :-2]
    is_inside[:, -1] &= ~(is_inside[:, :-1] & (found[:, :-1] == found[:, -1:])).any(axis=1)
    return is_inside


def flips(board: Board, block: Block) -> Bool:
    """Whether the yield hint and the reuse flags of every place of a block can be flipped, a column each."""
    window = board.order[block.start : block.end]
    found = np.zeros((len(block), 2), bool)
    if board.is_opaque:
        return found
    for k, i in enumerate(window):
        found[k, 0] = 0 < board.stall[i] <= LONGEST_STALL_WITHOUT_YIELD and not board.fixed[i]
        found[k, 1] = board.code[i].control.reuse != 0
    return found


def move_of(board: Board, i: int, jump: Jump, to: int) -> Move:
    """The move that a jump stands for."""
    if jump is Jump.YIELD:
        return SetYield(i, not board.yields[i])
    if jump is Jump.REUSE:
        return SetReuse(i, not board.keeps_reuse[i])
    return Drag(i, to)
