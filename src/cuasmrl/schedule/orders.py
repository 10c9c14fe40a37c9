"""What orders instructions without asking for a distance: memory, synchronisation, padding, pauses.

Each rule goes through a block once and says of every instruction which positions before it it has to stay
behind, as the bits of an integer: one operation on such sets costs the same for few members and for many.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Protocol

from cuasmrl.binary.sass import Instruction, Order
from cuasmrl.schedule.boundaries import Boundaries, is_pause
from cuasmrl.schedule.graph import Graph, Reason, Weave
from cuasmrl.schedule.memory import MemoryOrder, changes_tiles


class Rule(Protocol):
    """One of the rules; positions come in order, each once."""

    @property
    def shelters(self) -> Sequence[tuple[int, int]]:
        """Of the last instruction: wait bits with which it may leave the shelter of waits at positions."""

    def step(self, q: int, instruction: Instruction, rows: dict[Reason, int]) -> None:
        """Add what the instruction at this position has to stay behind."""


def weave(graph: Graph, order: Sequence[int], code: Sequence[Instruction], *rules: Rule) -> None:
    """Give a graph that has all its distances the order that these rules ask for."""
    woven = Weave(graph, order, code)
    for q, i in enumerate(order):
        rows: dict[Reason, int] = {}
        for rule in rules:
            rule.step(q, code[i], rows)
        woven.tie(rows, [entry for rule in rules for entry in rule.shelters])
    woven.close()


def put(rows: dict[Reason, int], reason: Reason, row: int) -> None:
    if row:
        rows[reason] = rows.get(reason, 0) | row


class OrderOfMemory:
    """Conflicting accesses, and whatever synchronises them."""

    shelters: Sequence[tuple[int, int]] = ()

    def __init__(self) -> None:
        self._memory = MemoryOrder()
        self._last_sync = 0
        self._last_product = 0
        self._met_by_products = 0
        """Accesses since the last synchronisation that products of a warpgroup stay behind."""

    def step(self, q: int, instruction: Instruction, rows: dict[Reason, int]) -> None:
        if instruction.order is Order.SYNC:
            put(rows, Reason.SYNC, self._memory.met | self._last_sync | self._last_product)
            self._memory.forget()
            self._last_sync = 1 << q
            self._last_product = self._met_by_products = 0
        elif instruction.order is Order.PRODUCT:
            put(rows, Reason.SYNC, self._last_sync | self._last_product | self._met_by_products)
            self._last_product = 1 << q
            self._met_by_products = 0
        elif instruction.order is Order.MEMORY:
            put(rows, Reason.SYNC, self._last_sync)
            if changes_tiles(instruction):
                put(rows, Reason.SYNC, self._last_product)
                self._met_by_products |= 1 << q
        put(rows, Reason.MEMORY, self._memory.enter(instruction, q))


_PADDED_SLOTS = 4
"""Padding fills up to four slots of the shared-memory queue, some of them with real loads."""


class Padding:
    """In front of a padded instruction the shared-memory queue keeps its order, dummies included."""

    shelters: Sequence[tuple[int, int]] = ()

    def __init__(self, order: Sequence[int], code: Sequence[Instruction]) -> None:
        queue = [i for i in order if _is_in_queue(code[i])]
        self._dummies = {i for i in queue if code[i].is_dummy_load}
        self._behind: dict[int, set[int]] = {}
        """Instruction → those of its window right before it."""
        self._behind_all: set[int] = set()
        """First of a window: it stays behind all of the queue."""
        for k, dummy in enumerate(queue):
            if dummy in self._dummies:
                window = queue[max(0, k + 1 - _PADDED_SLOTS) : k + 1]
                for first, second in pairwise(window):
                    self._behind.setdefault(second, set()).add(first)
                self._behind_all.add(window[0])
        self._position: dict[int, int] = {}
        self._queue = self._padding = 0

    def step(self, q: int, instruction: Instruction, rows: dict[Reason, int]) -> None:
        if not self._dummies or not _is_in_queue(instruction):
            return
        i, bit = instruction.index, 1 << q
        put(rows, Reason.PADDING, self._padding | (self._queue if i in self._behind_all else 0))
        for first in self._behind.get(i, ()):
            put(rows, Reason.PADDING, 1 << self._position[first])
        self._position[i] = q
        self._queue |= bit
        if i in self._dummies:
            self._padding |= bit


def _is_in_queue(instruction: Instruction) -> bool:
    return instruction.declaration is not None and instruction.declaration.queue == "shared"


class Pauses:
    """Pairs across a border that count on a wait: the wait stays between them and the border."""

    shelters: Sequence[tuple[int, int]] = ()

    def __init__(self, boundaries: Boundaries) -> None:
        self._needs = boundaries
        self._pauses, self._relying = _Passed(), _Passed()

    def step(self, q: int, instruction: Instruction, rows: dict[Reason, int]) -> None:
        i = instruction.index
        if is_pause(instruction, instruction.control.wait_mask):
            put(rows, Reason.PAUSE, self._relying.ahead_of(i))
        if i in self._needs.waits_before:
            put(rows, Reason.PAUSE, self._pauses.ahead_of(i))
        if is_pause(instruction, instruction.control.wait_mask):
            self._pauses.add(i, q)
        if i in self._needs.waits_after:
            self._relying.add(i, q)


class _Passed:
    """Instructions that an order has passed, for those that stand behind them in the code as well."""

    def __init__(self) -> None:
        self._last = -1
        self._all = 0
        self._each: list[tuple[int, int]] = []

    def add(self, i: int, q: int) -> None:
        self._last = max(self._last, i)
        self._all |= 1 << q
        self._each.append((i, q))

    def ahead_of(self, i: int) -> int:
        if self._last < i:
            return self._all
        return sum(1 << q for other, q in self._each if other < i)
