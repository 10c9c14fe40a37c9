"""Waits that pass the time between two instructions, and whether a candidate still has them."""

from bisect import bisect_right
from functools import cached_property
from itertools import chain as concatenated

import numpy as np

from cuasmrl.binary.sass import Order
from cuasmrl.checker.flow import Block
from cuasmrl.checker.program import Arrangement, Program


class Waits:
    """Instructions of the original that may pass time by waiting: what for, and who raised that before."""

    def __init__(self, program: Program, original: Arrangement):
        self.program, self.original = program, original
        self.boards: dict[int, tuple[tuple[int, int], ...]] = {}
        self.raised_by: dict[int, tuple[tuple[int, int], ...]] = {}
        """By waiter: those in its block that raised what it waits for, as (list, how many of its members)."""
        self.lists: list[list[int]] = []
        for block in program.blocks:
            self._scan(block)
        self.waiters = sorted(self.boards)
        marks = np.zeros(len(program.instructions) + 1, dtype=np.int64)
        marks[self.waiters] = 1
        self.passed = np.cumsum(marks)
        """Per instruction: waiters up to it."""

    def _scan(self, block: Block) -> None:
        raised: dict[int, int] = {}
        for i in range(block.start, block.end):
            waited = self.original.waits[i]
            if waited or self.program.instructions[i].order in (Order.SYNC, Order.PRODUCT):
                self.boards[i] = waited
                known = {raised[board] for board, _ in waited if board in raised}
                self.raised_by[i] = tuple((number, len(self.lists[number])) for number in known)
            for board, count in waited:
                if count == 0:
                    raised.pop(board, None)
            for board in self.original.controls[i].sets:
                if board not in raised:
                    raised[board] = len(self.lists)
                    self.lists.append([])
                self.lists[raised[board]].append(i)

    def between(self, after: int, until: int) -> list[int]:
        return self.waiters[bisect_right(self.waiters, after) : bisect_right(self.waiters, until)]


class Losses:
    """The waits of the original, looked for in a candidate."""

    def __init__(self, waits: Waits, candidate: Arrangement):
        self._waits, self._candidate = waits, candidate
        self._before = waits.original.start
        self._behind: dict[int, bool] = {}
        self._ahead: dict[int, bool] = {}

    @cached_property
    def _drifts(self) -> tuple[list[int], list[int]]:
        """Per member of a list: the least that it or one before it moved, in cycles; where lists begin."""
        lists = self._waits.lists
        members = np.array(list(concatenated.from_iterable(lists)), dtype=np.int64)
        lengths = np.array([len(inside) for inside in lists], dtype=np.int64)
        drift = self._candidate.starts[members] - self._waits.original.starts[members]
        # Lists are kept apart by an amount that no drift reaches.
        apart = np.repeat(np.arange(len(lists)), lengths) * (32 * (len(self._before) + 1))
        least = np.minimum.accumulate(drift - apart) + apart if len(members) else drift
        return least.tolist(), (np.cumsum(lengths) - lengths).tolist()

    def _drift(self, waiter: int) -> int | None:
        """How much earlier (below 0) the first of those it waits for was issued than in the original."""
        least, begins = self._drifts
        found = [least[begins[number] + count - 1] for number, count in self._waits.raised_by[waiter]]
        return min(found, default=None)

    def between(self, after: int, until: int, producer: int | None, consumer: int | None) -> bool:
        """Does a wait behind `after`, up to `until`, no longer pass the time it passed between the two?

        It does if it still stands between them, waits for the same scoreboards, and what it waits for was
        issued no earlier, seen from the producer (or from the head of the block, if that was before).
        """
        candidate = self._candidate
        position, start = candidate.position, candidate.start
        moved = 0 if producer is None else start[producer] - self._before[producer]
        for w in self._waits.between(after, until):
            if producer is not None and position[w] < position[producer]:
                return True
            if consumer is not None and position[w] > position[consumer]:
                return True
            boards, now = self._waits.boards[w], candidate.waits[w]
            if boards != now and not set(boards) <= set(now):
                return True
            drift = self._drift(w)
            if drift is not None and drift < moved:
                return True
        return False

    def behind(self, producer: int, end: int) -> bool:
        """Between a producer and the end of its block."""
        known = self._behind.get(producer)
        if known is None:
            known = self._behind[producer] = self.between(producer, end - 1, producer, None)
        return known

    def ahead(self, head: int, consumer: int) -> bool:
        """Between the head of a block and a consumer in it."""
        known = self._ahead.get(consumer)
        if known is None:
            known = self._ahead[consumer] = self.between(head - 1, consumer, None, consumer)
        return known
