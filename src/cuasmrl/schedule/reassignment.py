"""Orders of a block that the compiler's scoreboards do not allow: there they are reassigned."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

import numpy as np

from cuasmrl.schedule.blocks import Block
from cuasmrl.schedule.bounds import Bounds
from cuasmrl.schedule.dependences import Graph
from cuasmrl.schedule.operations import traffic_of
from cuasmrl.schedule.slots import Slots


class Scoreboards(StrEnum):
    """What a board does with the scoreboards that the compiler has assigned."""

    KEPT = "kept"
    """They travel with their instructions, which limits how far these can go."""
    REASSIGNED = "reassigned"
    """They are reassigned where an order needs it; in such blocks only moves that retime are left."""


class Assignment(NamedTuple):
    """The scoreboards of a block; lists by instruction, not by position."""

    write_barriers: list[int | None]
    read_barriers: list[int | None]
    waits: list[int]


class Arranged(NamedTuple):
    """An order with what goes with it."""

    times: list[int]
    """Issue times by position, then the block's end."""
    scoreboards: Assignment | None = None
    """None if they stay as they are."""


class Reassignment:
    """Of one block: the compiler's scoreboards where they protect everything in an order, else others.

    Both depend on the order only, so it does not matter by which moves it was reached.
    """

    def __init__(self, block: Block, kept: Graph, loose: Graph, slots: Slots, bounds: Bounds) -> None:
        self.block = block
        self.graph = loose
        """Dependences that hold whatever the scoreboards are."""
        self._slots = slots
        self._bounds = bounds
        self._kept_bounds = bounds.index(block, kept)
        self._loose_bounds = bounds.index(block, loose)
        pairs = [(i, j) for i in range(block.start, block.end) for j in kept.successors.get(i, ())]
        self._pairs = np.array(pairs, np.int64).reshape(-1, 2) - block.start
        controls = [i.control for i in bounds.originals.code[block.start : block.end]]
        self._compiled = Assignment(
            [control.write_barrier for control in controls],
            [control.read_barrier for control in controls],
            [control.wait_mask for control in controls],
        )

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

    def arrange(self, window: Sequence[int]) -> Arranged | None:
        """None if stall counts cannot express it, or six scoreboards do not suffice."""
        if self._keeps(window):
            times = self._bounds.earliest(self.block, window, self._kept_bounds)
            if times is not None:
                return Arranged(times, self._compiled)
        times = self._bounds.earliest(self.block, window, self._loose_bounds)
        found = None if times is None else self._slots.assign(window, times)
        if times is None or found is None:
            return None
        write, read, waits = found.tolist()
        writes, reads = ([None if k < 0 else k for k in assigned] for assigned in (write, read))
        return Arranged(times, Assignment(writes, reads, waits))

    def _keeps(self, window: Sequence[int]) -> bool:
        """Are all dependences met that come with the compiler's scoreboards?"""
        position = np.empty(len(window), np.int64)
        position[np.array(window, np.int64) - self.block.start] = np.arange(len(window))
        return bool((position[self._pairs[:, 0]] < position[self._pairs[:, 1]]).all())
