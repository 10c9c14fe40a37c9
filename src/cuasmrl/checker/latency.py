"""Fixed latencies: nothing arrives earlier than the hardware needs, or than the compiler had it.

A distance is the sum of stalls from a producer to its consumer. For every dependence of a fixed-latency
producer and on every path, the candidate's distance is at least min(distance in the original, required).
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator
from heapq import heapify, heappop, heappush
from typing import NamedTuple

import numpy as np

from cuasmrl.binary.sass import Distances, Hazard, Instruction, Order, Pipe
from cuasmrl.checker.flow import Block
from cuasmrl.checker.program import Arrangement, Edge, Pending, Program, boards_waited
from cuasmrl.checker.verdict import Fault, Rule

FOREVER = 96
"""Cycles after which no fixed latency is still running; ptxas gives tensor cores up to 44."""
LONGEST = 32
"""The same for all other pipes; ptxas gives them at most 14 where nothing else passes the time."""


class Elapsed(NamedTuple):
    """One path since a producer."""

    now: int
    """Cycles in the candidate."""
    shorter: int
    """How many fewer they are than in the original."""
    lost: bool
    """A wait that stood on the path no longer does."""

    def covers(self, other: "Elapsed") -> bool:
        """Whatever goes wrong after `other` also goes wrong after this one."""
        return self.now <= other.now and self.shorter >= other.shorter and self.lost >= other.lost


class Latencies:
    """The distances of one original program; `faults` compares a candidate with them."""

    def __init__(self, program: Program, table: Distances, original: Arrangement, unprotected: set[Edge]):
        self.program, self.table, self.original, self.unprotected = program, table, original, unprotected
        self._loose = {edge.producer for edge in unprotected}
        self._required: dict[Edge, int] = {}
        self._waits = _waits_of(program, original)
        self._waiters = sorted(self._waits)
        self.edges = [edge for edge in program.edges if self._is_timed(edge)]
        self._producers = np.array([edge.producer for edge in self.edges], dtype=np.intp)
        self._consumers = np.array([edge.consumer for edge in self.edges], dtype=np.intp)
        start = np.array(original.start)
        required = np.array([self.required(edge) for edge in self.edges], dtype=np.intp)
        self._needed = np.minimum(required, start[self._consumers] - start[self._producers])
        waits = np.array(
            [self._waits_between(edge.producer, edge.consumer) for edge in self.edges], dtype=bool
        )
        self._alone = np.where(waits, required, 0)
        """Distance from which on no wait has to help; 0 where none did."""

    def faults(self, candidate: Arrangement) -> Iterator[Fault]:
        if candidate == self.original:
            return
        yield from self._inside_blocks(candidate)
        yield from self._across_blocks(candidate)

    def _is_timed(self, edge: Edge) -> bool:
        """Is it kept by time? Everything is that no scoreboard announces."""
        if not self.program.instructions[edge.producer].is_variable or edge in self.unprotected:
            return True
        return edge.hazard is Hazard.WAR and not self.program.reads_late(edge.producer, edge.register)

    def _may_be_timed(self, pending: Pending) -> bool:
        p = pending.producer
        if not self.program.instructions[p].is_variable or p in self._loose:
            return True
        return not pending.written and not self.program.reads_late(p, pending.register)

    def required(self, edge: Edge) -> int:
        """Where the table is silent, so much that nothing comes closer than it was."""
        known = self._required.get(edge)
        if known is None:
            known = self._required[edge] = self._look_up(edge)
        return known

    def _look_up(self, edge: Edge) -> int:
        if edge in self.unprotected:
            return FOREVER
        producer, consumer = (self.program.instructions[i] for i in (edge.producer, edge.consumer))
        unknown = FOREVER if _may_take_long(producer) else LONGEST
        first = producer.uses if edge.hazard is Hazard.WAR else producer.defs
        second = consumer.uses if edge.hazard is Hazard.RAW else consumer.defs
        answers = [
            self.table.required(edge.hazard, producer, consumer, edge.register, p.role, c.role)
            for p in first
            if p.register == edge.register
            for c in second
            if c.register == edge.register
        ]
        return min(FOREVER, max(unknown if answer is None else answer for answer in answers))

    # ---- inside a block: all edges at once ----

    def _inside_blocks(self, candidate: Arrangement) -> Iterator[Fault]:
        start = np.array(candidate.start)
        distance = start[self._consumers] - start[self._producers]
        for n in np.flatnonzero(distance < self._needed):
            yield _too_close(self.edges[n], int(self._needed[n]), int(distance[n]))
        for n in np.flatnonzero((distance >= self._needed) & (distance < self._alone)):
            edge = self.edges[n]
            waits = self._waiters_between(edge.producer, edge.consumer)
            if self._lost(candidate, waits, edge.producer, edge.consumer):
                yield _wait_lost(edge, int(self._alone[n]), int(distance[n]))

    def _waiters_between(self, after: int, until: int) -> list[int]:
        return self._waiters[bisect_right(self._waiters, after) : bisect_right(self._waiters, until)]

    def _waiters_in(self, block: Block) -> list[int]:
        return self._waiters_between(block.start - 1, block.end - 1)

    def _waits_between(self, after: int, until: int) -> bool:
        return bisect_right(self._waiters, after) < bisect_right(self._waiters, until)

    def _lost(
        self, candidate: Arrangement, waits: list[int], producer: int | None, consumer: int | None
    ) -> bool:
        """Does one of these waits no longer pass the time it passed between the two?

        It does if it still stands between them, waits for the same scoreboards, and what it waits for was
        issued no earlier, seen from the producer (or from the head of the block, if that was before).
        """
        position, start, before = candidate.position, candidate.start, self.original.start
        since, was = (0, 0) if producer is None else (start[producer], before[producer])
        for w in waits:
            if producer is not None and position[w] < position[producer]:
                return True
            if consumer is not None and position[w] > position[consumer]:
                return True
            boards, setters = self._waits[w]
            if not boards <= set(boards_waited(self.program, candidate, w)):
                return True
            if any(start[s] - since < before[s] - was for s in setters):
                return True
        return False

    # ---- across blocks: what is pending at the end of a block is followed along every path ----

    def _across_blocks(self, candidate: Arrangement) -> Iterator[Fault]:
        program, best = self.program, dict[tuple[int, Pending], list[Elapsed]]()
        lost_in = [self._lost(candidate, self._waiters_in(block), None, None) for block in program.blocks]
        work = list(self._leaving(candidate))
        heapify(work)
        while work:
            elapsed, number, pending = heappop(work)
            known = best.setdefault((number, pending), [])
            if any(other.covers(elapsed) for other in known):
                continue
            known.append(elapsed)
            for consumer, writes in program.exposed[number].get(pending.register, ()):
                yield from self._meeting(candidate, pending, elapsed, consumer, writes)
            now = elapsed.now + candidate.total[number]
            if now < FOREVER and pending.register not in program.kills[number]:
                shorter = elapsed.shorter + self.original.total[number] - candidate.total[number]
                further = Elapsed(now, shorter, elapsed.lost or lost_in[number])
                for following in program.blocks[number].successors:
                    heappush(work, (further, following, pending))

    def _leaving(self, candidate: Arrangement) -> Iterator[tuple[Elapsed, int, Pending]]:
        for number, block in enumerate(self.program.blocks):
            for pending in self.program.exits[number]:
                p = pending.producer
                if not self._may_be_timed(pending):
                    continue
                now = candidate.total[number] - candidate.start[p]
                if now < FOREVER:
                    before = self.original.total[number] - self.original.start[p]
                    lost = self._lost(candidate, self._waiters_between(p, block.end - 1), p, None)
                    for following in block.successors:
                        yield Elapsed(now, before - now, lost), following, pending

    def _meeting(
        self, candidate: Arrangement, pending: Pending, elapsed: Elapsed, consumer: int, writes: bool
    ) -> Iterator[Fault]:
        if not pending.written and not writes:
            return
        hazard = (Hazard.WAW if writes else Hazard.RAW) if pending.written else Hazard.WAR
        edge = Edge(hazard, pending.producer, consumer, pending.register)
        distance = elapsed.now + candidate.start[consumer]
        if distance >= FOREVER or not self._is_timed(edge):
            return
        required = self.required(edge)
        needed = min(required, elapsed.now + elapsed.shorter + self.original.start[consumer])
        if distance < needed:
            yield _too_close(edge, needed, distance)
        elif distance < required:
            head = self.program.blocks[self.program.block_of[consumer]].start
            if elapsed.lost or self._lost(
                candidate, self._waiters_between(head - 1, consumer), None, consumer
            ):
                yield _wait_lost(edge, required, distance)


def _may_take_long(i: Instruction) -> bool:
    return i.declaration is None or i.declaration.pipe in (Pipe.TENSOR, Pipe.ASYNC)


def _waits_of(program: Program, original: Arrangement) -> dict[int, tuple[set[tuple[int, int]], list[int]]]:
    """Instructions that may pass time by waiting: what for, and who in their block raised that since."""
    found: dict[int, tuple[set[tuple[int, int]], list[int]]] = {}
    for block in program.blocks:
        raised: dict[int, list[int]] = defaultdict(list)
        for i in range(block.start, block.end):
            boards = set(boards_waited(program, original, i))
            if boards or program.instructions[i].order is Order.SYNC:
                found[i] = boards, [s for board, _ in boards for s in raised[board]]
            for board, count in boards:
                if count == 0:
                    raised[board].clear()
            for board in original.controls[i].sets:
                raised[board].append(i)
    return found


def _too_close(edge: Edge, needed: int, found: int) -> Fault:
    what = {
        Hazard.RAW: "reads the result of",
        Hazard.WAW: "overwrites the result of",
        Hazard.WAR: "overwrites a source of",
    }[edge.hazard]
    message = f"{{c}} {what} {{p}} after {found} cycles, but needs {needed}"
    return Fault(Rule.DISTANCE, edge.consumer, message, edge.producer, edge.register, needed, found)


def _wait_lost(edge: Edge, needed: int, found: int) -> Fault:
    message = f"{{p}} and {{c}} are {found} of {needed} cycles apart and have lost the wait between them"
    return Fault(Rule.DISTANCE, edge.consumer, message, edge.producer, edge.register, needed, found)
