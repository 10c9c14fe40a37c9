"""The conditions that a search scores schedules under, and how few of them decide."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan, sqrt
from statistics import fmean
from threading import Lock
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from cuasmrl.gpu.devices.device import Rival
from cuasmrl.gpu.timing import Model
from cuasmrl.gpu.timing.code import Int
from cuasmrl.schedule import Schedule

Ratios: TypeAlias = npt.NDArray[np.float64]
_EQUAL = 3
"""Conditions without any difference that are enough to call two schedules equally fast. With one or two,
climbs drift to where other chips are slower."""
_MARGIN = 2.0
"""Standard errors behind the rival that are enough to give a schedule up."""
_REMEMBERED = 64


@dataclass(frozen=True, eq=False)
class Condition:
    """A chip and a seed of the latency jitter."""

    model: Model
    seed: int
    blocks: int

    def cycles(self, table: Int) -> int:
        return self.model.cycles(table, self.seed, self.blocks)


class Panel:
    """A schedule's time is that of the original, times the mean ratio of the two over the conditions.

    A search mostly asks whether a schedule beats another one, its rival. Both are replayed under the same
    conditions, so what differs is the schedule; as soon as it is clear that the rival stays ahead, or that
    both are alike, the rest of the conditions is left out. The answer depends on the two and on nothing
    else, so a search that is continued sees what it would have seen.
    """

    def __init__(self, conditions: Sequence[Condition], original: Schedule, noise: float = 0.0) -> None:
        """`noise` is how much conditions differ about a small change: a standard deviation of the ratio."""
        self.conditions = tuple(conditions)
        self.noise = noise
        self.replays = 0
        self._lock = Lock()
        self._ratios: OrderedDict[bytes, Ratios] = OrderedDict()
        """Of schedules seen lately, by their key; NaN under conditions that were not needed."""
        self._tables: dict[int, tuple[bytes, Int]] = {}
        self._starts = np.array([self._cycles(k, original) for k in range(len(self.conditions))])
        self.start = float(self._starts.mean())
        """Cycles of the original."""
        self._ratios[original.key] = np.ones(len(self.conditions))

    def time(self, schedule: Schedule, rival: Rival | None = None) -> float:
        """In cycles; a rough figure, above the rival's, if the rival is clearly ahead. Threads may ask."""
        if rival is not None:
            return self._race(schedule, rival)
        return self.start * float(self.ratios(schedule).mean())

    def ratios(self, schedule: Schedule) -> Ratios:
        """Under every condition, relative to the original."""
        found = self._remembered(schedule)
        for k in range(len(self.conditions)):
            self._ratio(found, k, schedule)
        return found

    def _race(self, schedule: Schedule, rival: Rival) -> float:
        new, old = self._remembered(schedule), self._remembered(rival.schedule)
        differences: list[float] = []
        for k in range(len(self.conditions)):
            differences.append(self._ratio(new, k, schedule) - self._ratio(old, k, rival.schedule))
            if len(differences) == _EQUAL and not any(differences):
                return rival.time
            behind = fmean(differences)
            if k + 1 < len(self.conditions) and behind > _MARGIN * self._error(differences):
                return rival.time + self.start * behind
        return self.start * float(new.mean())

    def _error(self, differences: Sequence[float]) -> float:
        """Of the mean over the conditions so far, as a guess of that over all: by how much these differ, and
        in any case by no more than conditions do about other small changes."""
        done, noise = len(differences), self.noise
        if done > 1:
            noise = min(noise, float(np.std(differences, ddof=1)))
        return noise * sqrt(1 / done - 1 / len(self.conditions))

    def _remembered(self, schedule: Schedule) -> Ratios:
        """What is known of a schedule; it is filled in by whoever needs more."""
        with self._lock:
            found = self._ratios.get(schedule.key)
            if found is None:
                found = self._ratios[schedule.key] = np.full(len(self.conditions), np.nan)
                if len(self._ratios) > _REMEMBERED:
                    self._ratios.popitem(last=False)
            else:
                self._ratios.move_to_end(schedule.key)
            return found

    def _ratio(self, found: Ratios, k: int, schedule: Schedule) -> float:
        if isnan(found[k]):
            found[k] = self._cycles(k, schedule) / self._starts[k]
        return float(found[k])

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
