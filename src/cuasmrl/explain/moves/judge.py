"""Schedules judged on equal terms: under seeds that nobody else uses, and within their noise."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from statistics import mean, stdev
from typing import TypeAlias

from cuasmrl.errors import CuasmrlError
from cuasmrl.gpu.devices import Timer, VirtualTimer
from cuasmrl.gpu.timing import Model
from cuasmrl.schedule import Schedule

SEEDS = tuple(range(101, 107))
_REPEATS = 6
_NEGLIGIBLE = 0.05
_FAR = 3
"""Standard deviations between two seeds that no other seed will make up for."""

Samples: TypeAlias = tuple[float, ...]
"""Times of one schedule; those of two schedules belong together pair by pair."""
Sampler: TypeAlias = Callable[[Schedule], Iterator[float]]
"""Gives them one by one, as each costs a replay."""


class OutOfTimeError(CuasmrlError):
    """A limit that somebody has set is reached."""


class Limit:
    """Seconds that an explanation may take; None for as many as it needs."""

    def __init__(self, seconds: float | None = None) -> None:
        self.seconds = seconds
        self._end = math.inf if seconds is None else time.monotonic() + seconds

    def check(self) -> None:
        if time.monotonic() > self._end:
            raise OutOfTimeError(f"the moves that mattered were not found within {self.seconds:g} s")


class Judge:
    """Times schedules once each. One is as good as another if it is not slower beyond the noise."""

    def __init__(
        self, sample: Sampler, original: Schedule, winner: Schedule, limit: Limit | None = None
    ) -> None:
        self._sample = sample
        self._limit = limit or Limit()
        self._known: dict[bytes, Samples] = {}
        self.original = original
        self.winner = winner
        gains = [a - b for a, b in zip(self.samples(original), self.samples(winner), strict=True)]
        self._spread = stdev(gains) if len(gains) > 1 else 0.0
        self.tolerance = max(self._spread / math.sqrt(len(gains)), _NEGLIGIBLE * mean(gains))
        """The standard error of what the winner gains, as it is not known better than that; or a small part
        of the gain, as what earns so little is not worth telling."""

    def samples(self, schedule: Schedule) -> Samples:
        if schedule.key not in self._known:
            self._limit.check()
            self._known[schedule.key] = tuple(self._sample(schedule))
        return self._known[schedule.key]

    def time(self, schedule: Schedule) -> float:
        return mean(self.samples(schedule))

    @property
    def gain(self) -> float:
        return self.time(self.original) - self.time(self.winner)

    def is_as_good(self, schedule: Schedule) -> bool:
        """Who is far behind under the first seed is not looked at any longer."""
        if schedule.key not in self._known:
            self._limit.check()
            first = next(self._sample(schedule))
            if first > self.samples(self.winner)[0] + self.tolerance + _FAR * self._spread:
                return False
        return self.time(schedule) <= self.time(self.winner) + self.tolerance


def sampler(timer: Timer, seeds: Sequence[int] = SEEDS) -> Sampler:
    """A virtual GPU is asked under each seed, any other device several times."""
    if isinstance(timer, VirtualTimer):
        return of_model(timer.part, seeds, timer.part.resident)
    return lambda schedule: (timer.time(schedule) for _ in range(_REPEATS))


def of_model(model: Model, seeds: Sequence[int] = SEEDS, blocks: int | None = None) -> Sampler:
    def sample(schedule: Schedule) -> Iterator[float]:
        table = model.table(schedule)
        return (float(model.cycles(table, seed, blocks)) for seed in seeds)

    return sample
