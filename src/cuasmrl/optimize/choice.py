"""Which config of a workload to play on: as an autotuner would, the one with the fewest modelled cycles."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from cuasmrl.chips import Chip
from cuasmrl.errors import CuasmrlError
from cuasmrl.timing.uncertainty import measure
from cuasmrl.traced import TracedKernel, trace_workload
from cuasmrl.workloads import Workload
from cuasmrl.workloads.model import Sizes

_SEEDS = (0, 1, 2)


@dataclass(frozen=True)
class Candidate:
    """A config and what the model makes of it."""

    config: str
    cycles: float | None
    """Modelled cycles as compiled; None if it cannot be timed."""
    problem: str = ""
    """Why it cannot."""


def choose_config(
    workload: Workload, chip: Chip, sizes: Sizes, advance: Callable[[int, int], None]
) -> tuple[TracedKernel, tuple[Candidate, ...]]:
    """Trace and time every config that the chip can run; the fastest, and what was found of each."""
    best: tuple[float, TracedKernel] | None = None
    candidates = []
    for done, config in enumerate(workload.configs):
        advance(done, len(workload.configs))
        try:
            kernel = trace_workload(workload, config, chip, sizes)
            cycles = measure(kernel.model, kernel.original, _SEEDS).value
        except CuasmrlError as error:
            candidates.append(Candidate(config.name, None, str(error)))
            continue
        candidates.append(Candidate(config.name, cycles))
        if best is None or cycles < best[0]:
            best = cycles, kernel
    advance(len(workload.configs), len(workload.configs))
    if best is None:
        raise CuasmrlError(
            f"no config of {workload.name} can be timed on {chip.key}; the first: {candidates[0].problem}"
        )
    return best[1], tuple(candidates)
