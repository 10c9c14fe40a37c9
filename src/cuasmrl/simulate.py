"""Time a workload on the SM model: emulate it once for the trace, replay it for the cycles."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from statistics import mean
from typing import Any

import numpy as np

from cuasmrl.chips import Chip
from cuasmrl.cubin import Cubin
from cuasmrl.emulator import Emulator
from cuasmrl.launch import Launch
from cuasmrl.schedule import Schedule
from cuasmrl.timing import REASON_NAMES, Model, Reason, Result, Unit, occupancy
from cuasmrl.workloads import Config, Workload
from cuasmrl.workloads.model import Sizes

_HOT = 12
_WAVES_TRACED = 2


@dataclass(frozen=True)
class HotInstruction:
    address: int
    text: str
    executions: int
    cycles: int
    """Cycles that warps spent waiting to issue it, and issuing it."""
    reason: str
    """What they mostly waited for."""


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

    @property
    def mean_cycles(self) -> float:
        return mean(self.cycles)

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "mean_modelled_cycles": self.mean_cycles}


def simulate(
    workload: Workload, config: Config, chip: Chip, sizes: Sizes | None = None, seeds: int = 3
) -> Simulation:
    """Build, trace and time one launch as the compiler scheduled it."""
    built = workload.build(config, chip.arch, sizes)
    emulator = Emulator(Cubin.parse(built.cubin, f"{workload.name} {config.name}"), built.kernel, chip)
    launch = workload.launch(built, workload.inputs(sizes), sizes)
    trace = emulator.trace(launch, blocks=traced_blocks(launch, emulator, chip))
    schedule = Schedule.original(emulator.listing)
    model = Model(schedule, trace, chip)
    results = [model.simulate(schedule, seed) for seed in range(seeds)]
    first = results[0]
    return Simulation(
        workload.name,
        config.name,
        chip.name,
        dict(sizes or workload.sizes),
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
        _hot(schedule, first),
    )


def traced_blocks(launch: Launch, emulator: Emulator, chip: Chip) -> list[int]:
    """Blocks that come to the first SM: one in as many as there are SMs, for two waves."""
    shared = emulator.kernel.shared_bytes + launch.shared_bytes
    resident = occupancy(chip, launch.threads, emulator.kernel.registers, shared).blocks
    return list(range(0, launch.blocks, chip.sm_count))[: _WAVES_TRACED * resident]


def _shares(cycles: np.ndarray) -> dict[str, float]:
    total = int(cycles.sum())
    return {REASON_NAMES[Reason(k)]: int(n) / total for k, n in enumerate(cycles) if n}


def _hot(schedule: Schedule, result: Result) -> tuple[HotInstruction, ...]:
    spent = result.row_reasons.sum(axis=1)
    found = []
    for place in np.argsort(-spent, kind="stable")[:_HOT]:
        waits = result.row_reasons[place].copy()
        executions = int(waits[Reason.ISSUED])
        waits[Reason.ISSUED] = 0
        text = schedule.listing.instructions[schedule.order[place]].text
        reason = REASON_NAMES[Reason(int(waits.argmax()))]
        found.append(HotInstruction(16 * int(place), text, executions, int(spent[place]), reason))
    return tuple(found)
