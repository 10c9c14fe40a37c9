"""Fixed latencies across blocks: what is pending at the end of a block is followed along every path.

First by kind: of all accesses to a register that the table cannot tell apart, only the most dangerous times
are carried along, so that many paths which meet cost no more than one. That shows for which accesses
something comes too early, if for any. Only for the first of those is every producer followed by itself, to
name it.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cached_property
from heapq import heapify, heappop, heappush
from typing import NamedTuple

import numpy as np

from cuasmrl.binary.sass import Hazard
from cuasmrl.checker.answers import FOREVER
from cuasmrl.checker.dependences import Array, Border, Edge
from cuasmrl.checker.graph import Worklist
from cuasmrl.checker.latency import Timed, too_close, wait_lost
from cuasmrl.checker.program import Arrangement, Program
from cuasmrl.checker.verdict import Fault
from cuasmrl.checker.waits import Losses, Waits


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


class Pending(NamedTuple):
    """Accesses to one register that are still of interest behind their blocks."""

    written: bool
    kind: int
    timed: bool
    """No scoreboard announces what depends on them."""
    unprotected: int | None
    """Stands for dependences that a scoreboard should keep and does not, if any: time has to."""
    reach: int
    """Cycles after which none of them can come too early for anybody."""


class Consumer(NamedTuple):
    """An access that meets what comes from before its block."""

    start: int
    instruction: int
    register: int
    writes: bool
    kind: int


Entry = dict[int, dict[Pending, list[Elapsed]]]
"""By register: what is pending at the head of a block, and the paths on which nothing is more dangerous."""


class Crossing:
    """The borders of one original's blocks; `faults` follows what crosses them in a candidate."""

    def __init__(self, program: Program, timed: Timed, original: Arrangement, waits: Waits):
        self.program, self.timed, self.original, self.waits = program, timed, original, waits

    @cached_property
    def _exposed(self) -> tuple[list[Border], list[int], Array]:
        """Accesses that meet something from before their block: themselves, their kinds, their indices."""
        borders = self.program.dependences.exposed
        kinds = [self.timed.answers.kind(b.instruction, b.register, b.writes) for b in borders]
        return borders, kinds, np.array([b.instruction for b in borders], dtype=np.int64)

    @cached_property
    def _exits(self) -> tuple[list[Border], list[Pending], Array, Array, Array]:
        """Accesses pending at the end of their block that time keeps: also index, block and reach of each."""
        consumers: dict[int, set[int]] = defaultdict(set)
        for border, kind in zip(*self._exposed[:2], strict=True):
            consumers[border.register].add(kind)
        borders, pending = [], []
        for border in self.program.dependences.exits:
            _, p, register, written = border
            unprotected = self.timed.unprotected.alike(p, register, written)
            timed = self.timed.is_timed(p, register, written)
            if timed or unprotected is not None:
                kind = self.timed.answers.kind(p, register, written)
                reach = FOREVER
                if unprotected is None:
                    reach = self.timed.answers.reach(kind, register, consumers[register])
                pending.append(Pending(written, kind, timed, unprotected, reach))
                borders.append(border)
        return (
            borders,
            pending,
            np.array([border.instruction for border in borders], dtype=np.int64),
            np.array([border.block for border in borders], dtype=np.int64),
            np.array([one.reach for one in pending], dtype=np.int64),
        )

    def faults(self, candidate: Arrangement, until: int | None = None) -> Iterator[Fault]:
        """Up to the first consumer that something in front of it reaches too early, or up to a position.

        What is carried back to a consumer, by a loop or a return, comes after all else: of that, only what
        reaches the first consumer is named.
        """
        walk = _Walk(self, candidate)
        suspects = walk.suspects()
        is_first = True
        for i in sorted(suspects, key=lambda i: candidate.position[i]):
            if until is not None and candidate.position[i] > until:
                return
            found = list(walk.named(i, suspects[i], with_carried=is_first))
            yield from found
            if any(fault.producer is not None and fault.producer <= i for fault in found):
                return
            is_first = is_first and not found


