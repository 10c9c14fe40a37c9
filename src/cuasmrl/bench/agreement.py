"""How well the scores of a search rank schedules: beside whole kernels on chips that no search uses."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from time import process_time
from typing import Any

from rich.table import Table

from cuasmrl import workloads
from cuasmrl.agents import match
from cuasmrl.agents.greedy import Greedy
from cuasmrl.gpu.chips import chip
from cuasmrl.gpu.devices import Objective, Rival, VirtualTimer
from cuasmrl.gpu.devices.effort import rank_correlation, ratios
from cuasmrl.gpu.devices.objective import UNSEEN_SEEDS, confirming_members
from cuasmrl.gpu.devices.panel import Condition
from cuasmrl.gpu.timing import L2
from cuasmrl.gpu.traced import TracedKernel
from cuasmrl.schedule import Schedule
from cuasmrl.workloads.tracing import trace_workload

KERNELS = (
    "gemm_leaky_relu/m64n64k64_w4_s4",
    "gemm_leaky_relu/m128n128k32_w4_s3",
    "fused_ff/m64n64k64_w4_s3",
    "bmm/m64n64k32_w4_s3",
    "flash_attention/m64n128_w4_s3",
    "softmax/w8",
)
_EVALUATIONS = 300
_SAMPLE = 40
_MEMBERS = 24


@dataclass(frozen=True)
class Agreement:
    """On schedules that a search has visited."""

    kernel: str
    resident: int
    """Blocks on an SM at a time."""
    iterations: int
    conditions: int
    spearman: float
    """Of scores in full with the mean over the reference."""
    ceiling: float
    """Of one half of the reference with the other: what noise leaves of it."""
    spread: float
    """Standard deviation of what the schedules take by the reference, relative to the original."""
    milliseconds: float
    """Processor time of a score in full."""

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


class Visits(VirtualTimer):
    """Remembers what it was asked for."""

    def __init__(self, kernel: TracedKernel, objective: Objective) -> None:
        super().__init__(kernel, objective)
        self.visited: dict[bytes, Schedule] = {}

    def time(self, schedule: Schedule, rival: Rival | None = None) -> float:
        self.visited[schedule.key] = schedule
        return super().time(schedule, rival)


def agreement(
    names: Sequence[str], objective: Objective, l2: L2, progress: Callable[[int, int], None]
) -> list[Agreement]:
    found = []
    for done, name in enumerate(names, 1):
        found.append(_agreement(name, objective, l2))
        progress(done, len(names))
    return found


def _agreement(name: str, objective: Objective, l2: L2) -> Agreement:
    workload, _, config = name.partition("/")
    chosen = workloads.get(workload)
    kernel = trace_workload(chosen, chosen.config(config), chip("a100"), l2=l2)
    timer = Visits(kernel, objective)
    match(Greedy(), kernel, timer, _EVALUATIONS, seed=0)
    visited = list(timer.visited.values())
    schedules = [kernel.original, *random.Random(0).sample(visited[1:], min(_SAMPLE, len(visited) - 1))]
    whole = timer.whole
    reference = ratios(
        [
            Condition(whole.with_parameters(member), UNSEEN_SEEDS[k % len(UNSEEN_SEEDS)], whole.resident)
            for k, member in enumerate(confirming_members(whole.parameters, _MEMBERS))
        ],
        schedules,
    )
    start = process_time()
    scores = ratios(timer.panel.conditions, schedules).mean(axis=1)
    spent = process_time() - start
    truth = reference.mean(axis=1)
    return Agreement(
        kernel=name,
        resident=whole.resident,
        iterations=timer.effort.iterations,
        conditions=timer.effort.conditions,
        spearman=rank_correlation(scores, truth),
        ceiling=rank_correlation(reference[:, ::2].mean(axis=1), reference[:, 1::2].mean(axis=1)),
        spread=float(truth.std()),
        milliseconds=1000 * spent / len(schedules),
    )


def agreement_table(rows: Sequence[Agreement]) -> Table:
    table = Table(box=None, pad_edge=False, title="scores of a search beside whole kernels on 24 other chips")
    table.add_column("kernel")
    columns = ("blocks", "iterations", "conditions", "Spearman", "half the chips with half", "spread", "ms")
    for column in columns:
        table.add_column(column, justify="right")
    for row in rows:
        table.add_row(
            row.kernel, str(row.resident), str(row.iterations), str(row.conditions), f"{row.spearman:.2f}",
            f"{row.ceiling:.2f}", f"{row.spread:.1%}", f"{row.milliseconds:.1f}",
        )  # fmt: skip
    return table
