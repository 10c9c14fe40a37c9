"""The clock of the page: what one replay of the model says, quickly enough to answer a drag."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from cuasmrl.explain.report.cycles import Spent, spent
from cuasmrl.explain.waits.charges import charged
from cuasmrl.explain.waits.replays import Replays
from cuasmrl.gpu.devices import Rival, VirtualTimer
from cuasmrl.gpu.devices.objective import SEARCH_SEEDS
from cuasmrl.gpu.timing import REASON_NAMES, Model, Reason
from cuasmrl.gpu.timing.records import SUB_CORES
from cuasmrl.gpu.traced import TracedKernel
from cuasmrl.schedule import Block, Schedule

_AFFORDED = 200_000
"""Warp instructions that are replayed for an answer: some 10 ms."""
_MOST = 400_000
"""Of a whole kernel; of a larger one an excerpt is replayed."""
_MOST_SEEDS = 4
_ITERATIONS = 8
"""Of each loop, where the whole kernel takes too long."""


@dataclass(frozen=True)
class Scope:
    """How much is replayed."""

    model: Model
    blocks: int
    seeds: tuple[int, ...]
    is_whole: bool

    @property
    def sentence(self) -> str:
        what = (
            "the whole kernel"
            if self.is_whole
            else f"the first blocks, {_ITERATIONS} iterations of each loop"
        )
        seeds = "one seed" if len(self.seeds) == 1 else f"mean over {len(self.seeds)} seeds"
        return f"modelled cycles of {what} on the nominal chip, {seeds}"


@dataclass(frozen=True)
class Reading:
    """What the clock shows of a schedule."""

    spent: Spent
    waits: tuple[tuple[int, ...], ...]
    """By position: number of a reason, cycles of all warps and seeds, number of the next, ..."""

    @cached_property
    def cycles(self) -> float:
        return self.spent.mean_cycles

    def as_dict(self) -> dict[str, Any]:
        return {"cycles": self.cycles, "reasons": dict(self.spent.reasons), "waits": self.waits}


class Stopwatch(VirtualTimer):
    """Reads schedules of one kernel. As a timer it gives agents the cycles that people see."""

    def __init__(self, kernel: TracedKernel, blocks: tuple[Block, ...]) -> None:
        super().__init__(kernel, seeds=SEARCH_SEEDS[:1])
        self.code_blocks = blocks
        self.scope = _scope_of(kernel)

    @cached_property
    def original(self) -> Reading:
        return self.read(self.kernel.original)

    @property
    def divisor(self) -> int:
        """Counts of a reading's reasons divided by it are cycles."""
        return SUB_CORES * len(self.scope.seeds)

    @cached_property
    def executions(self) -> list[int]:
        """Of each instruction, by all warps under all seeds: no schedule changes that."""
        counts: list[int] = self._replays(self.kernel.original).rows[:, Reason.ISSUED].tolist()
        return counts

    def read(self, schedule: Schedule) -> Reading:
        replays = self._replays(schedule)
        rows = charged(replays.rows, self.code_blocks)
        rows[:, Reason.ISSUED] = 0
        found: list[list[int]] = [[] for _ in range(len(rows))]
        positions, reasons = rows.nonzero()
        for position, reason, cycles in zip(
            positions.tolist(), reasons.tolist(), rows[positions, reasons].tolist(), strict=True
        ):
            found[position] += [reason, cycles]
        return Reading(spent(replays), tuple(map(tuple, found)))

    def time(self, schedule: Schedule, rival: Rival | None = None) -> float:
        scope = self.scope
        table = scope.model.table(schedule)
        return sum(scope.model.cycles(table, seed, scope.blocks) for seed in scope.seeds) / len(scope.seeds)

    def _replays(self, schedule: Schedule) -> Replays:
        scope = self.scope
        table = scope.model.table(schedule)
        results = (scope.model.replay(table, seed, scope.blocks) for seed in scope.seeds)
        return Replays(schedule, scope.seeds, tuple(results))


def reason_names() -> Mapping[int, str]:
    return {int(reason): name for reason, name in REASON_NAMES.items()}


def _scope_of(kernel: TracedKernel) -> Scope:
    whole = kernel.model
    size = whole.simulate(kernel.original, SEARCH_SEEDS[0], whole.resident).instructions
    size = size * -(-whole.blocks // whole.resident)
    if size <= _MOST:
        seeds = SEARCH_SEEDS[: max(1, min(_MOST_SEEDS, _AFFORDED // size))]
        return Scope(whole, whole.blocks, seeds, True)
    part = kernel.part(_ITERATIONS)
    return Scope(part, part.resident, SEARCH_SEEDS[:2], False)
