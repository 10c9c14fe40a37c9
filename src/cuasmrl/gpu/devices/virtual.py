"""The virtual GPU as a timer: replays of a trace."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from functools import cached_property
from math import ceil
from statistics import mean, stdev

import numpy as np

from cuasmrl.gpu.devices.device import Profile
from cuasmrl.gpu.timing import Model, Reason, Result
from cuasmrl.gpu.timing.excerpt import enough_iterations, excerpt
from cuasmrl.gpu.timing.uncertainty import UNIT, Gain, compare, draw, measure
from cuasmrl.gpu.traced import TracedKernel
from cuasmrl.schedule import Schedule
from cuasmrl.schedule.blocks import control_flow

SEARCH_SEEDS = tuple(range(1, 7))
"""As many of these as the kernel needs: where blocks on an SM fall in and out of step, the spread between
seeds is larger than most gains, and a search with few seeds finds what none of the others confirm."""
_FEWEST_SEEDS = 3
_STEADY = 0.003
"""Relative standard error of the mean over the seeds that is small enough to search with."""
PICKING_SEEDS = tuple(range(301, 305))
UNSEEN_SEEDS = tuple(range(501, 509))
MEMBERS = 16
_PICKING_MEMBERS = 5
_FINALISTS = 64
_SHORT_LIST = 12
"""Finalists that are compared on other chips too."""
_LEAST_ITERATIONS, _MOST_ITERATIONS = 4, 12
_LOOPS = 0.75
"""Share of a replay that loops make up, if that takes no more iterations: else prologue and epilogue
weigh far more than in the whole kernel."""
_WAVES = 2
_REMEMBERED = 4


class VirtualTimer:
    """Modelled cycles: of an excerpt under a few seeds to search, of the whole under others to confirm."""

    def __init__(
        self,
        kernel: TracedKernel,
        iterations: int | None = None,
        seeds: Sequence[int] | None = None,
        members: int = MEMBERS,
    ) -> None:
        self.kernel = kernel
        self.members = members
        self._iterations = iterations
        self._given_seeds = seeds
        self._results: OrderedDict[bytes, list[Result]] = OrderedDict()
        """Of schedules that have been profiled, by their key."""

    @property
    def device(self) -> str:
        return f"virtual:{self.kernel.chip.key}"

    @property
    def unit(self) -> str:
        return UNIT

    @cached_property
    def seeds(self) -> tuple[int, ...]:
        """Of the replays while searching: those given, or as many as steady the time of the original."""
        if self._given_seeds is not None:
            return tuple(self._given_seeds)
        times = self._times(self.kernel.original, SEARCH_SEEDS)
        needed = (stdev(times) / mean(times) / _STEADY) ** 2
        return SEARCH_SEEDS[: max(_FEWEST_SEEDS, ceil(needed))]

    @cached_property
    def whole(self) -> Model:
        return self.kernel.model

    @cached_property
    def part(self) -> Model:
        """What is replayed while searching: few iterations of each loop."""
        kernel = self.kernel
        lengths = np.array([len(block) for block in control_flow(kernel.listing)])
        iterations = self._iterations or enough_iterations(
            kernel.trace, lengths, _LOOPS, _LEAST_ITERATIONS, _MOST_ITERATIONS
        )
        return Model(kernel.original, excerpt(kernel.trace, iterations), kernel.chip, l2=kernel.l2)

    def time(self, schedule: Schedule) -> float:
        profiled = self._results.get(schedule.key)
        return mean(
            self._times(schedule, self.seeds) if profiled is None else [result.cycles for result in profiled]
        )

    def profile(self, schedule: Schedule) -> Profile:
        waits = np.array([result.row_reasons for result in self._replays(schedule)], np.float64).sum(axis=0)
        executions = waits[:, Reason.ISSUED].copy()
        waits[:, Reason.ISSUED] = 0
        return Profile(executions, waits)

    @property
    def finalists(self) -> int:
        return _FINALISTS

    def pick(self, old: Schedule, candidates: Sequence[Schedule]) -> Schedule:
        """By the gain on the nominal chip and on the middle one of a small ensemble.

        Of many candidates, those that are fastest on the nominal chip come to the ensemble.
        """
        if len(candidates) == 1:
            return candidates[0]
        if len(candidates) > _SHORT_LIST:
            times = [measure(self.whole, new, PICKING_SEEDS, self._blocks).value for new in candidates]
            order = sorted(range(len(times)), key=times.__getitem__)
            candidates = [candidates[n] for n in order[:_SHORT_LIST]]
        members = draw(self.whole.parameters, _PICKING_MEMBERS, seed=1)
        gains = [compare(self.whole, old, new, PICKING_SEEDS, members, self._blocks) for new in candidates]
        best = max(range(len(gains)), key=lambda n: gains[n].nominal + gains[n].median)
        return candidates[best]

    def confirm(self, old: Schedule, new: Schedule) -> Gain:
        """All iterations of all loops; of a grid that comes to an SM in many waves the first two."""
        members = draw(self.whole.parameters, self.members)
        return compare(self.whole, old, new, UNSEEN_SEEDS, members, self._blocks)

    @property
    def _blocks(self) -> int:
        return min(self.whole.blocks, _WAVES * self.whole.resident)

    def _times(self, schedule: Schedule, seeds: Sequence[int]) -> list[int]:
        """Cycles of the first wave of blocks."""
        table = self.part.table(schedule)
        return [self.part.cycles(table, seed, self.part.resident) for seed in seeds]

    def _replays(self, schedule: Schedule) -> list[Result]:
        """The same replays with the names of their cycles; the last few are kept for whoever asks again."""
        if schedule.key not in self._results:
            table = self.part.table(schedule)
            self._results[schedule.key] = [
                self.part.replay(table, seed, self.part.resident) for seed in self.seeds
            ]
            if len(self._results) > _REMEMBERED:
                self._results.popitem(last=False)
        return self._results[schedule.key]
