"""Which config of a workload to play on.

An autotuner takes the config that is fastest as compiled. Configs that come near it may leave more to a
schedule, so a short game on each of them can lead to a better choice.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from cuasmrl.agents import Agent, match
from cuasmrl.errors import CuasmrlError
from cuasmrl.gpu.chips import Chip
from cuasmrl.gpu.devices import VirtualTimer
from cuasmrl.gpu.devices.objective import PICKING_SEEDS, Objective
from cuasmrl.gpu.timing import L2, load_parameters
from cuasmrl.gpu.timing.uncertainty import measure
from cuasmrl.gpu.traced import TracedKernel
from cuasmrl.schedule import Scoreboards
from cuasmrl.workloads import Workload
from cuasmrl.workloads.model import Sizes
from cuasmrl.workloads.tracing import trace_workload

FINALISTS = 6
"""Schedules of a short game among which one is picked."""
_SEEDS = (0, 1, 2)
_NEAR = 1.2
"""Times the cycles of the fastest config: slower ones than that are not tried in play."""


@dataclass(frozen=True)
class Candidate:
    """A config and what the model makes of it."""

    config: str
    cycles: float | None
    """Modelled cycles as compiled; None if it cannot be timed."""
    problem: str = ""
    """Why it cannot."""
    played: float | None = None
    """Modelled cycles that a short game suggests; None if none was played."""


@dataclass(frozen=True)
class Trial:
    """A short game on each of several configs."""

    agent: Agent
    budget: int
    seed: int
    scoreboards: Scoreboards
    objective: Objective


def choose_config(
    workload: Workload,
    chip: Chip,
    sizes: Sizes,
    advance: Callable[[int, int], None],
    trial: Trial | None = None,
    l2: L2 = L2.COLD,
) -> tuple[TracedKernel, tuple[Candidate, ...]]:
    """Trace and time every config that the chip can run; the fastest, and what was found of each.

    With a trial its agent plays on all configs near the fastest, and the one that it makes fastest is taken.
    """
    load_parameters(chip.key)
    kernels: dict[str, TracedKernel] = {}
    candidates: dict[str, Candidate] = {}
    for done, config in enumerate(workload.configs):
        advance(done, len(workload.configs))
        try:
            kernel = trace_workload(workload, config, chip, sizes, l2)
            cycles = measure(kernel.model, kernel.original, _SEEDS).value
        except CuasmrlError as error:
            candidates[config.name] = Candidate(config.name, None, str(error))
            continue
        candidates[config.name] = Candidate(config.name, cycles)
        kernels[config.name] = kernel
    advance(len(workload.configs), len(workload.configs))
    if not kernels:
        problem = next(iter(candidates.values())).problem
        raise CuasmrlError(f"no config of {workload.name} can be timed on {chip.key}; the first: {problem}")
    if trial is not None:
        _try(kernels, candidates, trial, advance)
    best = min(kernels, key=lambda name: _reached(candidates[name]))
    return kernels[best], tuple(candidates.values())


def fastest(candidates: tuple[Candidate, ...]) -> Candidate:
    """As compiled: what an autotuner takes."""
    return min(candidates, key=lambda candidate: candidate.cycles or float("inf"))


def _try(
    kernels: dict[str, TracedKernel],
    candidates: dict[str, Candidate],
    trial: Trial,
    advance: Callable[[int, int], None],
) -> None:
    limit = _NEAR * (fastest(tuple(candidates.values())).cycles or 0.0)
    near = [name for name in kernels if (candidates[name].cycles or limit) <= limit]
    for done, name in enumerate(near):
        advance(done, len(near))
        kernel = kernels[name]
        timer = VirtualTimer(kernel, trial.objective, trial.seed)
        try:
            clock = match(trial.agent, kernel, timer, trial.budget, trial.seed, scoreboards=trial.scoreboards)
        except CuasmrlError:
            # Nothing in it may move: it stays as it was compiled.
            continue
        finalists = clock.finalists(FINALISTS)
        best = timer.pick(kernel.original, finalists) if finalists else kernel.original
        # Not by the seeds of the search, which flatter most where there is least to gain.
        played = measure(kernel.model, best, PICKING_SEEDS).value
        candidates[name] = replace(candidates[name], played=played)
    advance(len(near), len(near))


def _reached(candidate: Candidate) -> float:
    return candidate.played or candidate.cycles or float("inf")
