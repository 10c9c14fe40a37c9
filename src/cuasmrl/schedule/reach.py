"""How far each instruction of a block may go as its dependences allow, for all of them at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from cuasmrl.compiled import compiled
from cuasmrl.schedule.blocks import Block
from cuasmrl.schedule.dependences import Graph

Int: TypeAlias = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Neighbours:
    """Those before and behind each instruction of a block, counted from its first; lists laid end to end."""

    before: Int
    before_starts: Int
    behind: Int
    behind_starts: Int
    fixed: npt.NDArray[np.bool_]

    @staticmethod
    def of(block: Block, graph: Graph, fixed: Iterable[bool]) -> Neighbours:
        before, before_starts = _flat(block, graph.predecessors)
        behind, behind_starts = _flat(block, graph.successors)
        return Neighbours(before, before_starts, behind, behind_starts, np.array(list(fixed), bool))

    def reaches(self, order: Int) -> tuple[Int, Int]:
        """First and last position of each instruction, positions counted from the block's first."""
        low, high = np.empty_like(order), np.empty_like(order)
        _reaches(
            order, self.before, self.before_starts, self.behind, self.behind_starts, self.fixed, low, high
        )
        return low, high


def _flat(block: Block, edges: Mapping[int, Mapping[int, object]]) -> tuple[Int, Int]:
    lists = [sorted(edges.get(i, ())) for i in range(block.start, block.end)]
    starts = np.concatenate([[0], np.cumsum([len(entries) for entries in lists])]).astype(np.int64)
    return np.array([j - block.start for entries in lists for j in entries], np.int64), starts


@compiled
def _reaches(
    order: Int, before: Int, before_starts: Int, behind: Int, behind_starts: Int,
    fixed: npt.NDArray[np.bool_], low: Int, high: Int,
) -> None:  # fmt: skip
    n = len(order)
    position = np.empty(n, np.int64)
    for p in range(n):
        position[order[p]] = p
    wall = 0
    for p in range(n):
        i = order[p]
        low[i] = p
        if fixed[i]:
            wall = p + 1
            continue
        first = wall
        for k in range(before_starts[i], before_starts[i + 1]):
            first = max(first, position[before[k]] + 1)
        low[i] = first
    wall = n - 1
    for p in range(n - 1, -1, -1):
        i = order[p]
        high[i] = p
        if fixed[i]:
            wall = p - 1
            continue
        last = wall
        for k in range(behind_starts[i], behind_starts[i + 1]):
            last = min(last, position[behind[k]] - 1)
        high[i] = last
