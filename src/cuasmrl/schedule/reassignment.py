"""Orders of a block that the compiler's scoreboards do not allow: there they are reassigned."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

import numpy as np

from cuasmrl.compiled import compiled
from cuasmrl.schedule.blocks import Block
from cuasmrl.schedule.bounds import Bounds
from cuasmrl.schedule.dependences import Graph
from cuasmrl.schedule.operations import traffic_of
from cuasmrl.schedule.retiming import Int
from cuasmrl.schedule.slots import Slots


class Scoreboards(StrEnum):
    """What a board does with the scoreboards that the compiler has assigned."""

    KEPT = "kept"
    """They travel with their instructions, which limits how far these can go."""
    REASSIGNED = "reassigned"
    """They are reassigned where an order needs it; in such blocks only moves that retime are left."""


class Arranged(NamedTuple):
    """An order with what goes with it."""

    times: Int
    """Issue times by position, then the block's end."""
    scoreboards: Int | None = None
    """Rows for the block's instructions: write barriers, read barriers (-1 for none), waits; None if they
    stay as they are."""


class Reassignment:
    """Of one block: the compiler's scoreboards where they protect everything in an order, else others.

    Both depend on the order only, so it does not matter by which moves it was reached.
    """

    def __init__(self, block: Block, kept: Graph, loose: Graph, slots: Slots, bounds: Bounds) -> None:
        self.block = block
        self.graph = loose
        """Dependences that hold whatever the scoreboards are."""
        self._slots = slots
        self._kept_bounds = bounds.index(block, kept)
        self._loose_bounds = bounds.index(block, loose)
        pairs = [(i, j) for i in range(block.start, block.end) for j in kept.successors.get(i, ())]
        self._pairs = np.array(pairs, np.int64).reshape(-1, 2) - block.start
        controls = [i.control for i in bounds.originals.code[block.start : block.end]]
        self._compiled = np.array([
            [-1 if control.write_barrier is None else control.write_barrier for control in controls],
            [-1 if control.read_barrier is None else control.read_barrier for control in controls],
            [control.wait_mask for control in controls],
        ], np.int64)  # fmt: skip

    @staticmethod
    def of(block: Block, kept: Graph, bounds: Bounds) -> Reassignment | None:
        """None if the block has to keep its scoreboards; `kept` are its dependences as long as it does."""
        originals = bounds.originals
        traffic = traffic_of(block, originals)
        if traffic is None:
            return None
        slots = Slots(block, traffic, originals)
        positions = range(block.start, block.end)
        times = [*(originals.times[i] for i in positions), bounds.length[block.number]]
        if slots.assign(positions, times) is None:
            return None
        return Reassignment(block, kept, traffic.graph, slots, bounds)

    def arrange(self, order: Int) -> Arranged | None:
        """None if stall counts cannot express it, or six scoreboards do not suffice."""
        if _holds(order, self._pairs):
            times = self._kept_bounds.earliest(order)
            if times is not None:
                return Arranged(times, self._compiled)
        times = self._loose_bounds.earliest(order)
        found = None if times is None else self._slots.assigned(order, times)
        return None if times is None or found is None else Arranged(times, found)


@compiled
def _holds(order: Int, pairs: Int) -> bool:
    """Is the first of every pair before the second?"""
    position = np.empty(len(order), np.int64)
    for p in range(len(order)):
        position[order[p]] = p
    for k in range(len(pairs)):  # noqa: SIM110 - compiled code has no generators
        if position[pairs[k, 0]] > position[pairs[k, 1]]:
            return False
    return True
