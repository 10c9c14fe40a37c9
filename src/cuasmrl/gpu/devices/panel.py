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
from cuasmrl.gpu.timing.courses import Courses
from cuasmrl.schedule import Schedule

Ratios: TypeAlias = npt.NDArray[np.float64]
_MARGIN = 1.0
"""Standard errors behind the rival that are enough to give a schedule up."""
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
    ) -> None:
        """`noise` is how much conditions differ about a change, `least_noise` how much about one that makes
        no difference to most of them: standard deviations of the ratio. Two schedules between which `equal`
        conditions show no difference are equally fast.
        """
        self.conditions = tuple(conditions)
        self.noise = noise
        self.least_noise = least_noise
        self.equal = equal
        self.replays = 0
        self._lock = Lock()
        self._ratios: OrderedDict[bytes, list[float]] = OrderedDict()
        """Of schedules seen lately, by their key; NaN under conditions that were not needed."""
        self._tables: dict[int, tuple[bytes, Int]] = {}
        self._original = original
        self._starts = [self._cycles(k, original) for k in range(len(self.conditions))]
        self.start = fmean(self._starts)
        """Cycles of the original."""
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
        with self._lock:
            self._ratios.clear()
            self._ratios[self._original.key] = [1.0] * len(self.conditions)

    def known(self, schedule: Schedule) -> list[float]:
        """Its ratios as far as they were needed, NaN under the other conditions."""
        return self._remembered(schedule)

    def learn(self, schedule: Schedule, ratios: Sequence[float]) -> None:
        """What another panel of the same conditions knows of it."""
        found = self._remembered(schedule)
        for k, ratio in enumerate(ratios):
            if not isnan(ratio):
                found[k] = ratio

    def _race(self, schedule: Schedule, rival: Rival, withdrawn: Withdrawn | None) -> float:
        new, old = self._remembered(schedule), self._remembered(rival.schedule)
        count, total, squares = len(self.conditions), 0.0, 0.0
        for k in range(count):
            if withdrawn is not None and withdrawn.is_set():
                break
            difference = self._ratio(new, k, schedule) - self._ratio(old, k, rival.schedule)
            total += difference
            squares += difference * difference
            done = k + 1
            if not squares and done == self.equal:
                return rival.time
            behind = total / done
            if behind > 0 and done < count and behind > _MARGIN * self._error(done, behind, squares):
                return rival.time + self.start * behind
        return self.start * (sum(new) / count)

    def _error(self, done: int, behind: float, squares: float) -> float:
        """Of the mean over the conditions so far, as a guess of that over all.

        Their variance is what they show, with a guess that weighs as much as one of them: about a small
        difference conditions differ little.
        """
        guess = min(self.noise, self.least_noise + _SHARE * behind)
        variance = (guess * guess + max(0.0, squares - done * behind * behind)) / done
        return sqrt(variance * (1 / done - 1 / len(self.conditions)))

    def _remembered(self, schedule: Schedule) -> list[float]:
        """What is known of a schedule; it is filled in by whoever needs more."""
        with self._lock:
            found = self._ratios.get(schedule.key)
            if found is None:
                found = self._ratios[schedule.key] = [nan] * len(self.conditions)
                if len(self._ratios) > _REMEMBERED:
                    self._ratios.popitem(last=False)
            else:
                self._ratios.move_to_end(schedule.key)
            return found

    def _ratio(self, found: list[float], k: int, schedule: Schedule) -> float:
        if isnan(found[k]):
            found[k] = self._cycles(k, schedule) / self._starts[k]
        return found[k]

    def _cycles(self, k: int, schedule: Schedule) -> int:
        with self._lock:
            self.replays += 1
        condition = self.conditions[k]
        return condition.cycles(self._table(condition.model, schedule))

    def _table(self, model: Model, schedule: Schedule) -> Int:
        """Seeds of one chip share it."""
        key, table = self._tables.get(id(model), (b"", None))
        if table is None or key != schedule.key:
            table = model.table(schedule)
            self._tables[id(model)] = schedule.key, table
        return table
