"""Distances across block borders, split into a part for each side.

A pair with its producer in one block and its consumer in another keeps its distance if the producer
stays as far from the end of its block, the consumer as far from the start of its own, and no block gets
shorter, each up to what the pair needs.

What a pair needs depends on its register and on the kinds of its two accesses only. So pairs are not listed:
what is carried along the paths is, for each register and kind of access, how close the nearest such access
may be. Forwards that tells every consumer what it may come behind, backwards every producer what may come
behind it.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from cuasmrl.binary.sass import Access, Distances, Hazard, Instruction, Order, overwriting_role
from cuasmrl.schedule.blocks import Block
from cuasmrl.schedule.flow import Flow
from cuasmrl.schedule.scoreboards import is_read_late

HORIZON = 96
"""No fixed latency comes near it; beyond it nothing has to be kept."""


@dataclass
class Boundaries:
    """By instruction: what its pairs in other blocks need, and whether a wait in between matters to them."""

    head: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    tail: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    waits_before: set[int] = field(default_factory=set)
    waits_after: set[int] = field(default_factory=set)

    def keep_tail(self, producer: int) -> None:
        """It gets no closer to the end of its block, and the waits on the way stay."""
        self.tail[producer] = HORIZON
        self.waits_after.add(producer)

    def keep_head(self, consumer: int) -> None:
        """It gets no closer to the start of its block, and the waits on the way stay."""
        self.head[consumer] = HORIZON
        self.waits_before.add(consumer)


_Kind: TypeAlias = tuple[int, bool, str, str, str]
"""Register, whether it is written, and all that a table of distances looks at: the timing keys of the
instruction as producer or consumer and as one that overwrites, and the role of the operand."""
_Near: TypeAlias = npt.NDArray[np.uint8]
"""By number of a kind: 0 if no such access is met on any path, else at least 1, and above that by how much
the nearest one is nearer than the horizon. So of two paths the larger number counts, and what is beyond the
horizon is still known to be there: its own block says how far from the border it has to stay."""


def cross_block_needs(
    blocks: Sequence[Block], code: Sequence[Instruction], table: Distances, flow: Flow | None = None
) -> Boundaries:
    """Every fixed-latency dependence that crosses a border."""
    flow = flow or Flow(blocks)
    times = issue_times(blocks, code)
    kinds = _Kinds(code, table)
    found = Boundaries()
    _look_back(blocks, code, times, kinds, flow, found)
    _look_ahead(blocks, code, times, kinds, flow, found)
    return found


def issue_times(blocks: Sequence[Block], code: Sequence[Instruction]) -> list[int]:
    """Issue time of every instruction by stall counts alone, from the start of its block."""
    times = []
    for block in blocks:
        time = 0
        for instruction in code[block.start : block.end]:
            times.append(time)
            time += instruction.control.stall
    return times


def block_length(block: Block, code: Sequence[Instruction], times: Sequence[int]) -> int:
    return times[block.end - 1] + code[block.end - 1].control.stall


class _Side:
    """All kinds of producers, or of consumers, with a number each."""

    def __init__(self) -> None:
        self.numbers: dict[_Kind, int] = {}
        self.samples: list[tuple[Instruction, Access, bool]] = []
        """Number → an access of this kind."""
        self.of: list[list[tuple[int, int]]] = []
        """Instruction → (register, kind) of its accesses."""
        self.on: dict[int, npt.NDArray[np.int64]] = {}
        """Register → kinds."""

    def note(self, instruction: Instruction, accesses: Iterator[tuple[Access, bool]]) -> None:
        found = []
        for access, is_write in accesses:
            roles = access.role, overwriting_role(instruction, access.role)
            kind = (access.register, is_write, instruction.timing_key, *roles)
            number = self.numbers.setdefault(kind, len(self.numbers))
            if number == len(self.samples):
                self.samples.append((instruction, access, is_write))
            found.append((access.register, number))
        self.of.append(found)

    def close(self) -> None:
        on = defaultdict(list)
        for (register, *_), number in self.numbers.items():
            on[register].append(number)
        self.on = {register: np.array(numbers, np.int64) for register, numbers in on.items()}


class _Kinds:
    """What accesses of a kernel there are, and what a pair of two kinds needs."""

    def __init__(self, code: Sequence[Instruction], table: Distances) -> None:
        self.producers, self.consumers = _Side(), _Side()
        for instruction in code:
            self.producers.note(instruction, _produced(instruction))
            self.consumers.note(instruction, _consumed(instruction))
        self.producers.close()
        self.consumers.close()
        self._table = table
        self.needs_of_consumer = cache(self._needs_of_consumer)
        self.needs_of_producer = cache(self._needs_of_producer)

    def _needs_of_consumer(self, consumer: int) -> npt.NDArray[np.int64]:
        """What the producers of its register need towards it, in the order of `producers.on`."""
        register = self.consumers.samples[consumer][1].register
        return np.array([self._need(p, consumer) for p in self.producers.on[register]], np.int64)

    def _needs_of_producer(self, producer: int) -> npt.NDArray[np.int64]:
        register = self.producers.samples[producer][1].register
        return np.array([self._need(producer, c) for c in self.consumers.on[register]], np.int64)

    def _need(self, p: int, c: int) -> int:
        """-1 for two that only read."""
        first, earlier, was_write = self.producers.samples[p]
        second, access, is_write = self.consumers.samples[c]
        if not was_write and not is_write:
            return -1
        hazard = Hazard.RAW if not is_write else Hazard.WAW if was_write else Hazard.WAR
        need = self._table.required(hazard, first, second, access.register, earlier.role, access.role)
        return HORIZON if need is None else need


def _produced(instruction: Instruction) -> Iterator[tuple[Access, bool]]:
    """Accesses after which others have to keep a distance, and whether they write."""
    if instruction.never_executes:
        return
    if not instruction.is_variable:
        yield from ((access, True) for access in instruction.defs)
    for access in instruction.uses:
        if not is_read_late(instruction, access.register):
            yield access, False


def _consumed(instruction: Instruction) -> Iterator[tuple[Access, bool]]:
    yield from ((access, False) for access in instruction.uses)
    yield from ((access, True) for access in instruction.defs)


def _overwritten(instruction: Instruction) -> Iterator[int]:
    """Registers whose earlier accesses nobody behind it meets."""
    if not instruction.is_conditional:
        yield from (access.register for access in instruction.defs)


class _Passage:
    """What a block does to what passes it: it adds its own accesses, hides some, and takes its time."""

    def __init__(self, length: int, hidden: set[int], own: dict[int, int], side: _Side) -> None:
        self.length = min(length, HORIZON)
        kinds = [side.on[register] for register in hidden if register in side.on]
        self.hidden = np.concatenate(kinds) if kinds else np.empty(0, np.int64)
        self.own = np.array(list(own), np.int64)
        self.nearness = np.array([_nearness(distance) for distance in own.values()], np.uint8)

    def through(self, near: _Near) -> _Near:
        result: _Near = np.where(near > self.length, near - np.uint8(self.length), near > 0).astype(np.uint8)
        result[self.hidden] = 0
        result[self.own] = np.maximum(result[self.own], self.nearness)
        return result


def _nearness(distance: int) -> int:
    return max(1, HORIZON + 1 - distance)


def _settled(flow: Flow, passages: Sequence[_Passage], kinds: int, is_forwards: bool) -> list[_Near]:
    """What reaches the start of each block (from behind: its end)."""
    near = [np.zeros(kinds, np.uint8) for _ in range(len(flow))]

    def leave(node: int) -> _Near:
        return passages[node].through(near[node]) if node < len(passages) else near[node]

    def enter(node: int, fact: _Near) -> bool:
        if np.all(fact <= near[node]):
            return False
        np.maximum(near[node], fact, out=near[node])
        return True

    (flow.forwards if is_forwards else flow.backwards)(leave, enter)
    return near


def _look_back(
    blocks: Sequence[Block], code: Sequence[Instruction], times: Sequence[int], kinds: _Kinds, flow: Flow,
    found: Boundaries,
) -> None:  # fmt: skip
    """For every consumer, what it may come behind."""
    producers, consumers = kinds.producers, kinds.consumers
    passages = []
    for block in blocks:
        length, own, hidden = block_length(block, code, times), dict[int, int](), set[int]()
        for i in range(block.end - 1, block.start - 1, -1):
            for register, kind in producers.of[i]:
                if register not in hidden:
                    own[kind] = min(own.get(kind, HORIZON), length - times[i])
            hidden.update(_overwritten(code[i]))
        passages.append(_Passage(length, hidden, own, producers))
    near = _settled(flow, passages, len(producers.numbers), is_forwards=True)
    for block in blocks:
        reached, hidden = near[block.number], set[int]()
        if not reached.any():
            continue
        for i in range(block.start, block.end):
            for register, kind in consumers.of[i]:
                if register not in hidden and register in producers.on:
                    met = reached[producers.on[register]]
                    most, is_close = _most(met, kinds.needs_of_consumer(kind), times[i])
                    if most >= 0:
                        found.head[i] = max(found.head[i], most)
                    if is_close:
                        found.waits_before.add(i)
            hidden.update(_overwritten(code[i]))


def _look_ahead(
    blocks: Sequence[Block], code: Sequence[Instruction], times: Sequence[int], kinds: _Kinds, flow: Flow,
    found: Boundaries,
) -> None:  # fmt: skip
    """For every producer, what may come behind it."""
    producers, consumers = kinds.producers, kinds.consumers
    passages = []
    for block in blocks:
        own, hidden = dict[int, int](), set[int]()
        for i in range(block.start, block.end):
            for register, kind in consumers.of[i]:
                if register not in hidden:
                    own[kind] = min(own.get(kind, HORIZON), times[i])
            hidden.update(_overwritten(code[i]))
        passages.append(_Passage(block_length(block, code, times), hidden, own, consumers))
    near = _settled(flow, passages, len(consumers.numbers), is_forwards=False)
    for block in blocks:
        reached, hidden = near[block.number], set[int]()
        if not reached.any():
            continue
        length = block_length(block, code, times)
        for i in range(block.end - 1, block.start - 1, -1):
            for register, kind in producers.of[i]:
                if register not in hidden and register in consumers.on:
                    met = reached[consumers.on[register]]
                    most, is_close = _most(met, kinds.needs_of_producer(kind), length - times[i])
                    if most >= 0:
                        found.tail[i] = max(found.tail[i], most)
                    if is_close:
                        found.waits_after.add(i)
            hidden.update(_overwritten(code[i]))


def _most(met: _Near, needs: npt.NDArray[np.int64], own: int) -> tuple[int, bool]:
    """The largest need towards anything met, -1 for none; and do stall counts alone fall short of one?"""
    most = int(np.where(met > 0, needs, -1).max())
    if most < 0 or own >= HORIZON:
        return most, False
    # Nearness 1 stands for any distance beyond the horizon, which no need reaches.
    close = (met > 1) & (HORIZON + 1 - met.astype(np.int64) + own < needs)
    return most, bool(close.any())


def is_pause(instruction: Instruction, wait_mask: int) -> bool:
    """May this instruction take longer than its predecessor's stall count says?"""
    return bool(wait_mask) or instruction.order in (Order.SYNC, Order.PRODUCT)
