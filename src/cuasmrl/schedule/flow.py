"""Facts along all paths of a kernel: each block is visited when something that enters it has changed.

Visits follow the order of the code, so that a block is mostly visited after all that lead to it.
A return, or a reconvergence that may be any of many, leads from many blocks to the same many others: those
edges meet in a *junction*, else there were as many as blocks squared.
"""

from collections.abc import Callable, Sequence
from heapq import heapify, heappop, heappush
from typing import TypeVar

from cuasmrl.schedule.blocks import Block

Fact = TypeVar("Fact")
_FEW = 2
"""Blocks with no more successors than this need no junction."""


class Flow:
    """The control flow graph; nodes are blocks by their numbers, then junctions."""

    def __init__(self, blocks: Sequence[Block]) -> None:
        self._blocks = len(blocks)
        self.successors: list[Sequence[int]] = [block.successors for block in blocks]
        junctions: dict[tuple[int, ...], int] = {}
        for block in blocks:
            if len(block.successors) > _FEW:
                if block.successors not in junctions:
                    junctions[block.successors] = len(self.successors)
                    self.successors.append(block.successors)
                self.successors[block.number] = (junctions[block.successors],)
        self.predecessors: list[list[int]] = [[] for _ in self.successors]
        for node, following in enumerate(self.successors):
            for successor in following:
                self.predecessors[successor].append(node)

    def __len__(self) -> int:
        return len(self.successors)

    def forwards(self, leave: Callable[[int], Fact], enter: Callable[[int, Fact], bool]) -> None:
        """Carry what leaves a node into its successors until nothing changes.

        `leave` says what leaves a node as it stands, `enter` adds that to another and whether it was new.
        """
        _settle(self._ranks(self.predecessors, max), self.successors, leave, enter)

    def backwards(self, leave: Callable[[int], Fact], enter: Callable[[int, Fact], bool]) -> None:
        """The same against the direction of control."""
        ranks = [-rank for rank in self._ranks(self.successors, min)]
        _settle(ranks, self.predecessors, leave, enter)

    def _ranks(self, before: Sequence[Sequence[int]], last: Callable[[Sequence[int]], int]) -> list[int]:
        """Blocks in the order of the code, as compilers lay it out; a junction behind what leads to it."""
        junctions = [last(before[node]) for node in range(self._blocks, len(self))]
        return [*range(self._blocks), *junctions]


def _settle(
    rank: Sequence[int],
    following: Sequence[Sequence[int]],
    leave: Callable[[int], Fact],
    enter: Callable[[int, Fact], bool],
) -> None:
    work = [(r, node) for node, r in enumerate(rank)]
    heapify(work)
    waiting = [True] * len(rank)
    while work:
        node = heappop(work)[1]
        waiting[node] = False
        fact = leave(node)
        for other in following[node]:
            if enter(other, fact) and not waiting[other]:
                waiting[other] = True
                heappush(work, (rank[other], other))
