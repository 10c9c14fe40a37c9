"""Replays of one schedule under several seeds, from which all that is told of it is read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from cuasmrl.gpu.devices.objective import UNSEEN_SEEDS
from cuasmrl.gpu.timing import Model, Result
from cuasmrl.gpu.timing.code import Int
from cuasmrl.schedule import Schedule

_LOGGED = 50_000
"""Issues that are looked at to see who waits for whom."""


@dataclass(frozen=True, eq=False)
class Replays:
    schedule: Schedule
    seeds: tuple[int, ...]
    results: tuple[Result, ...]
    """One for each seed; the first with a log."""

    @property
    def cycles(self) -> tuple[int, ...]:
        """Of the whole kernel."""
        return tuple(result.cycles for result in self.results)

    @property
    def log(self) -> Int:
        return self.results[0].log

    @cached_property
    def rows(self) -> Int:
        """Cycles of all warps and seeds, by position and reason."""
        first, *others = (result.row_reasons for result in self.results)
        total: Int = sum(others, first)
        return total

    @cached_property
    def cores(self) -> Int:
        """Cycles of all sub-cores and seeds by reason: they sum to sub-cores times the sum of `cycles`."""
        first, *others = (result.core_reasons.sum(axis=0) for result in self.results)
        total: Int = sum(others, first)
        return total


def replays_of(
    model: Model, schedule: Schedule, seeds: Sequence[int] = UNSEEN_SEEDS, logged: int = _LOGGED
) -> Replays:
    """Under seeds that no search uses, if no others are given; so many issues of the first are kept."""
    table = model.table(schedule)
    counts = [logged, *[0] * (len(seeds) - 1)]
    results = (model.replay(table, seed, logged=count) for seed, count in zip(seeds, counts, strict=True))
    return Replays(schedule, tuple(seeds), tuple(results))
