"""What bounds the issue times inside a block, and the earliest times an order allows."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from cuasmrl.binary.sass import Instruction, Pipe
from cuasmrl.schedule.blocks import Block
from cuasmrl.schedule.boundaries import HORIZON, block_length
from cuasmrl.schedule.dependences import Graph, Originals
from cuasmrl.schedule.retiming import Arrays, Bound, Int
from cuasmrl.schedule.scoreboards import awaited_boards


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of one instruction that do not depend on the order around it."""

    head: int
    """Cycles it must stay behind the start of its block."""
    tail: int
    """Cycles it must stay ahead of the end of its block."""
    spacing: int
    """Cycles to the next instruction of its pipe."""
    stall: int
    """The least stall count it may carry."""


class Bounds:
    """All bounds of a kernel. Distances are kept as lists of (other instruction, cycles) for speed."""

    def __init__(self, blocks: Sequence[Block], originals: Originals):
        self.blocks = blocks
        self.originals = originals
        self.block_of = [block.number for block in blocks for _ in range(len(block))]
        self.length = [block_length(block, originals.code, originals.times) for block in blocks]
        """Cycles of each block in the original."""
        self.pipe = [i.declaration.pipe if i.declaration else Pipe.BRANCH for i in originals.code]
        self._follower = self._followers()
        self._limits = self._all_limits()
        self.limits = list(self._limits)
        """By instruction, under the waits of the graph that was taken over last."""
        self.longest_spacing = max(limits.spacing for limits in self.limits)
        self.incoming: list[list[tuple[int, int]]] = [[] for _ in originals.code]
        self.outgoing: list[list[tuple[int, int]]] = [[] for _ in originals.code]
        self.arrays: dict[int, Arrays] = {}
        """By number of the block, for compiled code."""

    def index(self, block: Block, graph: Graph) -> Arrays:
        """Take over the distances of a block's graph."""
        for i in range(block.start, block.end):
            self.incoming[i] = [(p, e.need) for p, e in graph.predecessors[i].items() if e.need > 1]
            self.outgoing[i] = [(c, e.need) for c, e in graph.successors[i].items() if e.need > 1]
            head = graph.heads.get(i, 0)
            own = self._limits[i]
            self.limits[i] = own if head <= own.head else replace(own, head=head)
        for first, second, cycles in graph.leashes:
            self.incoming[second].append((first, -cycles))
            self.outgoing[first].append((second, -cycles))
        self.arrays[block.number] = self._arrays(block)
        return self.arrays[block.number]

    def earliest(self, block: Block, window: Sequence[int]) -> list[int] | None:
        """Earliest issue times for an order, then the block's end; None where stalls cannot express them.

        They keep the distances taken over last.
        """
        times = self.arrays[block.number].earliest(np.array(window, np.int64) - block.start)
        return None if times is None else times.tolist()

    def hold(self, block: Block, window: Sequence[int], times: Sequence[int]) -> bool:
        """Do these issue times, the last being the block's end, keep every bound of the block?"""
        order = np.array(window, np.int64) - block.start
        return self.arrays[block.number].hold(order, np.array(times, np.int64))

    def _arrays(self, block: Block) -> Arrays:
        """The bounds of a block for compiled code; its instructions are counted from 0."""
        positions = range(block.start, block.end)
        pipes = sorted({self.pipe[i] for i in positions})
        rows = np.zeros((len(block), Bound.WIDTH), np.int64)
        for row, i in zip(rows, positions, strict=True):
            limits, follower = self.limits[i], self._follower.get(i)
            row[Bound.HEAD], row[Bound.TAIL], row[Bound.STALL] = limits.head, limits.tail, limits.stall
            row[Bound.PIPE] = pipes.index(self.pipe[i])
            row[Bound.LEAST_SPACING] = limits.spacing
            row[Bound.SPACING] = limits.spacing if limits.spacing > 1 else 0
            row[Bound.FOLLOWER] = -1
            if follower is not None:
                original = self.originals.distance(i, follower)
                row[Bound.FOLLOWER] = follower - block.start
                row[Bound.FOLLOWER_SPACING] = min(int(row[Bound.SPACING]), original)
        starts, distances = _flat(block, self.incoming)
        later_starts, later = _flat(block, self.outgoing)
        return Arrays(rows, starts, distances, self._least_length(block), later_starts, later)

    def _followers(self) -> dict[int, int]:
        """Instruction → the next one in its pipe, in the original."""
        found = {}
        for block in self.blocks:
            last: dict[str, int] = {}
            for i in range(block.start, block.end):
                if self.pipe[i] in last:
                    found[last[self.pipe[i]]] = i
                last[self.pipe[i]] = i
        return found

    def _least_length(self, block: Block) -> int:
        """What passes through a short block must not pass faster than before."""
        return min(self.length[block.number], HORIZON)

    def _all_limits(self) -> list[Limits]:
        originals, needs = self.originals, self.originals.boundaries
        held = self._held_setters()
        spacings = [self._spacing(i) for i in originals.code]
        releases = [originals.table.release(i) or HORIZON if i.control.sets else 0 for i in originals.code]
        longest = max(releases)
        widest: dict[str, int] = {}
        for pipe, spacing in zip(self.pipe, spacings, strict=True):
            widest[pipe] = max(widest.get(pipe, 1), spacing)
        shared = [self._shared_spacing(i) for i in originals.code]
        for instruction, spacing in zip(originals.code, shared, strict=True):
            if spacing and instruction.declaration and instruction.declaration.shares:
                pipe = instruction.declaration.shares
                widest[pipe] = max(widest.get(pipe, 1), spacing)
        limits = []
        for i, instruction in enumerate(originals.code):
            head = originals.times[i]
            tail = self.length[self.block_of[i]] - head
            awaited = longest if awaited_boards(instruction, instruction.control.wait_mask) else 0
            # Every producer is at least one cycle away from the end of its own block.
            needed_head = max(needs.head.get(i, 0), widest[self.pipe[i]], awaited) - 1
            limits.append(
                Limits(
                    head=head if i in held else min(head, needed_head),
                    tail=min(tail, max(needs.tail.get(i, 0), spacings[i], shared[i], releases[i])),
                    spacing=spacings[i],
                    stall=self._least_stall(instruction),
                )
            )
        return limits

    def _spacing(self, instruction: Instruction) -> int:
        """Without evidence, only what followed in the original may follow as closely."""
        if instruction.declaration is None:
            return 1
        known = self.originals.table.spacing(instruction)
        return HORIZON if known is None else known

    def _shared_spacing(self, instruction: Instruction) -> int:
        """Cycles to the next one of another pipe that it keeps busy, 0 if there is no such pipe."""
        if instruction.declaration is None or instruction.declaration.shares is None:
            return 0
        known = self.originals.table.spacing(instruction, instruction.declaration.shares)
        return HORIZON if known is None else known

    def _least_stall(self, instruction: Instruction) -> int:
        """Never below what compilers give the opcode; a stall of 0 has a meaning of its own and stays."""
        stall = instruction.control.stall
        known = self.originals.table.minimum_stall(instruction)
        return stall if known is None or stall == 0 else max(1, min(known, stall))

    def _held_setters(self) -> set[int]:
        """Instructions that raise what a wait near a border waits for, where that wait passes needed time."""
        held: set[int] = set()
        for block in self.blocks:
            positions = range(block.start, block.end)
            relying = [i for i in positions if i in self.originals.boundaries.waits_before]
            short = self.length[block.number] < HORIZON
            for w in positions if short else positions[: relying[-1] + 1 - block.start] if relying else ():
                held.update(self.originals.awaited.get(w, ()))
        return held


def _flat(block: Block, distances: Sequence[Sequence[tuple[int, int]]]) -> tuple[Int, Int]:
    """The distances of a block's instructions laid end to end, and where those of each begin."""
    inside = distances[block.start : block.end]
    starts = np.concatenate([[0], np.cumsum([len(entries) for entries in inside])]).astype(np.int64)
    pairs = [(j - block.start, need) for entries in inside for j, need in entries]
    return starts, np.array(pairs, np.int64).reshape(-1, 2)
