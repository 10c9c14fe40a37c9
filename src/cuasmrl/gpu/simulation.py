"""What the SM model says of a schedule: cycles, where they go, bounds, what would help."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from statistics import mean
from typing import Any

import numpy as np

from cuasmrl.binary.cubin import WORD_BYTES
from cuasmrl.gpu.timing import (
    REASON_NAMES,
    Bound,
    Counterfactual,
    Reason,
    Result,
    Slack,
    Unit,
    bounds_of,
    counterfactuals_of,
    slack_of,
)
from cuasmrl.gpu.traced import TracedKernel
from cuasmrl.schedule import Schedule

_HOT = 12
_MOST_LOGGED = 1 << 20
"""Issues from which slack is read."""


@dataclass(frozen=True)
class HotInstruction:
    address: int
    text: str
    executions: int
    cycles: int
    """Cycles that warps spent waiting to issue it, and issuing it."""
    reason: str
    """What they mostly waited for."""
    slack: float
    """Mean cycles by which it could have issued later without holding anybody up."""


@dataclass(frozen=True)
class InstructionSlack:
    """Of one instruction, over its executions; see `timing.slack`."""

    address: int
    executions: int
    first: int
    """Cycle of the first issue."""
    offset: float
    """Mean cycles behind the first issue in its block."""
    least: int
    mean: float


@dataclass(frozen=True)
class Simulation:
    """Modelled cycles of the SM that has most to do."""

    workload: str
    config: str
    chip: str
    sizes: dict[str, int]
    cycles: tuple[int, ...]
    """One figure for each seed of the latency jitter."""
    instructions: int
    blocks: int
    resident: int
    limit: str
    """What keeps more blocks from being resident."""
    reasons: dict[str, float]
    """Share of the cycles of all sub-cores."""
    warp_reasons: dict[str, float]
    """Share of the cycles of all warps."""
    units: dict[str, float]
    """Share of cycles for which the units of a kind were held."""
    hot: tuple[HotInstruction, ...]
    bounds: tuple[Bound, ...]
    """Cycles that no legal schedule goes below, the largest first."""
    counterfactuals: tuple[Counterfactual, ...]
    """Cycles if one mechanism were free, the fewest first."""
    slack: tuple[InstructionSlack, ...]
    """Of the instructions that were executed, in the order of the schedule."""

    @property
    def mean_cycles(self) -> float:
        return mean(self.cycles)

    @property
    def lower_bound(self) -> int:
        return self.bounds[0].cycles

    def as_dict(self) -> dict[str, Any]:
        return {
            **asdict(self),
            "mean_modelled_cycles": self.mean_cycles,
            "lower_bound_cycles": self.lower_bound,
        }


def simulate(kernel: TracedKernel, schedule: Schedule | None = None, seeds: int = 3) -> Simulation:
    """Time a schedule of a kernel; without one, the schedule that was traced."""
    model, schedule = kernel.model, schedule or kernel.original
    results = [model.simulate(schedule, seed) for seed in range(seeds)]
    first = results[0]
    logged = min(first.instructions, _MOST_LOGGED)
    slack = slack_of(schedule, model.simulate(schedule, logged=logged))
    return Simulation(
        kernel.name,
        kernel.config,
        kernel.chip.name,
        dict(kernel.sizes),
        tuple(result.cycles for result in results),
        first.instructions,
        model.blocks,
        model.resident,
        model.occupancy.limit,
        _shares(first.core_reasons.sum(axis=0)),
        _shares(first.warp_reasons),
        {
            unit.name.lower(): int(first.unit_busy[unit]) / (4 * first.cycles)
            for unit in Unit
            if unit != Unit.NONE
        },
        _hot(schedule, first, slack),
        bounds_of(model),
        counterfactuals_of(model, schedule, range(seeds)),
        _slack_rows(slack),
    )


def _shares(cycles: np.ndarray) -> dict[str, float]:
    total = int(cycles.sum())
    return {REASON_NAMES[Reason(k)]: int(n) / total for k, n in enumerate(cycles) if n}


def _slack_rows(slack: Slack) -> tuple[InstructionSlack, ...]:
    return tuple(
        InstructionSlack(
            WORD_BYTES * int(position), int(slack.issues[position]), int(slack.first[position]),
            float(slack.offset[position]), int(slack.least[position]), float(slack.mean[position]),
        )
        for position in np.flatnonzero(slack.issues)
    )  # fmt: skip


def _hot(schedule: Schedule, result: Result, slack: Slack) -> tuple[HotInstruction, ...]:
    spent = result.row_reasons.sum(axis=1)
    found = []
    for position in np.argsort(-spent, kind="stable")[:_HOT]:
        waits = result.row_reasons[position].copy()
        executions = int(waits[Reason.ISSUED])
        waits[Reason.ISSUED] = 0
        text = schedule.listing.instructions[schedule.order[position]].text
        reason = REASON_NAMES[Reason(int(waits.argmax()))]
        found.append(
            HotInstruction(
                WORD_BYTES * int(position),
                text,
                executions,
                int(spent[position]),
                reason,
                float(slack.mean[position]),
            )
        )
    return tuple(found)
