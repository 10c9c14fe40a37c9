"""Fixed latencies: nothing arrives earlier than the hardware needs, or than the compiler had it.

A distance is the sum of stalls from a producer to its consumer. For every dependence of a fixed-latency
producer and on every path, the candidate's distance is at least min(distance in the original, required).
Here inside blocks; `crossing.py` follows the paths between them.
"""

from collections.abc import Iterator

import numpy as np

from cuasmrl.binary.sass import Distances, Hazard
from cuasmrl.checker.answers import FOREVER, Answers
from cuasmrl.checker.dependences import Array, Edge
from cuasmrl.checker.program import Arrangement, Program
from cuasmrl.checker.unprotected import Unprotected
from cuasmrl.checker.verdict import Fault, Rule
from cuasmrl.checker.waits import Losses, Waits

_LONG_CHAIN = 64
"""From so many members on, what is hashed for a chain is put together once for all that meet it."""


class Timed:
    """The dependences of one original that are kept by time: all that no scoreboard announces."""

    def __init__(self, program: Program, table: Distances, unprotected: Unprotected):
        self.program, self.unprotected = program, unprotected
        self.answers = Answers(program, table)
        self._variable = [i.is_variable for i in program.instructions]
        self.loose = np.zeros(len(program.instructions), dtype=bool)
        """Producers of which some dependence is left unprotected: for these, each is looked up by itself."""
        self.loose[unprotected.producers()] = True
        found, kind = program.dependences, self.answers.kind
        columns = (found.members, found.member_register, found.member_written)
        members = list(zip(*(column.tolist() for column in columns), strict=True))
        self.members = np.array([self.is_timed(*member) for member in members], dtype=bool)
        self.producer_kinds = np.array([kind(*member) for member in members], dtype=np.int64)
        columns = (found.consumer, found.register, found.hazard > 0)
        consumers = zip(*(column.tolist() for column in columns), strict=True)
        self.consumer_kinds = np.array([kind(*consumer) for consumer in consumers], dtype=np.int64)

    def is_timed(self, producer: int, register: int, written: bool) -> bool:
        """Is nothing of what depends on this access announced by a scoreboard?"""
        if not self._variable[producer]:
            return True
        return not written and not self.program.reads_late(producer, register)

    def required(self, edge: Edge) -> int:
        """Cycles that it needs; 0 where a scoreboard announces it."""
        if edge in self.unprotected:
            return FOREVER
        written = edge.hazard is not Hazard.WAR
        if not self.is_timed(edge.producer, edge.register, written):
            return 0
        kind = self.answers.kind
        return self.answers.one(
            kind(edge.producer, edge.register, written),
            kind(edge.consumer, edge.register, edge.hazard is not Hazard.RAW),
        )

    def inside(self, meetings: Array, members: Array) -> Array:
        """The same for many dependences inside blocks."""
        found = self.program.dependences
        answers = self.answers.required(self.producer_kinds[members], self.consumer_kinds[meetings])
        required = np.where(self.members[members], answers, 0)
        for n in np.flatnonzero(self.loose[found.members[members]]):
            if found.edge(meetings[n], found.members[members[n]]) in self.unprotected:
                required[n] = FOREVER
        return required

    def relied_on(self) -> Iterator[bytes]:
        """The required cycles of all dependences inside blocks, each behind a blank."""
        found = self.program.dependences
        long = np.flatnonzero(found.count >= _LONG_CHAIN)
        whole: dict[tuple[int, int], tuple[bytes, list[int]]] = {}
        begin = 0
        for meeting in [*long.tolist(), len(found)]:
            yield self._text(np.arange(begin, meeting))
            begin = meeting + 1
            if meeting == len(found):
                return
            if self.loose[found.producers(meeting)].any():
                yield self._text(np.array([meeting]))
                continue
            key = int(found.chain[meeting]), int(self.consumer_kinds[meeting])
            if key not in whole:
                whole[key] = self._whole(*key)
            text, ends = whole[key]
            yield text[: ends[found.count[meeting] - 1]]

    def _text(self, meetings: Array) -> bytes:
        """For these accesses and all that they depend on."""
        found = self.program.dependences
        amounts = found.count[meetings]
        repeated = np.repeat(meetings, amounts)
        begins = np.repeat(np.cumsum(amounts) - amounts, amounts)
        members = found.first[repeated] + np.arange(len(repeated)) - begins
        required = self.inside(repeated, members)
        timed = self.members[members] | (required > 0)
        return b"".join([b" %d" % cycles for cycles in required[timed].tolist()])

    def _whole(self, chain: int, consumer_kind: int) -> tuple[bytes, list[int]]:
        """For all members of a chain, and where the text of each ends."""
        chains = self.program.dependences.chain_of
        members = np.arange(*np.searchsorted(chains, [chain, chain + 1]))
        kinds = self.producer_kinds[members]
        answers = self.answers.required(kinds, np.full(len(members), consumer_kind))
        timed = self.members[members].tolist()
        parts = [b" %d" % a if t else b"" for a, t in zip(answers.tolist(), timed, strict=True)]
        return b"".join(parts), np.cumsum([len(part) for part in parts]).tolist()


class Latencies:
    """The distances of one original program; `faults` compares a candidate with them."""

    def __init__(self, program: Program, timed: Timed, original: Arrangement):
        self.program, self.timed, self.original = program, timed, original
        self.waits = Waits(program, original)

    def faults(self, candidate: Arrangement) -> Iterator[Fault]:
        """Of a candidate that keeps the order of all dependences."""
        found = self.program.dependences
        meetings, members = found.near(candidate.positions, candidate.starts, FOREVER)
        producers, consumers = found.members[members], found.consumer[meetings]
        distance = candidate.starts[consumers] - candidate.starts[producers]
        before = self.original.starts[consumers] - self.original.starts[producers]
        required = self.timed.inside(meetings, members)
        needed = np.minimum(required, before)
        for n in np.flatnonzero(distance < needed):
            yield too_close(found.edge(meetings[n], producers[n]), int(needed[n]), int(distance[n]))
        waits = self.waits.passed[consumers] > self.waits.passed[producers]
        losses = Losses(self.waits, candidate)
        for n in np.flatnonzero((distance >= needed) & (distance < required) & waits):
            p, c = int(producers[n]), int(consumers[n])
            if losses.between(p, c, p, c):
                yield wait_lost(found.edge(meetings[n], p), int(required[n]), int(distance[n]))


def too_close(edge: Edge, needed: int, found: int) -> Fault:
    what = {
        Hazard.RAW: "reads the result of",
        Hazard.WAW: "overwrites the result of",
        Hazard.WAR: "overwrites a source of",
    }[edge.hazard]
    message = f"{{c}} {what} {{p}} after {found} cycles, but needs {needed}"
    return Fault(Rule.DISTANCE, edge.consumer, message, edge.producer, edge.register, needed, found)


def wait_lost(edge: Edge, needed: int, found: int) -> Fault:
    message = f"{{p}} and {{c}} are {found} of {needed} cycles apart and have lost the wait between them"
    return Fault(Rule.DISTANCE, edge.consumer, message, edge.producer, edge.register, needed, found)