class _Walk:
    """One candidate beside the original."""

    def __init__(self, crossing: Crossing, candidate: Arrangement):
        self.crossing, self.candidate = crossing, candidate
        self.program, self.timed, self.original = crossing.program, crossing.timed, crossing.original
        self.losses = Losses(crossing.waits, candidate)
        self.paths = self.program.graph.paths
        junctions = len(self.paths) - len(self.program.blocks)
        self.total = candidate.total + [0] * junctions
        self.shorter = [
            before - now for before, now in zip(self.original.total, candidate.total, strict=True)
        ] + [0] * junctions
        self.lost_in = [
            self.losses.between(block.start - 1, block.end - 1, None, None) for block in self.program.blocks
        ] + [False] * junctions
        self.kills: list[set[int]] = self.program.dependences.kills + [set()] * junctions

    def _leaving(self) -> Iterator[tuple[Border, Pending, Elapsed]]:
        """What is pending at the end of its own block, and not yet for so long that nobody cares."""
        borders, pending, producers, blocks, reach = self.crossing._exits
        now = np.array(self.candidate.total)[blocks] - self.candidate.starts[producers]
        before = np.array(self.original.total)[blocks] - self.original.starts[producers]
        for n in np.flatnonzero(now < reach).tolist():
            block, p, _, _ = borders[n]
            lost = self.losses.behind(p, self.program.blocks[block].end)
            yield borders[n], pending[n], Elapsed(int(now[n]), int(before[n] - now[n]), lost)

    def _consumers(self) -> list[list[Consumer]]:
        """Per block, those that issue soon enough to meet anything, the earliest first."""
        borders, kinds, indices = self.crossing._exposed
        found: list[list[Consumer]] = [[] for _ in self.paths]
        start = self.candidate.starts[indices]
        longest = int(self.crossing._exits[4].max(initial=0))
        for n in np.flatnonzero(start < longest).tolist():
            block, i, register, writes = borders[n]
            found[block].append(Consumer(int(start[n]), i, register, writes, kinds[n]))
        for consumers in found:
            consumers.sort()
        return found

    # ---- by kind ----

    def suspects(self) -> dict[int, list[Consumer]]:
        """By instruction: accesses for which something comes too early."""
        consumers = self._consumers()
        entries = self._entries(consumers)
        found: dict[int, list[Consumer]] = defaultdict(list)
        for number, met in enumerate(consumers):
            for consumer in met if entries[number] else ():
                for pending, paths in entries[number].get(consumer.register, {}).items():
                    if any(self._goes_wrong(pending, path, consumer) for path in paths):
                        found[consumer.instruction].append(consumer)
                        break
        return found

    def _goes_wrong(self, pending: Pending, elapsed: Elapsed, consumer: Consumer) -> bool:
        if elapsed.now + consumer.start >= pending.reach or not (pending.written or consumer.writes):
            return False
        if self._is_unprotected(pending, consumer):
            required = FOREVER
        else:
            required = self.timed.answers.one(pending.kind, consumer.kind) if pending.timed else 0
        return self._verdict(elapsed, consumer.instruction, required) is not None

    def _is_unprotected(self, pending: Pending, consumer: Consumer) -> bool:
        if pending.unprotected is None:
            return False
        hazard = _hazard(pending.written, consumer.writes)
        met = self.timed.unprotected
        return met.meets(hazard, consumer.instruction, consumer.register, pending.unprotected)

    def _verdict(self, elapsed: Elapsed, consumer: int, required: int) -> tuple[bool, int, int] | None:
        """(is a wait missing, cycles needed, cycles found) where it comes too early."""
        distance = elapsed.now + self.candidate.start[consumer]
        needed = min(required, elapsed.now + elapsed.shorter + self.original.start[consumer])
        if distance < needed:
            return False, needed, distance
        head = self.program.blocks[self.program.block_of[consumer]].start
        if distance < required and (elapsed.lost or self.losses.ahead(head, consumer)):
            return True, required, distance
        return None

    def _entries(self, consumers: list[list[Consumer]]) -> list[Entry]:
        graph = self.program.graph
        # By register the earliest: of consumers in order, the last one noted.
        wanted = [{consumer.register: consumer.start for consumer in reversed(met)} for met in consumers]
        own: list[Entry] = [{} for _ in self.paths]
        for border, pending, elapsed in self._leaving():
            _add(own[border.block], border.register, pending, elapsed)
        entries: list[Entry] = [{} for _ in self.paths]
        work = Worklist(graph)
        while work:
            node = work.pop()
            leaving = self._through(node, entries[node], own[node])
            long = self._by_slack(leaving) if leaving else []
            for following in self.paths[node] if leaving else ():
                if self._deliver(leaving, long, following, wanted[following], entries[following]):
                    work.push(following)
        return entries

    def _through(self, node: int, entry: Entry, own: Entry) -> Entry:
        """What leaves a node: its own, and what came to it, is not overwritten in it and not yet too old."""
        leaving: Entry = {r: {p: list(paths) for p, paths in found.items()} for r, found in own.items()}
        total, shorter, lost = self.total[node], self.shorter[node], self.lost_in[node]
        for register, found in entry.items():
            if register in self.kills[node]:
                continue
            for pending, paths in found.items():
                for path in paths:
                    if path.now + total < pending.reach:
                        further = Elapsed(path.now + total, path.shorter + shorter, path.lost or lost)
                        _add(leaving, register, pending, further)
        return leaving

    @staticmethod
    def _by_slack(leaving: Entry) -> list[tuple[int, int, Pending, Elapsed]]:
        """All of it, that which lives longest first."""
        every = [
            (pending.reach - path.now, register, pending, path)
            for register, found in leaving.items()
            for pending, paths in found.items()
            for path in paths
        ]
        every.sort(key=lambda one: -one[0])
        return every

    def _deliver(
        self,
        leaving: Entry,
        by_slack: list[tuple[int, int, Pending, Elapsed]],
        node: int,
        wanted: dict[int, int],
        entry: Entry,
    ) -> bool:
        """Hand a node what somebody in it may meet, or what gets through it. Was any of that new?"""
        changed = False
        for register in wanted.keys() & leaving.keys():
            for pending, paths in leaving[register].items():
                for path in paths:
                    if path.now + wanted[register] < pending.reach:
                        changed |= _add(entry, register, pending, path)
        total, kills = self.total[node], self.kills[node]
        for slack, register, pending, path in by_slack:
            if slack <= total:
                break
            if register not in kills:
                changed |= _add(entry, register, pending, path)
        return changed

    # ---- one by one ----

    def named(self, i: int, consumers: list[Consumer], with_carried: bool) -> Iterator[Fault]:
        """All that comes too early for these accesses of one instruction; else only what stands before it."""
        target = self.program.block_of[i]
        registers = {consumer.register for consumer in consumers}
        nodes = self._leading_to(target)
        best: dict[tuple[int, int, int, bool], list[Elapsed]] = defaultdict(list)
        work = [
            (elapsed, following, border.instruction, border.register, pending)
            for node in nodes
            for border, pending, elapsed in self._leaving_by_block.get(node, ())
            if border.register in registers and (with_carried or border.instruction <= i)
            for following in self.paths[node]
            if following in nodes or following == target
        ]
        heapify(work)
        while work:
            elapsed, node, p, register, pending = heappop(work)
            known = best[node, p, register, pending.written]
            if any(other.covers(elapsed) for other in known):
                continue
            known.append(elapsed)
            if node == target:
                met = (consumer for consumer in consumers if consumer.register == register)
                yield from self._meetings(p, pending, elapsed, met)
            now = elapsed.now + self.total[node]
            if now < pending.reach and register not in self.kills[node]:
                shorter = elapsed.shorter + self.shorter[node]
                further = Elapsed(now, shorter, elapsed.lost or self.lost_in[node])
                for following in self.paths[node]:
                    if following in nodes or following == target:
                        heappush(work, (further, following, p, register, pending))

    @cached_property
    def _leaving_by_block(self) -> dict[int, list[tuple[Border, Pending, Elapsed]]]:
        found: dict[int, list[tuple[Border, Pending, Elapsed]]] = defaultdict(list)
        for one in self._leaving():
            found[one[0].block].append(one)
        return found

    @cached_property
    def _before(self) -> list[list[int]]:
        return self.program.graph.predecessors()

    def _leading_to(self, target: int) -> set[int]:
        """Nodes from the end of which a block is reached before everything that crosses borders is over."""
        work, found = [(0, node) for node in self._before[target]], set[int]()
        heapify(work)
        while work:
            cycles, node = heappop(work)
            if node not in found and cycles < FOREVER:
                found.add(node)
                for previous in self._before[node]:
                    heappush(work, (cycles + self.total[node], previous))
        return found

    def _meetings(
        self, producer: int, pending: Pending, elapsed: Elapsed, consumers: Iterable[Consumer]
    ) -> Iterator[Fault]:
        for consumer in consumers:
            if not pending.written and not consumer.writes:
                continue
            hazard = _hazard(pending.written, consumer.writes)
            edge = Edge(hazard, producer, consumer.instruction, consumer.register)
            wrong = self._verdict(elapsed, consumer.instruction, self.timed.required(edge))
            if wrong is not None:
                is_wait, needed, found = wrong
                yield (wait_lost if is_wait else too_close)(edge, needed, found)


def _hazard(written: bool, writes: bool) -> Hazard:
    """Of something that is written, or else read, and who writes it behind that, or else reads it."""
    if not written:
        return Hazard.WAR
    return Hazard.WAW if writes else Hazard.RAW


def _add(entry: Entry, register: int, pending: Pending, path: Elapsed) -> bool:
    """Note a path, unless a known one is as dangerous."""
    found = entry.setdefault(register, {})
    paths = found.get(pending)
    if paths is None:
        found[pending] = [path]
        return True
    for known in paths:
        if known.covers(path):
            return False
    paths[:] = [known for known in paths if not path.covers(known)]
    paths.append(path)
    return True
