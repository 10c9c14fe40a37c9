"""A run in slices: played further each time it is given more evaluations, and judged at the end only.

A slice goes on where the log ends, whoever wrote it, so one that was killed costs what it had not logged.
That needs an agent whose play does not depend on how many evaluations it has: else the log contradicts it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from cuasmrl.errors import CuasmrlError
from cuasmrl.gpu.devices import Timer, VirtualTimer
from cuasmrl.optimize.optimizer import Optimized, Watch, carry_out, check_movable, config_of, play
from cuasmrl.optimize.players import with_places
from cuasmrl.optimize.request import Request
from cuasmrl.optimize.runs import RunDirectory
from cuasmrl.optimize.subject import Subject

BY_BUDGET = frozenset({"anneal", "list", "ppo", "ppo-published"})
"""Agents that plan by the evaluations they will have."""


@dataclass(frozen=True)
class Slice:
    """How far a run has come."""

    spent: int
    """Evaluations; fewer than the budget if the agent found nothing more to try."""
    gain: float
    """Of the best schedule so far, as the search sees it."""
    best: str
    """Its digest."""


def judge_slices(request: Request, run: Path, subject: Subject, timer: Timer) -> Optimized:
    """The end of such a run, as that of any other."""
    directory = _directory(request, run, subject, timer)
    return carry_out(directory, request.player, subject, timer, request.standard, None, Watch())


def play_slice(request: Request, run: Path, subject: Subject, timer: Timer) -> Slice:
    """Play until the request's budget is spent; `timer` is that of the subject."""
    agent = request.player
    directory = _directory(request, run, subject, timer)
    directory.keep_original(subject.kernel.cubin, subject.launch)
    if isinstance(timer, VirtualTimer):
        directory.keep_effort(timer.effort)
    clock = play(directory, with_places(agent, run), subject, timer, Watch())
    return Slice(clock.spent, clock.gain, clock.best.digest)


def _directory(request: Request, run: Path, subject: Subject, timer: Timer) -> RunDirectory:
    config = config_of(request, request.player, subject)
    if not (run / "config.json").exists():
        check_movable(subject, timer, config)
        return RunDirectory.create(run, config)
    directory = RunDirectory.open(run)
    difference = directory.config.difference(replace(config, budget=directory.config.budget))
    if difference is not None:
        raise CuasmrlError(f"{run} was started with {difference}; start another fleet with --run")
    return directory.extend(config.budget) if config.budget > directory.config.budget else directory
