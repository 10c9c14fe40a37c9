"""The virtual GPU as a timer: replays of a trace."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from functools import cached_property
from statistics import mean

import numpy as np

from cuasmrl.devices.device import Profile
from cuasmrl.schedule import Schedule
from cuasmrl.timing import Model, Reason, Result
from cuasmrl.timing.excerpt import excerpt
from cuasmrl.timing.uncertainty import UNIT, Gain, compare, draw
from cuasmrl.traced import TracedKernel

SEARCH_SEEDS = (1, 2, 3)
"""One seed cannot see one move: the spread between seeds is larger than most gains."""
UNSEEN_SEEDS = tuple(range(501, 509))
MEMBERS = 16
_TURNS = 6
_WAVES = 2
_REMEMBERED = 4


class VirtualTimer:
    """Modelled cycles: of an excerpt under a few seeds to search, of the whole under others to confirm."""

    def __init__(
        self,
        kernel: TracedKernel,
        turns: int | None = _TURNS,
        seeds: Sequence[int] = SEARCH_SEEDS,
        members: int = MEMBERS,
    ) -> None:
        self.kernel = kernel
        self.seeds = tuple(seeds)
        self.members = members
        self._turns = turns
        self._results: OrderedDict[bytes, list[Result]] = OrderedDict()

    @property
    def device(self) -> str:
        return f"virtual:{self.kernel.chip.key}"

    @property
    def unit(self) -> str:
        return UNIT

    @cached_property
    def whole(self) -> Model:
        return self.kernel.model

    @cached_property
    def part(self) -> Model:
        """What is replayed while searching: few turns of each loop."""
        if self._turns is None:
            return self.whole
        return Model(self.kernel.original, excerpt(self.kernel.trace, self._turns), self.kernel.chip)

    def time(self, schedule: Schedule) -> float:
        return mean(result.cycles for result in self._replays(schedule))

    def profile(self, schedule: Schedule) -> Profile:
        waits = np.array([result.row_reasons for result in self._replays(schedule)], np.float64).sum(axis=0)
        executions = waits[:, Reason.ISSUED].copy()
        waits[:, Reason.ISSUED] = 0
        return Profile(executions, waits)

    def confirm(self, old: Schedule, new: Schedule) -> Gain:
        """All turns of all loops; of a grid that comes to an SM in many waves the first two."""
        members = draw(self.whole.parameters, self.members)
        blocks = min(self.whole.blocks, _WAVES * self.whole.resident)
        return compare(self.whole, old, new, UNSEEN_SEEDS, members, blocks)

    def _replays(self, schedule: Schedule) -> list[Result]:
        """One replay of the first wave of blocks per seed; the last few are kept for whoever asks again."""
        if schedule.key not in self._results:
            table = self.part.table(schedule)
            blocks = self.part.resident
            self._results[schedule.key] = [self.part.replay(table, seed, blocks) for seed in self.seeds]
            if len(self._results) > _REMEMBERED:
                self._results.popitem(last=False)
        return self._results[schedule.key]
