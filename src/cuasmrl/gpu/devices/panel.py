"""The conditions that a search scores schedules under, and how few of them decide."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isnan, nan, sqrt
from statistics import fmean
from threading import Lock
from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from cuasmrl.gpu.devices.device import Rival
from cuasmrl.gpu.timing import Model
from cuasmrl.gpu.timing.code import Int
from cuasmrl.gpu.timing.courses import Course, Courses
from cuasmrl.gpu.timing.sheet import NOTHING
from cuasmrl.schedule import Schedule

Ratios: TypeAlias = npt.NDArray[np.float64]
_EARLY = 2.0
"""Times as much as decides a race at its end: who is behind by that, warp by warp, is given up before."""
_SHARE = 0.25
"""Of a difference that has been seen once: how much conditions differ about it at least."""
_REMEMBERED = 64


@dataclass(frozen=True, eq=False)
class Condition:
    """A chip and a seed of the latency jitter."""

    model: Model
    seed: int
    blocks: int

    @cached_property
    def _courses(self) -> Courses:
        return Courses(self.model, self.seed, self.blocks)

    def cycles(self, table: Int) -> int:
        return self._courses.cycles(table)

    def follow(self, table: Int, rival: Int, allowed: int) -> Course:
        """See `Courses.follow`."""
        return self._courses.follow(table, rival, allowed)

    def behind(self, passes: Int, rival: Int, allowed: int) -> int:
        """See `Courses.behind`."""
        return self._courses.behind(passes, rival, allowed)


@dataclass(frozen=True, eq=False)
class Seen:
    """What is known of a schedule."""

    ratios: list[float]
    """To the original, by condition; NaN for those that were not needed."""
    passes: list[Int]
    """When visits of blocks ended, under the same conditions."""


class Withdrawn(Protocol):
    """Whether whoever asked has lost interest."""

    def is_set(self) -> bool: ...


class Panel:
    """A schedule's time is that of the original, times the mean ratio of the two over the conditions.

    A search mostly asks whether a schedule beats another one, its rival. Both are replayed under the same
    conditions, so what differs is the schedule; as soon as it is clear that the rival stays ahead, or that
    both are alike, the rest of the conditions is left out. The answer depends on the two and on nothing
    else, so a search that is continued sees what it would have seen.
    """

    def __init__(
        self,
        conditions: Sequence[Condition],
        original: Schedule,
        noise: float = 0.0,
        least_noise: float = 0.0,
        equal: int = 4,
        margin: float = 1.0,
    ) -> None:
        """`noise` is how much conditions differ about a change, `least_noise` how much about one that makes
        no difference to most of them: standard deviations of the ratio. Two schedules between which `equal`
        conditions show no difference are equally fast. `margin` standard errors behind the rival are enough
        to give a schedule up.
        """
        self.conditions = tuple(conditions)
        self.noise = noise
        self.least_noise = least_noise
        self.equal = equal
        self.margin = margin
        self.replays = 0
        self._lock = Lock()
        self._seen: OrderedDict[bytes, Seen] = OrderedDict()
        """Schedules seen lately, by their key."""
        self._tables: dict[int, tuple[bytes, Int]] = {}
        self._original = original
        self._courses = [self._course(k, original) for k in range(len(self.conditions))]
        self._starts = [course.cycles for course in self._courses]
        self.start = fmean(self._starts)
        """Cycles of the original."""
        # Several blocks on an SM hide each other's delays: who is behind on the way may not be at the end.
        is_steady = all(condition.blocks == 1 for condition in self.conditions)
        self._early = _EARLY * self._decisive() if is_steady else None
        self.forget()

    def time(
        self, schedule: Schedule, rival: Rival | None = None, withdrawn: Withdrawn | None = None
    ) -> float:
        """In cycles; a rough figure, above the rival's, if the rival is clearly ahead. Threads may ask; who
        does not want the answer any more says so."""
        if rival is not None:
            return self._race(schedule, rival, withdrawn)
        return self.start * (sum(self.ratios(schedule)) / len(self.conditions))

    def ratios(self, schedule: Schedule) -> list[float]:
        """Under every condition, relative to the original."""
        found = self._remembered(schedule)
        return [self._ratio(found, k, schedule) for k in range(len(self.conditions))]

    def forget(self) -> None:
        """All that has been replayed but the original."""
        of_original = Seen([1.0] * len(self.conditions), [course.passes for course in self._courses])
        with self._lock:
            self._seen.clear()
            self._seen[self._original.key] = of_original

    def known(self, schedule: Schedule) -> list[float]:
        """Its ratios as far as they were needed, NaN under the other conditions; behind them, where that may
        decide a race, when visits of blocks ended under each."""
        found = self._remembered(schedule)
        told = list(found.ratios)
        if self._early is not None:
            for passes, course in zip(found.passes, self._courses, strict=True):
                told += passes.tolist() if len(passes) else [nan] * len(course.passes)
        return told

    def learn(self, schedule: Schedule, told: Sequence[float]) -> None:
        """What another panel of the same conditions knows of it."""
        found = self._remembered(schedule)
        at = len(self.conditions)
        for k, course in enumerate(self._courses):
            end = at + len(course.passes)
            if not isnan(told[k]):
                found.passes[k] = np.array(told[at:end], np.int64)
                found.ratios[k] = told[k]
            at = end

    def _decisive(self) -> float:
        """How far behind is enough under the first condition."""
        scale = self.margin * sqrt(1 - 1 / len(self.conditions))
        return scale * min(self.noise, self.least_noise / max(1 - scale * _SHARE, _SHARE))

    def _race(self, schedule: Schedule, rival: Rival, withdrawn: Withdrawn | None) -> float:
        new, old = self._remembered(schedule), self._remembered(rival.schedule)
        count, total, squares = len(self.conditions), 0.0, 0.0
        for k in range(count):
            if withdrawn is not None and withdrawn.is_set():
                break
            standing = self._ratio(old, k, rival.schedule)
            behind = self._early_loss(new, k, schedule, old.passes[k], total, squares)
            if behind:
                return rival.time + self.start * behind
            difference = self._ratio(new, k, schedule) - standing
            total += difference
            squares += difference * difference
            done = k + 1
            if not squares and done == self.equal:
                return rival.time
            if self._is_lost(done, total, squares):
                return rival.time + self.start * total / done
        return self.start * (sum(new.ratios) / count)

    def _is_lost(self, done: int, total: float, squares: float) -> bool:
        """By the sum of the differences under so many conditions, and of their squares."""
        behind = total / done
        is_open = done < len(self.conditions)
        return behind > 0 and is_open and behind > self.margin * self._error(done, behind, squares)

    def _early_loss(
        self, new: Seen, k: int, schedule: Schedule, rival: Int, total: float, squares: float
    ) -> float:
        """By how much a schedule was behind when its replay was given up; 0 if it was not."""
        if self._early is None:
            return 0.0
        early = self._early + max(0.0, -total)
        if not self._is_lost(k + 1, total + early, squares + early * early):
            return 0.0
        allowed = int(early * self._starts[k])
        if not isnan(new.ratios[k]):
            # Replayed before, against another rival: the answer must not depend on that.
            return self.conditions[k].behind(new.passes[k], rival, allowed) / self._starts[k]
        course = self._course(k, schedule, rival, allowed)
        if not course.behind:
            self._enter(new, k, course)
        return course.behind / self._starts[k]

    def _error(self, done: int, behind: float, squares: float) -> float:
        """Of the mean over the conditions so far, as a guess of that over all.

        Their variance is what they show, with a guess that weighs as much as one of them: about a small
        difference conditions differ little.
        """
        guess = min(self.noise, self.least_noise + _SHARE * behind)
        variance = (guess * guess + max(0.0, squares - done * behind * behind)) / done
        return sqrt(variance * (1 / done - 1 / len(self.conditions)))

    def _remembered(self, schedule: Schedule) -> Seen:
        """What is known of a schedule; it is filled in by whoever needs more."""
        with self._lock:
            found = self._seen.get(schedule.key)
            if found is None:
                count = len(self.conditions)
                found = self._seen[schedule.key] = Seen([nan] * count, [NOTHING] * count)
                if len(self._seen) > _REMEMBERED:
                    self._seen.popitem(last=False)
            else:
                self._seen.move_to_end(schedule.key)
            return found

    def _ratio(self, found: Seen, k: int, schedule: Schedule) -> float:
        if isnan(found.ratios[k]):
            self._enter(found, k, self._course(k, schedule))
        return found.ratios[k]

    def _enter(self, found: Seen, k: int, course: Course) -> None:
        # The ratio last: who finds it may take the passes too.
        found.passes[k] = course.passes
        found.ratios[k] = course.cycles / self._starts[k]

    def _course(self, k: int, schedule: Schedule, rival: Int = NOTHING, allowed: int = 0) -> Course:
        with self._lock:
            self.replays += 1
        condition = self.conditions[k]
        return condition.follow(self._table(condition.model, schedule), rival, allowed)

    def _table(self, model: Model, schedule: Schedule) -> Int:
        """Seeds of one chip share it."""
        key, table = self._tables.get(id(model), (b"", None))
        if table is None or key != schedule.key:
            table = model.table(schedule)
            self._tables[id(model)] = schedule.key, table
        return table
