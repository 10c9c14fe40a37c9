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
from cuasmrl.gpu.timing.records import FAR, Job, Row
from cuasmrl.gpu.timing.sheet import NOTHING, Sheet, new_sheet

_REMEMBERED = 4
"""Courses: the rival of a climb, and candidates that were not given up since, on all threads."""
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
    """0 if it was given up."""
    looks: Int
    """By position: when a warp first came there; FAR for never."""
    passes: Int
    """When visits of blocks ended."""
    states: tuple[Int, ...]
    """At each mark that was reached."""
    behind: int
    """By so many cycles it was behind its rival when it was given up; 0 if it was not."""


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
        return self.follow(table).cycles

    def follow(self, table: Int, rival: Int = NOTHING, allowed: int = 0) -> Course:
        """A replay; with the passes of a rival it is given up when it falls behind by more cycles than are
        allowed."""
        marks = self._marks
        if marks is None:
            course = self._replayed(table, None, 0, NOTHING, rival, allowed)
            if not course.behind:
                self._marks = marks_of(course.looks, self.model.executions)
            return course
        base, shared = self._base(table, marks)
        course = self._replayed(table, base, shared, marks, rival, allowed)
        if not course.behind:
            with self._lock:
                self._known = [*self._known, course][-_REMEMBERED:]
        return course

    def behind(self, passes: Int, rival: Int, allowed: int) -> int:
        """By how much a replay that was finished would have been behind a rival when it was given up."""
        patience = self.model.resident * int(self.model.work[Job.WARPS_PER_BLOCK])
        return behind_when_given_up(passes, rival, allowed, patience)

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

    def _replayed(
        self, table: Int, base: Course | None, shared: int, marks: Int, rival: Int, allowed: int
    ) -> Course:
        states: tuple[Int, ...] = ()
        visits = self.model.visits(self.blocks) if base is None else len(base.passes)
        sheet = new_sheet(len(table) // _ROW_WIDTH, visits, marks[shared:], rival, allowed)
        if base is not None:
            states = base.states[:shared]
            take_over(sheet, base.looks, base.passes, int(marks[shared - 1]))
        cycles, kept, behind = self.model.resumed(
            table, self.seed, self.blocks, sheet, states[-1] if states else None
        )
        return Course(table, cycles, sheet.looks, sheet.passes, (*states, *kept), behind)


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
def behind_when_given_up(passes: Int, rival: Int, allowed: int, patience: int) -> int:
    """0 if it is never given up."""
    late = 0
    for number in range(len(rival)):
        behind: int = passes[number] - rival[number]
        late = late + 1 if behind > allowed else 0
        if late >= patience:
            return behind
    return 0


@compiled
def take_over(sheet: Sheet, looks: Int, passes: Int, mark: int) -> None:
    """What another replay had noted before a mark."""
    for row in range(len(looks)):
        if looks[row] < mark:
            sheet.looks[row] = looks[row]
    for number in range(len(passes)):
        if passes[number] >= mark:
            break
        sheet.passes[number] = passes[number]
