"""The moves of AssemblyGame-v1: for every instruction a few places worth going to, and two bits to flip."""

from __future__ import annotations

from enum import IntEnum
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from cuasmrl.sass import Order, Pipe
from cuasmrl.sass.control import LONGEST_STALL_WITHOUT_YIELD
from cuasmrl.schedule import Block, Board, Move, SetReuse, SetYield, Shift

Int: TypeAlias = npt.NDArray[np.int64]
Bool: TypeAlias = npt.NDArray[np.bool_]
NOWHERE = -1


class Jump(IntEnum):
    UP = 0
    DOWN = 1
    UP_PAST = 2
    """Above the next instruction of the tensor or memory pipe, or synchronisation."""
    DOWN_PAST = 3
    TOP = 4
    """As far up as dependences allow."""
    BOTTOM = 5
    YIELD = 6
    """Flip the yield hint."""
    REUSE = 7
    """Drop the operand-cache flags, or take them up again."""


SHIFTS = 6


def is_anchor(board: Board) -> Bool:
    """By instruction: those that others are worth moving past."""
    return np.array([
        i.order in (Order.MEMORY, Order.SYNC)
        or (i.declaration is not None and i.declaration.pipe in (Pipe.TENSOR, Pipe.MEMORY))
        for i in board.code
    ])  # fmt: skip


def destinations(board: Board, block: Block, anchors: Bool) -> Int:
    """Where each shift leads from every place of a block, a column per jump; NOWHERE if it is no move.

    A jump that leads to the same place as a shorter one is none.
    """
    order = np.array(board.order[block.start : block.end], np.int64)
    low, high = (limits[order - block.start] for limits in board.reaches(block))
    here = np.arange(block.start, block.end)
    anchored = np.where(anchors[order], here, NOWHERE)
    above = np.concatenate([[NOWHERE], np.maximum.accumulate(anchored)[:-1]])
    far = block.end
    anchored = np.where(anchors[order], here, far)
    below = np.concatenate([np.minimum.accumulate(anchored[::-1])[::-1][1:], [far]])
    found = np.full((len(block), SHIFTS), NOWHERE)
    found[:, Jump.UP] = np.where(low < here, here - 1, NOWHERE)
    found[:, Jump.DOWN] = np.where(high > here, here + 1, NOWHERE)
    past_above = (above >= low) & (above < here - 1)
    past_below = (below <= high) & (below > here + 1)
    found[:, Jump.UP_PAST] = np.where(past_above, above, NOWHERE)
    found[:, Jump.DOWN_PAST] = np.where(past_below, below, NOWHERE)
    found[:, Jump.TOP] = np.where((low < here - 1) & ~(past_above & (above == low)), low, NOWHERE)
    found[:, Jump.BOTTOM] = np.where((high > here + 1) & ~(past_below & (below == high)), high, NOWHERE)
    glued = [k for k, i in enumerate(order.tolist()) if i in board.glued]
    found[glued] = NOWHERE
    return found


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
    return Shift(i, to)
