"""A guess at what the device is: the model of the kernel under some numbers, and what it predicts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean

from cuasmrl.gpu.devices.objective import PLANNING_SEEDS
from cuasmrl.gpu.timing import Model, Parameters
from cuasmrl.gpu.timing.code import Code
from cuasmrl.schedule import Schedule

ITERATIONS = 4
"""Of each loop, in a replay of the twin."""
_SEEDS_OF_SEVERAL = 2
"""Of the latency jitter in a prediction where several blocks share an SM; alone on it, a block runs alike
under all."""


class _Watched(Parameters):
    """Notes which numbers are asked for."""

    def __init__(self, parameters: Parameters) -> None:
        super().__init__(parameters.chip, parameters.numbers)
        self.asked: set[str] = set()

    def __getitem__(self, name: str) -> float:
        self.asked.add(name)
        return super().__getitem__(name)


def names_of_code(model: Model) -> frozenset[str]:
    watched = _Watched(model.parameters)
    Code(model.listing, watched)
    return frozenset(watched.asked)


class Guess:
    """Predicts how long schedules take relative to the original, as a logarithm."""

    def __init__(self, model: Model, of_code: frozenset[str] | None = None) -> None:
        self.model = model
        self.of_code = names_of_code(model) if of_code is None else of_code
        """Numbers that the records of instructions depend on: these take long to make."""
        self.seeds = PLANNING_SEEDS[: 1 if model.resident == 1 else _SEEDS_OF_SEVERAL]
        self._starts: list[int] = []
        self._known: dict[bytes, float] = {}

    @property
    def numbers(self) -> Parameters:
        return self.model.parameters

    def changed(self, numbers: Parameters) -> Guess:
        keeps_code = all(numbers[name] == self.numbers[name] for name in self.of_code)
        return Guess(self.model.with_parameters(numbers, keeps_code), self.of_code)

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
