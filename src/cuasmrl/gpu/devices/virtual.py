"""The virtual GPU as a timer: replays of a trace."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cached_property
from threading import Event

from cuasmrl.gpu.devices.device import Rival, time_or_never
from cuasmrl.gpu.devices.effort import COMPARED, ITERATIONS, MOST, Effort, climb, measure_effort
from cuasmrl.gpu.devices.objective import (
    PICKING_SEEDS,
    REFERENCE_SEEDS,
    SEARCH_SEEDS,
    UNSEEN_SEEDS,
    Objective,
    confirming_members,
    picking_members,
    reference_members,
    searching_members,
)
from cuasmrl.gpu.devices.panel import Condition, Panel
from cuasmrl.gpu.profile import replayed
from cuasmrl.gpu.timing import Model
from cuasmrl.gpu.timing.uncertainty import UNIT, Gain, compare, measure
from cuasmrl.gpu.traced import TracedKernel
from cuasmrl.schedule import Board, Schedule

MEMBERS = 48
"""Chips that a gain is confirmed on."""
_UNSEEN = 3
"""Seeds on each of them but the nominal one."""
_PICKING_MEMBERS = 8
_FINALISTS = 64
_SHORT_LIST = 12
"""Finalists that are compared on other chips too."""
_WAVES = 2


class VirtualTimer:
    """Modelled cycles: of an excerpt under a panel of conditions to search, of the whole to confirm."""

    def __init__(
        self,
        kernel: TracedKernel,
        objective: Objective = Objective.ROBUST,
        game: int = 0,
        iterations: int | None = None,
        seeds: Sequence[int] | None = None,
        members: int = MEMBERS,
        workers: int | None = None,
    ) -> None:
        """`game` is the seed of the player: each game has chips of its own to search on.

        `workers` threads time a batch of schedules; by default one for each core of this process.

        With `iterations` and `seeds` the nominal chip is replayed so, without measuring how much is needed.
        """
        self.kernel = kernel
        self.objective = Objective.NOMINAL if seeds is not None else objective
        self.members = members
        self.game = game
        self._made: dict[int, list[Condition]] = {}
        """Conditions, by the iterations that are replayed under them."""
        self.workers = workers or len(os.sched_getaffinity(0))
        self._announced: dict[tuple[bytes, bytes | None], tuple[Future[float], Event]] = {}
        """By schedule and rival: the answer, and whether nobody wants it any more."""
        self._given = (
            None if seeds is None else Effort(iterations or ITERATIONS[-1], len(seeds), 0.0, None, 0)
        )
        self.seeds = tuple(seeds or SEARCH_SEEDS)
        """Of the latency jitter, one for each condition."""

    @property
    def device(self) -> str:
        return f"virtual:{self.kernel.chip.key}"

    @property
    def unit(self) -> str:
        return UNIT

    @property
    def cost(self) -> float:
        return float(self.effort.conditions)

    @cached_property
    def whole(self) -> Model:
        return self.kernel.model

    @property
    def part(self) -> Model:
        """What is replayed while searching: few iterations of each loop, on the nominal chip."""
        return self.kernel.part(self.effort.iterations)

    @cached_property
    def effort(self) -> Effort:
        """How much is replayed to score a schedule."""
        if self._given is not None:
            return self._given
        part, original = self.kernel.part(ITERATIONS[0]), self.kernel.original
        seed, blocks = self.seeds[0], self.kernel.part(ITERATIONS[0]).resident
        pairs = climb(
            Board(self.kernel.listing),
            replayed(part, original, seed),
            lambda schedule: part.cycles(part.table(schedule), seed, blocks),
            self.game,
        )
        members = reference_members(self.objective, self.whole.parameters, len(REFERENCE_SEEDS))
        reference = [
            Condition(self.whole.with_parameters(member), seed, self._blocks)
            for member, seed in zip(members, REFERENCE_SEEDS, strict=True)
        ]
        return measure_effort(pairs, original, reference, lambda n: self._conditions(n, COMPARED))

    def adopt(self, effort: Effort, seeds: Sequence[int]) -> None:
        """What another timer of this kernel has measured."""
        self._given, self.seeds = effort, tuple(seeds)

    @cached_property
    def panel(self) -> Panel:
        effort = self.effort
        conditions = self._conditions(effort.iterations, effort.conditions)
        original, noise, least = self.kernel.original, effort.noise, effort.least_noise
        return Panel(conditions, original, noise, least, effort.equal, effort.margin)

    def time(self, schedule: Schedule, rival: Rival | None = None) -> float:
        begun = self._announced.pop(_pair(schedule, rival), None)
        return self.panel.time(schedule, rival) if begun is None else begun[0].result()

    def times(self, schedules: Sequence[Schedule], rival: Rival | None = None) -> list[float]:
        """Replays release Python's lock, so threads do. A time depends on schedule and rival only."""
        if self.workers == 1 or len(schedules) < 2:
            return [time_or_never(self, schedule, rival) for schedule in schedules]
        _ = self.panel
        return list(self._pool.map(lambda schedule: time_or_never(self, schedule, rival), schedules))

    @property
    def ahead(self) -> int:
        """One more than threads, so that none has to wait for the player."""
        return self.workers + 1 if self.workers > 1 else 1

    def announce(self, schedule: Schedule, rival: Rival | None = None) -> None:
        pair = _pair(schedule, rival)
        if self.workers > 1 and pair not in self._announced:
            withdrawn = Event()
            self._announced[pair] = (
                self._pool.submit(self.panel.time, schedule, rival, withdrawn), withdrawn
            )  # fmt: skip

    def withdraw(self, schedules: Sequence[Schedule]) -> None:
        keys = {schedule.key for schedule in schedules}
        for pair in [pair for pair in self._announced if pair[0] in keys]:
            begun, withdrawn = self._announced.pop(pair)
            begun.cancel()
            withdrawn.set()

    @cached_property
    def _pool(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(self.workers)

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
        members = picking_members(self.whole.parameters, _PICKING_MEMBERS)
        gains = [compare(self.whole, old, new, PICKING_SEEDS, members, self._blocks) for new in candidates]
        best = max(range(len(gains)), key=lambda n: gains[n].nominal + gains[n].median)
        return candidates[best]

    def confirm(self, old: Schedule, new: Schedule) -> Gain:
        """All iterations of all loops; of a grid that comes to an SM in many waves the first two."""
        members = confirming_members(self.whole.parameters, self.members)
        return compare(self.whole, old, new, UNSEEN_SEEDS, members, self._blocks, _UNSEEN)

    @property
    def _blocks(self) -> int:
        return min(self.whole.blocks, _WAVES * self.whole.resident)

    def _conditions(self, iterations: int, count: int) -> list[Condition]:
        """The first of those that a score may need; the first wave of blocks under each."""
        part = self.kernel.part(iterations)
        if self.objective is Objective.NOMINAL:
            return [Condition(part, seed, part.resident) for seed in self.seeds[:count]]
        members = searching_members(self.objective, part.parameters, MOST, self.game)
        # The records of a chip take long to make: no more of them than are needed, and once.
        made = self._made.setdefault(iterations, [])
        for member, seed in zip(members[len(made) : count], self.seeds[len(made) : count], strict=True):
            made.append(Condition(part.with_parameters(member), seed, part.resident))
        return made[:count]


def _pair(schedule: Schedule, rival: Rival | None) -> tuple[bytes, bytes | None]:
    return schedule.key, None if rival is None else rival.schedule.key
