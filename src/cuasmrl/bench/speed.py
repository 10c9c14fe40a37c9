"""How fast the SM model is, how its time grows with the work, and that it gives the same twice."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np

from cuasmrl import workloads
from cuasmrl.gpu.chips import chip as chip_named
from cuasmrl.gpu.emulator import Trace
from cuasmrl.gpu.timing.uncertainty import measure
from cuasmrl.gpu.traced import TracedKernel
from cuasmrl.workloads.tracing import trace_workload

CHIP = "a100"
_SEEDS = 8
_REPEATS = 5
_WORK = (1, 2, 4, 8)
# Workloads, and sizes that are not their own; the second is the first with four times the rows.
_CHOSEN: tuple[tuple[str, dict[str, int]], ...] = (
    ("gemm_leaky_relu", {}),
    ("gemm_leaky_relu", {"M": 2048}),
    ("softmax", {}),
)


@dataclass(frozen=True)
class SpeedFigures:
    """One kernel on one core, compiled code and trace being there."""

    workload: str
    config: str
    chip: str
    sizes: dict[str, int]
    instructions: int
    """Warp instructions of a replay."""
    milliseconds: float
    """One replay, after the first."""
    rate: float
    """Warp instructions a second."""
    threads: float
    """How many times faster replays of several seeds are on two threads than one after the other."""
    cores: int
    growth: tuple[float, ...]
    """Nanoseconds per warp instruction for 1, 2, 4 and 8 times the blocks."""
    state_bytes: int
    work_bytes: int
    """The trace laid out for replay."""
    trace_bytes: int
    same: bool
    """Did every seed give the same cycles twice?"""

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def speed() -> list[SpeedFigures]:
    """The workloads above on the nominal chip."""
    found = []
    for name, changed in _CHOSEN:
        workload = workloads.get(name)
        sizes = {**workload.sizes, **changed}
        found.append(speed_of(trace_workload(workload, workload.configs[0], chip_named(CHIP), sizes)))
    return found


def speed_of(kernel: TracedKernel) -> SpeedFigures:
    model, schedule = kernel.model, kernel.original
    table = model.table(schedule)
    first = model.replay(table)
    alone = _seconds(lambda: [model.replay(table, seed) for seed in range(_SEEDS)])
    one_by_one = _seconds(lambda: [model.replay(table, seed) for seed in range(_SEEDS)], time.perf_counter)
    together = _seconds(lambda: measure(model, schedule, range(_SEEDS)), time.perf_counter)
    growth = []
    for times in _WORK:
        blocks = times * model.blocks
        count = model.replay(table, blocks=blocks).instructions
        seconds = _seconds(lambda: model.replay(table, blocks=blocks))  # noqa: B023 - called at once
        growth.append(1e9 * seconds / count)
    layout = model.layout(model.blocks)
    samples = [measure(model, schedule, range(_SEEDS)).samples for _ in range(2)]
    return SpeedFigures(
        workload=kernel.name,
        config=kernel.config,
        chip=kernel.chip.key,
        sizes=dict(kernel.sizes),
        instructions=first.instructions,
        milliseconds=1000 * alone / _SEEDS,
        rate=first.instructions * _SEEDS / alone,
        threads=one_by_one / together,
        cores=os.cpu_count() or 1,
        growth=tuple(growth),
        state_bytes=layout.size * np.dtype(np.int64).itemsize,
        work_bytes=model.work.nbytes,
        trace_bytes=_trace_bytes(kernel.trace),
        same=samples[0] == samples[1],
    )


def _seconds(action: Callable[[], object], clock: Callable[[], float] = time.thread_time) -> float:
    """The shortest of some repetitions, and time of this thread only: others may use the machine too."""
    times = []
    for _ in range(_REPEATS):
        start = clock()
        action()
        times.append(clock() - start)
    return min(times)


def _trace_bytes(trace: Trace) -> int:
    arrays = (getattr(trace, field.name) for field in fields(trace) if field.name != "header")
    return sum(array.nbytes for array in arrays)
