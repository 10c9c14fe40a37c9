"""The dependence graph of a block: which instructions must keep their order, and at what distance.

An edge that only says "this order" is left out where a chain of other edges says so too. Whoever looks at an
order, at the neighbours in it or at the room between them cannot tell the difference: two instructions with
a third one chained between them are never neighbours, and of all that one has to stay behind, the last one
decides. How many it depends on with all chains is counted beside the edges.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache

import numpy as np

from cuasmrl.binary.sass import BARRIERS, Instruction
from cuasmrl.schedule.machine import bits


class Reason(StrEnum):
    REGISTER = "register"
    MEMORY = "memory"
    SYNC = "synchronisation"
    SCOREBOARD = "scoreboard"
    ANNOUNCED = "announced by a scoreboard"
    WAIT = "wait"
    QUEUE = "in-order queue"
    WARP = "warp-wide order"
    PIPE = "shared pipe"
    PRODUCT = "products in flight"
    PADDING = "padding"
    PAUSE = "wait that passes the time"


@dataclass(frozen=True, slots=True)
class Edge:
    """`need` cycles at least from the first to the second; 0 where only the order matters."""

    need: int
    reasons: frozenset[Reason]


@dataclass
class Graph:
    """Instructions are named by their index in the original listing."""

    successors: dict[int, dict[int, Edge]] = field(default_factory=lambda: defaultdict(dict))
    predecessors: dict[int, dict[int, Edge]] = field(default_factory=lambda: defaultdict(dict))
    inherits: dict[tuple[int, int], int] = field(default_factory=dict)
    """(waiting instruction, protected instruction) → wait bits the second needs to leave the first's shelter;
    0 where bits cannot replace the shelter (a DEPBAR). Only for those tied by nothing else."""
    leashes: list[tuple[int, int, int]] = field(default_factory=list)
    """(first, second, cycles): the second issues no earlier than so many cycles before the first."""
    heads: dict[int, int] = field(default_factory=dict)
    """Instruction → cycles behind the start of the block, for a wait that it did not have in the original."""
    relied: set[int] = field(default_factory=set)
    """Instructions whose waits pass time that others count on."""
    before: dict[int, int] = field(default_factory=dict)
    """Instruction → how many it has to stay behind for a reason of its own, those left out among them."""
    behind: dict[int, int] = field(default_factory=dict)
    """Instruction → how many have to stay behind it."""

    def add(self, first: int, second: int, need: int, reason: Reason) -> None:
        present = self.successors[first].get(second)
        if present is None:
            edge = _edge(need, frozenset((reason,)))
        else:
            edge = _edge(max(present.need, need), present.reasons | {reason})
        self.successors[first][second] = self.predecessors[second][first] = edge


@cache
def _edge(need: int, reasons: frozenset[Reason]) -> Edge:
    """Few different ones occur, millions of times."""
    return Edge(need, reasons)


Rows = Mapping[Reason, int]
"""Positions that an instruction has to stay behind, as the bits of an integer, by reason."""


class Weave:
    """Adds the edges of order to a graph that has all its distances, instruction by instruction."""

    def __init__(self, graph: Graph, order: Sequence[int], code: Sequence[Instruction]) -> None:
        self.graph = graph
        self.order = order
        self.code = code
        self.position = {i: q for q, i in enumerate(order)}
        self._ancestors: list[int] = []
        """By position: all that stand before it in every order, as the edges kept so far tell."""
        self._raising = [0] * BARRIERS
        self._counts: list[int] = []
        """How many stay behind each position, a bit of the number in each integer."""

    def tie(self, rows: Rows, shelters: Sequence[tuple[int, int]] = ()) -> None:
        """The next instruction of the order. `shelters` are the wait bits that replace a wait's shelter, and
        the positions of such waits."""
        q = len(self._ancestors)
        i = self.order[q]
        tied, reach = self._distances(q, i)
        wanted = 0
        for row in rows.values():
            wanted |= row
        for p in bits(wanted & tied):
            self._keep(p, i, rows)
        held = self._held(i, rows) & ~tied
        left = wanted & ~tied & (~reach | held)
        while left:
            p = left.bit_length() - 1
            left ^= 1 << p
            reasons = self._keep(p, i, rows)
            if reasons == [Reason.WAIT]:
                self._inherit(p, i, shelters)
            if self.order[p] < i:
                reach |= self._ancestors[p] | 1 << p
                left &= ~self._ancestors[p] | held
        self._ancestors.append(reach)
        self.graph.before[i] = (wanted | tied).bit_count()
        self._count(wanted | tied)
        for k in self.code[i].control.sets:
            self._raising[k] |= 1 << q

    def close(self) -> None:
        """All instructions have been tied."""
        n = len(self.order)
        totals = np.zeros(n, np.int64)
        for power, plane in enumerate(self._counts):
            packed = np.frombuffer(plane.to_bytes((n + 7) // 8, "little"), np.uint8)
            totals += np.unpackbits(packed, count=n, bitorder="little").astype(np.int64) << power
        self.graph.behind.update(zip(self.order, totals.tolist(), strict=True))

    def _distances(self, q: int, i: int) -> tuple[int, int]:
        """Positions that edges tie it to already, and all that stand before it because of these.

        An edge against the order of the code speaks of the previous iteration, and makes no chains.
        """
        tied = reach = 0
        for p in self.graph.predecessors.get(i, ()):
            at = self.position[p]
            tied |= 1 << at
            if at < q and p < i:
                reach |= self._ancestors[at] | 1 << at
        return tied, reach

    def _held(self, i: int, rows: Rows) -> int:
        """Waiting for a scoreboard of the other one takes longer than a chain tells: those edges stay."""
        raising = 0
        for k in self.code[i].control.waits:
            raising |= self._raising[k]
        return raising & (rows.get(Reason.WAIT, 0) | rows.get(Reason.QUEUE, 0)) if raising else 0

    def _keep(self, p: int, i: int, rows: Rows) -> list[Reason]:
        reasons = [reason for reason, row in rows.items() if row >> p & 1]
        for reason in reasons:
            self.graph.add(self.order[p], i, 0, reason)
        return reasons

    def _inherit(self, p: int, i: int, shelters: Sequence[tuple[int, int]]) -> None:
        needed = [boards for boards, waits in shelters if waits >> p & 1]
        everything = 0
        for boards in needed:
            everything |= boards
        self.graph.inherits[self.order[p], i] = everything if all(needed) else 0

    def _count(self, row: int) -> None:
        for power, plane in enumerate(self._counts):
            if not row:
                return
            self._counts[power], row = plane ^ row, plane & row
        if row:
            self._counts.append(row)
