"""What a worker is asked for. Each task is a value, and doing it twice gives the same as doing it once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias

from cuasmrl.deploy.deposit import shelve
from cuasmrl.deploy.recorded import request_of
from cuasmrl.deploy.store import Store
from cuasmrl.errors import CuasmrlError
from cuasmrl.gpu.devices import Timer, VirtualTimer
from cuasmrl.gpu.devices.objective import UNSEEN_SEEDS
from cuasmrl.gpu.timing import bounds_of
from cuasmrl.gpu.timing.uncertainty import measure
from cuasmrl.gpu.traced import TracedKernel
from cuasmrl.optimize.optimizer import timer_of
from cuasmrl.optimize.request import Request
from cuasmrl.optimize.slices import Slice, judge_slices, play_slice
from cuasmrl.optimize.subject import Subject, prepare

_SEEDS = UNSEEN_SEEDS[:3]


@dataclass(frozen=True)
class Job:
    """A kernel of a recorded cubin."""

    store: str
    """Where the store is; every worker has to reach it there."""
    runs: str
    """Where the runs are; the same."""
    key: str
    """Of the recorded cubin."""
    kernel: str
    files: tuple[str, ...] = field(repr=False)
    """Launch files, the one to play on first."""
    given: Mapping[str, Any] = field(repr=False)
    """Fields of a `Request`, such as agent and seed."""

    @property
    def name(self) -> str:
        return f"{self.kernel or 'kernel'}-{self.key[:12]}"

    @property
    def run(self) -> Path:
        return Path(self.runs, self.name)

    def request(self, budget: int) -> Request:
        recorded = Store(self.store).recorded_as(self.key)
        if recorded is None:
            raise CuasmrlError(
                f"{self.store} has no kernel {self.key[:12]} here; put it where every worker reaches it"
            )
        return request_of(recorded, self.kernel, self.files, {**self.given, "budget": budget})


@dataclass(frozen=True)
class Survey:
    """Trace a kernel: how long it takes, and how much there is to gain at most."""

    job: Job


@dataclass(frozen=True)
class Play:
    """Play until so many evaluations are spent."""

    job: Job
    budget: int


@dataclass(frozen=True)
class Finish:
    """Judge the best schedule, and put it into the store."""

    job: Job
    budget: int


Task: TypeAlias = Survey | Play | Finish


@dataclass(frozen=True)
class Surveyed:
    cycles: float | None
    """Modelled, of a launch; None if only a GPU can run it."""
    headroom: float
    """Gain of a schedule at the largest lower bound; no schedule gains more."""


@dataclass(frozen=True)
class Finished:
    accepted: bool
    stored: bool
    gain: float
    """The confirmed median; 0 if the original is kept."""
    sentence: str
    schedule: str
    """Key of the schedule that was judged."""


Answer: TypeAlias = Surveyed | Slice | Finished


def carry_out(task: Task) -> Answer:
    """In a worker."""
    match task:
        case Survey(job):
            return _surveyed(_prepared(job)[0])
        case Play(job, budget):
            return play_slice(job.request(budget), job.run, *_prepared(job))
        case Finish(job, budget):
            return _finished(job, budget)


@lru_cache(maxsize=2)
def _opened(
    store: str, key: str, kernel: str, files: tuple[str, ...], given: tuple[tuple[str, Any], ...]
) -> tuple[Subject, Timer]:
    """Tracing takes longer than many an evaluation, so a worker keeps what it had last."""
    request = Job(store, "", key, kernel, files, dict(given)).request(1)
    subject = prepare(request, lambda done, total: None)
    timer = timer_of(subject, request)
    if isinstance(timer, VirtualTimer):
        # The other cores have tasks of their own.
        timer.workers = 1
    return subject, timer


def _prepared(job: Job) -> tuple[Subject, Timer]:
    return _opened(job.store, job.key, job.kernel, job.files, tuple(sorted(job.given.items())))


def _surveyed(subject: Subject) -> Surveyed:
    kernel = subject.kernel
    if not isinstance(kernel, TracedKernel):
        return Surveyed(None, 0.0)
    cycles = measure(kernel.model, kernel.original, _SEEDS).value
    return Surveyed(cycles, max(0.0, cycles / bounds_of(kernel.model)[0].cycles - 1))


def _finished(job: Job, budget: int) -> Finished:
    found = judge_slices(job.request(budget), job.run, *_prepared(job))
    store = Store(job.store)
    recorded = store.recorded_as(job.key)
    entry = shelve(found, store, recorded.origin if recorded else {})
    verdict = found.verdict
    gain = verdict.gain.median if verdict.accepted and verdict.gain is not None else 0.0
    return Finished(verdict.accepted, entry is not None, gain, verdict.sentence, verdict.schedule)
