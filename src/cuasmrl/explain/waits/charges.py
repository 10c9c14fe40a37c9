"""To which instruction a wait of the model is charged when people look at it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from cuasmrl.gpu.timing import Reason
from cuasmrl.schedule import Block

Rows = TypeVar("Rows", npt.NDArray[np.int64], npt.NDArray[np.float64])

BY_PREDECESSOR = (Reason.STALL, Reason.BARRIER, Reason.COPY, Reason.TENSOR_ENGINE)
"""Reasons to wait that the instruction in front has brought about: its stall count, or what it is."""


def charged(row_reasons: Rows, blocks: Iterable[Block]) -> Rows:
    """Cycles by position and reason, each with the instruction that brings the wait about.

    The model counts at the instruction that waits. A stall count belongs to the instruction that has it, a
    barrier to BAR and a group of copies to DEPBAR, else every exchange behind a barrier would show as a gain
    and a loss. Into the first of a block several ways lead, so what it waits stays with it. No cycle is lost.
    """
    rows = row_reasons.copy()
    inside = np.ones(len(rows), bool)
    inside[[block.start for block in blocks]] = False
    behind = np.flatnonzero(inside)
    for reason in BY_PREDECESSOR:
        held_up = rows[behind, reason]
        rows[behind, reason] = 0
        rows[behind - 1, reason] += held_up
    return rows
