"""Tasks that play for real, with logs and run directories, on a device that draws times from schedules."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from cuasmrl import workloads
from cuasmrl.agents import AGENTS
from cuasmrl.deploy.fleet.pool import Failed, attempted
from cuasmrl.deploy.fleet.tasks import Answer, Finish, Finished, Job, Play, Survey, Surveyed, Task
from cuasmrl.deploy.store import Store
from cuasmrl.gpu.devices import Rival
from cuasmrl.gpu.launches import as_json, describe
from cuasmrl.gpu.timing.uncertainty import Gain
from cuasmrl.optimize.slices import play_slice
from cuasmrl.optimize.subject import Subject, prepare
from cuasmrl.schedule import Schedule
from tests.climbing import CONFIG, NAME, SIZES

PAUSE = 0.005
"""Seconds an evaluation takes."""
GIVEN: dict[str, Any] = {"agent": "climber", "seed": 0, "device": "virtual:a100"}
CONFIGS = (CONFIG, "m64n64k32_w4_s3", "m64n64k64_w4_s4")
ROOMS = (20.0, 2.0, 0.0)
"""Of the recorded kernels in turn: cycles by which a schedule is drawn faster on average, out of 1000."""


class DrawnTimer:
    """A schedule's time follows from its key, so it is the same on every worker.

    Where there is room a faster one is to be found for ever, so what a kernel gains goes by its room, not by
    which keys its schedules happen to have.
    """

    device, unit, finalists, cost = "virtual:a100", "drawn", 6, 1.0

    def __init__(self, room: float) -> None:
        self.room = room

    def time(self, schedule: Schedule, rival: Rival | None = None) -> float:
        time.sleep(PAUSE)
        return 1000.0 + self.room * math.log((1 + int.from_bytes(schedule.key[:4], "little")) / 2**32)

    def times(self, schedules: Sequence[Schedule], rival: Rival | None = None) -> list[float]:
        return [self.time(schedule) for schedule in schedules]

    def pick(self, old: Schedule, candidates: Sequence[Schedule]) -> Schedule:
        return min(candidates, key=self.time)

    def confirm(self, old: Schedule, new: Schedule) -> Gain:
        raise NotImplementedError


def recorded_store(root: Path, kernels: int = 3) -> Store:
    """Of a program that launches some products of matrices."""
    store = Store(root)
    workload = workloads.get(NAME)
    for name in CONFIGS[:kernels]:
        built = workload.build(workload.config(name), 80, SIZES)
        launch = workload.launch(built, workload.inputs(SIZES), SIZES)
        store.record(built.cubin, [as_json(describe(launch, built.kernel))], {"device": "virtual:a100"})
    return store


@lru_cache(maxsize=4)
def _subject(store: str, key: str, kernel: str, files: tuple[str, ...]) -> Subject:
    return prepare(Job(store, "", key, kernel, files, GIVEN).request(1), lambda done, total: None)


def _timer(job: Job) -> DrawnTimer:
    keys = [recorded.key for recorded in Store(job.store).recorded()]
    return DrawnTimer(ROOMS[keys.index(job.key)])


def carry_out(task: Task) -> Answer:
    AGENTS.modules["climber"] = "tests.climbing:Climber"
    job = task.job
    subject = _subject(job.store, job.key, job.kernel, job.files)
    match task:
        case Survey():
            return Surveyed(1000.0 + len(job.key), 0.2)
        case Play(_, budget):
            return play_slice(job.request(budget), job.run, subject, _timer(job))
        case Finish(_, budget):
            found = play_slice(job.request(budget), job.run, subject, _timer(job))
            return Finished(True, False, found.gain, "drawn", found.best)


def work(task: Task) -> Answer | Failed:
    return attempted(task, carry_out)
