"""The present schedule as a policy sees it: made block by block, when somebody asks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from cuasmrl.agents.policy.observation.facts import Facts, Float, Int
from cuasmrl.agents.policy.observation.pairs import pairs_of
from cuasmrl.agents.policy.observation.rows import GROUP_OF, rows_of
from cuasmrl.agents.policy.observation.timeline import SORT_OF, Double, Timeline, timeline_of
from cuasmrl.gpu.profile import Profile
from cuasmrl.schedule import Block, Board
from cuasmrl.schedule.cells import Int32
from cuasmrl.schedule.reach import Neighbours
from cuasmrl.schedule.retiming import Arrays


class Stand(NamedTuple):
    """One block at one moment; what the board does later does not change it."""

    block: Block
    cells: Int32
    facts: Facts
    neighbours: Neighbours
    bounds: Arrays
    timeline: Timeline
    rows: Float
    executions: float
    total: float

    def pairs(self, instructions: Int, targets: Int) -> Float:
        """A row for each move of an instruction of the block to a position of it, as the kernel counts."""
        start = self.block.start
        return pairs_of(
            self.cells, self.facts, self.neighbours, self.bounds, self.timeline, self.executions, self.total,
            np.asarray(instructions, np.int64) - start, np.asarray(targets, np.int64) - start,
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Memory:
    """What is known of the blocks of a board, whatever stands on it."""

    facts: dict[int, Facts]

    def of(self, board: Board, block: Block) -> Facts:
        if block.number not in self.facts:
            self.facts[block.number] = Facts.of(board, block)
        return self.facts[block.number]


def stand_of(board: Board, profile: Profile, block: Block, facts: Facts) -> Stand:
    """A block as it is on the board now."""
    here = slice(block.start, block.end)
    waits: Double = np.ascontiguousarray(profile.waits[here])
    executions: Double = np.ascontiguousarray(profile.executions[here])
    total = max(1.0, float(profile.spent.sum()))
    cells = board.cells.copy()
    neighbours, bounds = board.neighbours[block.number], board.bounds.arrays[block.number]
    timeline = timeline_of(cells, facts, bounds, waits, executions, SORT_OF)
    rows = rows_of(
        cells, facts, neighbours, bounds, timeline, waits, executions, total, GROUP_OF
    )  # fmt: skip
    return Stand(
        block, cells, facts, neighbours, bounds, timeline, rows, float(executions.max(initial=0.0)), total
    )
