"""Register dependences inside blocks, without writing down every pair.

Under a condition an old value may live on, so the tenth of ten guarded additions to one register depends
on nine others, and a thousand of them make half a million pairs. But what an access depends on is always
the beginning of one list, a *chain*: all that wrote (or read) the register since it was last overwritten
for certain. So an access needs only the number of its chain and how many of its members come before it.
"""

from collections.abc import Iterator, Sequence
from itertools import chain as concatenated
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cuasmrl.binary.sass import Access, Hazard
from cuasmrl.checker.flow import Block

Roles = dict[int, tuple[str, ...]]
"""Registers that an instruction reads (or writes), with the parts that each plays in it."""
Array = NDArray[np.int64]
HAZARDS = (Hazard.RAW, Hazard.WAW, Hazard.WAR)


class Edge(NamedTuple):
    """`consumer` touches `register` after `producer`, and no certain overwrite lies between them."""

    hazard: Hazard
    producer: int
    consumer: int
    register: int


class Border(NamedTuple):
    """An access that is still of interest when its block ends, or that meets what came before the block."""

    block: int
    instruction: int
    register: int
    writes: bool


def roles_of(accesses: tuple[Access, ...]) -> Roles:
    found: Roles = {}
    for register, role in accesses:
        found[register] = (*found[register], role) if register in found else (role,)
    return found


def _array(values: Sequence[int]) -> Array:
    return np.array(values, dtype=np.int64)


class Dependences:
    """All register dependences inside the blocks of one program, and what crosses their borders."""

    def __init__(
        self,
        blocks: Sequence[Block],
        uses: Sequence[tuple[int, ...]],
        defs: Sequence[tuple[int, ...]],
        certain: Sequence[bool],
    ):
        """`certain`: does the instruction replace what it writes on every path?"""
        self._uses, self._defs, self._certain = uses, defs, certain
        self._chains: list[list[int]] = []
        self._meetings: list[tuple[int, int, int, int, int]] = []
        self.exits: list[Border] = []
        self.exposed: list[Border] = []
        self.kills: list[set[int]] = []
        """Per block: registers that it overwrites for certain."""
        self._chain_register: list[int] = []
        self._chain_written: list[bool] = []
        for number, block in enumerate(blocks):
            self._scan(number, block)
        self._limit = len(uses) + 1
        self.members = _array(list(concatenated.from_iterable(self._chains)))
        """Producers, chain by chain."""
        lengths = _array([len(members) for members in self._chains])
        self.chain_of = np.repeat(np.arange(len(lengths)), lengths)
        """Chain of each member."""
        self.member_register = np.repeat(_array(self._chain_register), lengths)
        self.member_written = np.repeat(np.array(self._chain_written, dtype=bool), lengths)
        table = _array([*concatenated.from_iterable(self._meetings)]).reshape(-1, 5)
        self.hazard, self.consumer, self.register, self.chain, self.count = table.T.copy()
        """Per access that depends on something; `hazard` counts in HAZARDS."""
        self.first = (np.cumsum(lengths) - lengths)[self.chain]
        """Where the members of its chain begin."""

    def __len__(self) -> int:
        return len(self.consumer)

    def _scan(self, number: int, block: Block) -> None:
        writers: dict[int, int] = {}
        readers: dict[int, int] = {}
        killed: set[int] = set()
        for i in range(block.start, block.end):
            uses, defs, certain = self._uses[i], self._defs[i], self._certain[i]
            for r in uses:
                self._meet(0, i, r, writers)
                if r not in killed:
                    self.exposed.append(Border(number, i, r, False))
            for r in defs:
                self._meet(1, i, r, writers)
                self._meet(2, i, r, readers)
                if r not in killed:
                    self.exposed.append(Border(number, i, r, True))
                if certain:
                    writers.pop(r, None)
                    readers.pop(r, None)
                    killed.add(r)
                self._append(writers, r, i, True)
            for r in uses:
                if not certain or r not in defs:
                    self._append(readers, r, i, False)
        self.kills.append(killed)
        for chains, written in ((writers, True), (readers, False)):
            for r, chain in chains.items():
                self.exits += [Border(number, p, r, written) for p in self._chains[chain]]

    def _meet(self, hazard: int, consumer: int, register: int, chains: dict[int, int]) -> None:
        chain = chains.get(register)
        if chain is not None:
            self._meetings.append((hazard, consumer, register, chain, len(self._chains[chain])))

    def _append(self, chains: dict[int, int], register: int, i: int, written: bool) -> None:
        chain = chains.get(register)
        if chain is None:
            chains[register] = len(self._chains)
            self._chains.append([i])
            self._chain_register.append(register)
            self._chain_written.append(written)
        else:
            self._chains[chain].append(i)

    def producers(self, meeting: int) -> Array:
        """All that one access depends on."""
        first = self.first[meeting]
        return self.members[first : first + self.count[meeting]]

    def edge(self, meeting: int, producer: int) -> Edge:
        hazard = HAZARDS[self.hazard[meeting]]
        return Edge(hazard, int(producer), int(self.consumer[meeting]), int(self.register[meeting]))

    def counts(self, chosen: NDArray[np.bool_]) -> dict[tuple[Hazard, bool], int]:
        """How many dependences of each hazard there are on producers that are chosen, and on others.

        In the order in which the first of each kind stands in the code.
        """
        passed = np.concatenate(([0], np.cumsum(chosen[self.members])))
        inside = passed[self.first + self.count] - passed[self.first]
        found = []
        for number, hazard in enumerate(HAZARDS):
            for is_chosen, amounts in ((True, inside), (False, self.count - inside)):
                having = np.flatnonzero((self.hazard == number) & (amounts > 0))
                if len(having):
                    members = chosen[self.producers(having[0])]
                    place = (int(having[0]), int(np.argmax(members == is_chosen)))
                    found.append((place, (hazard, is_chosen), int(amounts[having].sum())))
        return {key: amount for _, key, amount in sorted(found)}

    def broken(self, positions: Array) -> Iterator[Edge]:
        """Dependences of the first consumer that stands in front of something it depends on."""
        if not len(self):
            return
        base = self.chain_of * self._limit
        latest = np.maximum.accumulate(positions[self.members] + base)[self.first + self.count - 1]
        bad = np.flatnonzero(latest - self.chain * self._limit > positions[self.consumer])
        if len(bad):
            places = positions[self.consumer[bad]]
            for meeting in bad[places == places.min()]:
                producers = self.producers(meeting)
                for p in producers[positions[producers] > places.min()]:
                    yield self.edge(meeting, p)

    def near(self, positions: Array, starts: Array, reach: int) -> tuple[Array, Array]:
        """(access, index of a member it depends on) where less than `reach` cycles lie between the two.

        For an order that keeps all dependences. There, the members that an access depends on are also the
        first of their chain by position, so the close ones are found from the end.
        """
        order = np.argsort(self.chain_of * self._limit + positions[self.members], kind="stable")
        cycles = int(starts.max(initial=0)) + reach + 1
        when = self.chain_of * cycles + starts[self.members[order]]
        low = np.searchsorted(when, self.chain * cycles + starts[self.consumer] - reach, side="right")
        low = np.maximum(low, self.first)
        amount = np.maximum(self.first + self.count - low, 0)
        meetings = np.repeat(np.arange(len(self)), amount)
        begins = np.cumsum(amount) - amount
        offsets = np.arange(len(meetings)) - begins[meetings]
        return meetings, order[low[meetings] + offsets]
