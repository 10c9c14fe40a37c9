"""Where the time of a schedule goes, as far as that is known without asking a device."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from cuasmrl.gpu.timing import Model, Reason
from cuasmrl.schedule import Board, Schedule, loop_depths

Float: TypeAlias = npt.NDArray[np.float64]
_TRIPS = 10.0
"""Guessed for a loop of which nothing is known."""
_DEEPEST = 3
"""Loops within each other that are told apart; jumps that only look like more are not counted."""


@dataclass(frozen=True, eq=False)
class Profile:
    """By position; all waits are zero where nothing is known of them."""

    executions: Float
    """How often a position was executed, by all warps together."""
    waits: Float
    """Cycles that warps waited at a position, a column per `timing.Reason`."""

    @property
    def spent(self) -> Float:
        """Cycles at each position."""
        total: Float = self.executions + self.waits.sum(axis=1)
        return total


def replayed(model: Model, schedule: Schedule, seed: int) -> Profile:
    """Of the first wave of blocks."""
    result = model.simulate(schedule, seed, model.resident)
    waits = result.row_reasons.astype(np.float64)
    executions = waits[:, Reason.ISSUED].copy()
    waits[:, Reason.ISSUED] = 0
    return Profile(executions, waits)


def guessed(board: Board) -> Profile:
    """By the depth of loops, for a kernel that cannot be replayed."""
    executions = np.ones(len(board.code))
    for block, depth in zip(board.blocks, loop_depths(board.blocks), strict=True):
        executions[block.start : block.end] = _TRIPS ** min(_DEEPEST, depth)
    return Profile(executions, np.zeros((len(board.code), len(Reason))))
