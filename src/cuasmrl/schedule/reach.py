"""Where the instructions of a block may go as its dependences allow, compiled: every move asks for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from cuasmrl.compiled import compiled, inlined
from cuasmrl.schedule.blocks import Block
from cuasmrl.schedule.cells import Cell, Int32
from cuasmrl.schedule.dependences import Graph
from cuasmrl.schedule.retiming import Int

ANYWHERE = 1 << 40
LOOSE = -1
"""No member of a padding unit."""


class Neighbours(NamedTuple):
    """What keeps the instructions of a block in order; counted from its first, lists laid end to end."""

    start: int
    before: Int
    """Those that each has to stay behind."""
    before_starts: Int
    behind: Int
    """Those that have to stay behind each."""
    behind_starts: Int
    floor: Int
    """Position → the first one that nothing pinned parts from it; its own if it is pinned itself."""
    ceiling: Int
    """The last one."""
    glued: Int
    """Instruction → the next of its padding unit, the last one → itself."""
    has_units: bool

    @staticmethod
    def of(block: Block, graph: Graph, fixed: Sequence[bool], glued: Mapping[int, int]) -> Neighbours:
        """Pinned instructions never move, so positions tell what they part."""
        before, before_starts = _flat(block, graph.predecessors)
        behind, behind_starts = _flat(block, graph.successors)
        n = len(block)
        here, pinned = np.arange(n), np.array(fixed[block.start : block.end], bool)
        walls = np.maximum.accumulate(np.where(pinned, here + 1, 0))
        floor = np.where(pinned, here, walls)
        walls = np.minimum.accumulate(np.where(pinned, here - 1, n - 1)[::-1])[::-1]
        ceiling = np.where(pinned, here, walls)
        units = np.full(n, LOOSE, np.int64)
        for i in range(block.start, block.end):
            if i in glued:
                units[i - block.start] = glued[i] - block.start
        has_units = bool((units != LOOSE).any())
        return Neighbours(
            block.start, before, before_starts, behind, behind_starts, floor, ceiling, units, has_units
        )


def _flat(block: Block, edges: Mapping[int, Mapping[int, object]]) -> tuple[Int, Int]:
    lists = [sorted(edges.get(i, ())) for i in range(block.start, block.end)]
    starts = np.concatenate([[0], np.cumsum([len(entries) for entries in lists])]).astype(np.int64)
    return np.array([j - block.start for entries in lists for j in entries], np.int64), starts


@inlined
def limits(cells: Int32, block: Neighbours, i: int) -> tuple[int, int]:
    """First and last position that an instruction may take, padding units not considered."""
    here = cells[Cell.POSITION, block.start + i] - block.start
    low, high = block.floor[here], block.ceiling[here]
    if low == high:
        return low, high
    for k in range(block.before_starts[i], block.before_starts[i + 1]):
        low = max(low, cells[Cell.POSITION, block.start + block.before[k]] - block.start + 1)
    for k in range(block.behind_starts[i], block.behind_starts[i + 1]):
        high = min(high, cells[Cell.POSITION, block.start + block.behind[k]] - block.start - 1)
    return low, high


@compiled
def find_reaches(cells: Int32, block: Neighbours, low: Int, high: Int) -> None:
    """The same for all instructions of a block, as positions of the kernel."""
    for i in range(len(low)):
        first, last = limits(cells, block, i)
        low[i], high[i] = block.start + first, block.start + last


@inlined
def splits_unit(cells: Int32, block: Neighbours, here: int, to: int) -> bool:
    """Would an instruction taken from one position to another stand inside a padding unit?"""
    if here == to or not block.has_units:
        return False
    upper = to - 1 if to < here else to
    if upper < 0 or upper + 1 >= len(block.floor):
        return False
    a = cells[Cell.ORDER, block.start + upper] - block.start
    b = cells[Cell.ORDER, block.start + upper + 1] - block.start
    return bool(block.glued[a] == b)


@compiled
def other_positions(cells: Int32, block: Neighbours, i: int, farthest: int, found: Int) -> int:
    """Note the other positions that dependences and padding leave an instruction; their number."""
    here = cells[Cell.POSITION, block.start + i] - block.start
    if block.glued[i] != LOOSE:
        return 0
    low, high = limits(cells, block, i)
    count = 0
    for to in range(max(low, here - farthest), min(high, here + farthest) + 1):
        if to != here and not splits_unit(cells, block, here, to):
            found[count] = block.start + to
            count += 1
    return count


@compiled
def find_fillers(cells: Int32, block: Neighbours, gap: int, found: Int) -> int:
    """Note the instructions that may go to a position, in front of who stands there; their number."""
    count = 0
    gap -= block.start
    for i in range(len(block.floor)):
        if block.glued[i] == LOOSE:
            here = cells[Cell.POSITION, block.start + i] - block.start
            low, high = limits(cells, block, i)
            if low <= gap < here or here < gap - 1 <= high:
                found[count] = block.start + i
                count += 1
    return count


@compiled
def shifted(cells: Int32, block: Neighbours, i: int, to: int, window: Int) -> bool:
    """Fill in the order of a block with an instruction at another position; False if it may not go there."""
    here = cells[Cell.POSITION, block.start + i] - block.start
    if block.glued[i] != LOOSE or splits_unit(cells, block, here, to):
        return False
    low, high = limits(cells, block, i)
    if not low <= to <= high:
        return False
    step = 1 if to > here else -1
    for p in range(len(window)):
        window[p] = cells[Cell.ORDER, block.start + p] - block.start
    for p in range(here, to, step):
        window[p] = window[p + step]
    window[to] = i
    return True
