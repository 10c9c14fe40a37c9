"""Taking an instruction far along a block together with whatever its dependences tie to it."""

import numpy as np
import numpy.typing as npt

from cuasmrl.compiled import compiled
from cuasmrl.schedule.cells import Cell, Int32
from cuasmrl.schedule.reach import LOOSE, Neighbours
from cuasmrl.schedule.retiming import Int

Bool = npt.NDArray[np.bool_]


@compiled
def dragged(cells: Int32, block: Neighbours, i: int, to: int, window: Int) -> bool:
    """Fill in the order of a block after an instruction went towards a position; False if it cannot.

    On its way up it takes along what it depends on, on its way down what depends on it; padding units come
    whole. All others keep their order, so if the order was legal, the new one is. Nothing passes a pinned
    instruction.
    """
    n = len(window)
    here = cells[Cell.POSITION, block.start + i] - block.start
    if to == here or not block.floor[here] <= to <= block.ceiling[here]:
        return False
    for p in range(n):
        window[p] = cells[Cell.ORDER, block.start + p] - block.start
    low, high = min(to, here), max(to, here)
    span = window[low : high + 1].copy()
    taken = np.zeros(n, np.bool_)
    taken[i] = True
    count = 1
    if to < here:
        for k in range(len(span) - 2, -1, -1):
            if _comes_along(span[k], taken, block.behind, block.behind_starts, block.glued):
                taken[span[k]] = True
                count += 1
        first, second = low, low + count
    else:
        for k in range(1, len(span)):
            if _comes_along(span[k], taken, block.before, block.before_starts, block.glued):
                taken[span[k]] = True
                count += 1
        first, second = high + 1 - count, low
    for j in span:
        if taken[j]:
            window[first] = j
            first += 1
        else:
            window[second] = j
            second += 1
    return not block.has_units or _keeps_units(window, block.glued)


@compiled
def _comes_along(i: int, taken: Bool, neighbours: Int, starts: Int, glued: Int) -> bool:
    """Is it tied to one that was taken, by a dependence or by padding? Units are met from either end."""
    for k in range(starts[i], starts[i + 1]):
        if taken[neighbours[k]]:
            return True
    if glued[i] == LOOSE:
        return False
    return bool(taken[glued[i]] or (i > 0 and taken[i - 1] and glued[i - 1] == i))


@compiled
def _keeps_units(window: Int, glued: Int) -> bool:
    """A unit of which only a part was met on the way would be torn."""
    n = len(window)
    for p in range(n):
        a = window[p]
        if glued[a] != LOOSE and glued[a] != a and (p + 1 == n or glued[a] != window[p + 1]):
            return False
    return True
