"""How far a fleet scales: its queue simulated with the times that tasks and the head take."""

from __future__ import annotations

import heapq
import json
import pickle
import random
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import Any

from cuasmrl.deploy.fleet.budgets import Standing, next_round
from cuasmrl.deploy.fleet.head import WIDTH
from cuasmrl.deploy.fleet.journal import Journal
from cuasmrl.deploy.fleet.tasks import Job, Play
from cuasmrl.errors import CuasmrlError
from cuasmrl.optimize.slices import Slice

_SAMPLE = 200
_SPREAD = 0.8
"""Of task times: standard deviation of their logarithm. Kernels differ by orders of magnitude."""
LOG_BYTES = 90
"""Of the line of an evaluation in a run's log."""
RUN_BYTES = 150_000
"""Of the other files of a run: cubins, schedule, verdict, certificate."""
_HALF = 2.0
"""Slices after which a kernel has half of what it will gain, in the middle."""


@dataclass(frozen=True)
class TaskTimes:
    """Seconds of a task on one processor, in the middle."""

    survey: float
    evaluation: float
    opening: float
    """Of a slice, before its first evaluation, on a worker that did not have the kernel before."""
    finish: float


TYPICAL = TaskTimes(2.0, 0.002, 1.0, 4.0)
"""Processor time of workloads between softmax and gemm_leaky_relu; `--journal` says what others take."""


@dataclass(frozen=True)
class HeadTimes:
    """Seconds of the head, measured here."""

    task: float
    """To hand out one task and take its answer: both pickled, the journal written."""
    kernel: float
    """To decide about one kernel between two rounds."""
    task_bytes: int
    """Over the network, both ways."""
    journal_bytes: int
    """A task adds to the journal."""


@dataclass(frozen=True)
class Simulated:
    kernels: int
    workers: int
    tasks: int
    rounds: int
    evaluations: int
    hours: float
    busy: float
    """Share of their time in which workers work."""
    head: float
    """Share of its time in which the head works."""
    network_bytes: int
    journal_bytes: int
    run_bytes: int

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass
class _Clock:
    """When workers and head are free, in seconds."""

    workers: list[float]
    head: float = 0.0
    head_busy: float = 0.0
    work: float = 0.0
    tasks: int = 0
    done: float = field(default=0.0)

    def carry_out(self, durations: Sequence[float], of_head: float) -> None:
        """Each task goes to the first worker that is free, as fast as the head hands them out."""
        heapq.heapify(self.workers)
        for duration in durations:
            self.head += of_head
            self.head_busy += of_head
            start = max(self.head, heapq.heappop(self.workers))
            heapq.heappush(self.workers, start + duration)
            self.done = max(self.done, start + duration)
            self.work += duration
        self.tasks += len(durations)

    def decide(self, seconds: float) -> None:
        """Between two rounds everybody waits."""
        self.head = max(self.head, self.done) + seconds
        self.head_busy += seconds


def measured_head(kernels: int) -> HeadTimes:
    """On this machine, with a journal on its disk."""
    given = {"agent": "greedy", "seed": 0}
    job = Job("/store", "/fleet", "0" * 64, "kernel", ("/store/pending/launch.json",), given)
    with tempfile.TemporaryDirectory() as folder:
        journal, task_bytes = Journal(Path(folder, "journal.jsonl")), 0
        start = time.perf_counter()
        for number in range(_SAMPLE):
            task, answer = Play(job, number), Slice(number, 0.1, "0" * 64)
            sent, back = pickle.dumps(task), pickle.dumps(answer)
            pickle.loads(back)
            journal.keep(task, answer, 1.0)
            task_bytes = len(sent) + len(back)
        seconds = (time.perf_counter() - start) / _SAMPLE
        journal.close()
        journal_bytes = Path(folder, "journal.jsonl").stat().st_size // _SAMPLE
    standings = {str(n): Standing(1 / kernels, 0.1, (0.01 * (n % 7),)) for n in range(kernels)}
    start = time.perf_counter()
    next_round(standings, kernels, kernels)
    return HeadTimes(seconds, (time.perf_counter() - start) / kernels, task_bytes, journal_bytes)


def measured_tasks(journal: Path) -> TaskTimes:
    """From the journal of a fleet that ran: what its tasks took, in the middle over its kernels."""
    surveys: list[float] = []
    finishes: list[float] = []
    openings: list[float] = []
    rates: list[float] = []
    played: dict[str, list[tuple[int, float]]] = {}
    for line in journal.read_text(encoding="utf-8").splitlines():
        data = json.loads(line)
        kind, name, *budget = data["task"].split(" ")
        if kind == "play":
            played.setdefault(name, []).append((int(budget[0]), float(data["seconds"])))
        else:
            (surveys if kind == "survey" else finishes).append(float(data["seconds"]))
    for slices in played.values():
        slice_ = min(budget for budget, _ in slices)
        # On a worker that still has the kernel a slice is evaluations and nothing else.
        rate = min(seconds for _, seconds in slices) / slice_
        if len(slices) > 1:
            rates.append(rate)
            openings.append(max(0.0, max(seconds for _, seconds in slices) - rate * slice_))
    if not (surveys and finishes and rates):
        raise CuasmrlError(f"{journal} has no kernel that got two slices, so it does not say what one takes")
    return TaskTimes(median(surveys), median(rates), median(openings), median(finishes))


def simulate(
    kernels: int, workers: int, budget: int, slice_: int, tasks: TaskTimes, head: HeadTimes, seed: int = 0
) -> Simulated:
    """A fleet of so many kernels, which gain like searches do: much at first, then ever less."""
    rng = random.Random(seed)
    scale = [rng.lognormvariate(0.0, _SPREAD) for _ in range(kernels)]
    weights = [rng.lognormvariate(0.0, 1.5) for _ in range(kernels)]
    most = [rng.uniform(0.0, 0.25) for _ in range(kernels)]
    whole = sum(weights)
    standings = {str(n): Standing(weights[n] / whole, most[n]) for n in range(kernels)}
    clock = _Clock([0.0] * workers)
    clock.carry_out([tasks.survey * one for one in scale], head.task)
    left, width, rounds = budget * kernels // slice_, max(1, round(WIDTH * kernels)), 0
    while chosen := next_round(standings, left, width):
        clock.decide(head.kernel * kernels)
        rounds, left = rounds + 1, left - len(chosen)
        of_slice = tasks.opening + slice_ * tasks.evaluation
        clock.carry_out([scale[int(n)] * of_slice for n in chosen], head.task)
        for name in chosen:
            one = standings[name]
            done = len(one.gains) + 1
            gain = one.headroom * done / (done + _HALF) * (0.5 + rng.random() / 2)
            standings[name] = replace(one, gains=(*one.gains, max(one.gains[-1] if one.gains else 0.0, gain)))
    clock.decide(head.kernel * kernels)
    played = sum(bool(one.gains) for one in standings.values())
    clock.carry_out([tasks.finish * one for one in scale[:played]], head.task)
    evaluations = slice_ * sum(len(one.gains) for one in standings.values())
    end = max(clock.head, clock.done)
    return Simulated(
        kernels,
        workers,
        clock.tasks,
        rounds,
        evaluations,
        end / 3600,
        clock.work / (workers * end),
        clock.head_busy / end,
        clock.tasks * head.task_bytes,
        clock.tasks * head.journal_bytes,
        evaluations * LOG_BYTES + kernels * RUN_BYTES,
    )
