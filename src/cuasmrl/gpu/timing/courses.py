"""Replays of similar schedules, each of which sets out from where it leaves the way of an earlier one.

Until a warp first comes to a position where two schedules differ, their replays are the same, cycle by cycle.
A search changes a few instructions of a loop, so all that happens before the first iteration comes to them
need not be replayed. A replay keeps copies of its state at some marks; it notes when each position was
first come to. The next schedule begins with the last copy that was made before anybody came to a difference.
"""

from __future__ import annotations

from dataclasses import dataclass
from threading import Lock

import numpy as np

from cuasmrl.compiled import compiled
from cuasmrl.gpu.timing.code import Int
from cuasmrl.gpu.timing.model import Model
from cuasmrl.gpu.timing.records import FAR, Row

_REMEMBERED = 4
"""Courses: the rival of a climb, and candidates that were replayed since on all threads."""
_SHARES = (0.0, 0.25, 0.5, 0.75)
"""Of what is executed often: marks stand where warps have first come to so much of it."""
_OFTEN = 0.5
"""Of the most executions of a position."""
_ROW_WIDTH = int(Row.WIDTH)


@dataclass(frozen=True, eq=False)
class Course:
    """The replay of a schedule."""

    table: Int
    cycles: int
    looks: Int
    """By position: when a warp first came there; FAR for never."""
    states: tuple[Int, ...]
    """At each mark that was reached."""


class Courses:
    """Replays of one kernel on one chip under one seed. Threads may ask; who asks when makes no
    difference."""

    def __init__(self, model: Model, seed: int, blocks: int) -> None:
        self.model = model
        self.seed = seed
        self.blocks = blocks
        self._lock = Lock()
        self._marks: Int | None = None
        self._known: list[Course] = []
        """The one that was made or set out from last stands last."""

    def cycles(self, table: Int) -> int:
        """As `Model.cycles`."""
        marks = self._marks
        if marks is None:
            course = self._replayed(table, None, 0, np.zeros(0, np.int64))
            self._marks = marks_of(course.looks, self.model.executions)
            return course.cycles
        base, shared = self._base(table, marks)
        course = self._replayed(table, base, shared, marks)
        with self._lock:
            self._known = [*self._known, course][-_REMEMBERED:]
        return course.cycles

    def _base(self, table: Int, marks: Int) -> tuple[Course | None, int]:
        """The course that shares most with a schedule, and the marks up to which it does."""
        base, shared = None, 0
        for course in reversed(self._known):
            passed = marks_passed(table, course.table, course.looks, marks[: len(course.states)])
            if passed > shared:
                base, shared = course, passed
        if base is not None:
            with self._lock:
                self._known = [*(course for course in self._known if course is not base), base]
        return base, shared

    def _replayed(self, table: Int, base: Course | None, shared: int, marks: Int) -> Course:
        states: tuple[Int, ...] = ()
        looks = np.full(len(table) // _ROW_WIDTH, FAR, np.int64)
        if base is not None:
            states = base.states[:shared]
            keep_looks(looks, base.looks, int(marks[shared - 1]))
        cycles, kept = self.model.resumed(
            table, self.seed, self.blocks, looks, marks[shared:], states[-1] if states else None
        )
        return Course(table, cycles, looks, (*states, *kept))


def marks_of(looks: Int, executions: Int) -> Int:
    """Cycles at which it is worth keeping a state: changes are made mostly in what is executed often."""
    chosen = np.sort(looks[(executions >= _OFTEN * executions.max()) & (looks < FAR)])
    return np.unique([chosen[int(share * len(chosen))] for share in _SHARES])


@compiled
def marks_passed(table: Int, other: Int, looks: Int, marks: Int) -> int:
    """Marks before which no warp of another schedule's replay comes to a difference."""
    first = FAR
    for row in range(len(table) // _ROW_WIDTH):
        if looks[row] < first:
            p = row * _ROW_WIDTH
            # What decides all others.
            differs = table[p + Row.ORIGINAL] ^ other[p + Row.ORIGINAL]
            differs |= (table[p + Row.STALL] ^ other[p + Row.STALL]) | (
                table[p + Row.YIELDS] ^ other[p + Row.YIELDS]
            )
            differs |= (table[p + Row.WAIT] ^ other[p + Row.WAIT]) | (
                table[p + Row.REUSE] ^ other[p + Row.REUSE]
            )
            differs |= (table[p + Row.WRITE_BOARD] ^ other[p + Row.WRITE_BOARD]) | (
                table[p + Row.READ_BOARD] ^ other[p + Row.READ_BOARD]
            )
            if differs:
                first = looks[row]
    passed = 0
    while passed < len(marks) and marks[passed] <= first:
        passed += 1
    return passed


@compiled
def keep_looks(looks: Int, others: Int, mark: int) -> None:
    """What another replay had come to before a mark."""
    for row in range(len(looks)):
        if others[row] < mark:
            looks[row] = others[row]
