"""A guess at what the device is: the model of the kernel under some numbers, and what it predicts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean

from cuasmrl.gpu.devices.objective import PLANNING_SEEDS
from cuasmrl.gpu.timing import Model, Parameters
from cuasmrl.schedule import Schedule

ITERATIONS = 4
"""Of each loop, in a replay of the twin."""
_SEEDS_OF_SEVERAL = 2
"""Of the latency jitter in a prediction where several blocks share an SM; alone on it, a block runs alike
under all."""


class Guess:
    """Predicts how long schedules take relative to the original, as a logarithm."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.seeds = PLANNING_SEEDS[: 1 if model.resident == 1 else _SEEDS_OF_SEVERAL]
        self._starts: list[int] = []
        self._known: dict[bytes, float] = {}

    @property
    def numbers(self) -> Parameters:
        return self.model.parameters

    def changed(self, numbers: Parameters) -> Guess:
        return Guess(self.model.with_parameters(numbers))

    def predict(self, schedule: Schedule) -> float:
        found = self._known.get(schedule.key)
        if found is None:
            if not self._starts:
                self._starts = self._cycles(Schedule.original(schedule.listing))
            cycles = self._cycles(schedule)
            found = fmean(math.log(new / old) for new, old in zip(cycles, self._starts, strict=True))
            self._known[schedule.key] = found
        return found

    def predictions(self, schedules: Sequence[Schedule]) -> list[float]:
        return [self.predict(schedule) for schedule in schedules]

    def _cycles(self, schedule: Schedule) -> list[int]:
        table = self.model.table(schedule)
        return [self.model.cycles(table, seed, self.model.resident) for seed in self.seeds]
