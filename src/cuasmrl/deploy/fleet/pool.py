"""Processes of this machine that carry out tasks; one that dies or hangs costs its task another attempt."""

from __future__ import annotations

import multiprocessing
import signal
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from typing import Any, Protocol, TypeAlias

from cuasmrl.deploy.fleet.tasks import Answer, Task, carry_out
from cuasmrl.errors import CuasmrlError
from cuasmrl.gpu.devices.pool.crew import check_workers, end_with_parent
from cuasmrl.optimize.runs.log import BusyError

ATTEMPTS = 4
"""Of a task whose worker dies or hangs."""
PATIENCE = 3600.0
"""Seconds before a worker counts as hung."""
_LOOK = 1.0
_ORPHANED = 60.0
_STARTING = 300.0
"""Seconds that a worker may take to start."""


@dataclass(frozen=True)
class Failed:
    """A task that cannot be done; the others go on."""

    reason: str


Done: TypeAlias = Callable[[Task, "Answer | Failed", float], None]
"""The seconds are those of the last attempt."""


Work: TypeAlias = Callable[[Task], "Answer | Failed"]


class Pool(Protocol):
    @property
    def width(self) -> int:
        """Tasks that it carries out at a time."""

    def carry_out(self, tasks: Sequence[Task], done: Done) -> None:
        """All of them, in any order; `done` hears of each once."""

    def close(self) -> None: ...


def attempted(task: Task, carry_out: Callable[[Task], Answer] = carry_out) -> Answer | Failed:
    """A run that is still written by a worker whose head is gone is waited for: it ends in a moment."""
    end = time.monotonic() + _ORPHANED
    while True:
        try:
            return carry_out(task)
        except BusyError as error:
            if time.monotonic() > end:
                return Failed(str(error))
            time.sleep(_LOOK)
        except CuasmrlError as error:
            return Failed(str(error))


class Alone:
    """No other process: for one worker."""

    width = 1

    def __init__(self, work: Work = attempted) -> None:
        self._work = work

    def carry_out(self, tasks: Sequence[Task], done: Done) -> None:
        for task in tasks:
            start = time.monotonic()
            done(task, self._work(task), time.monotonic() - start)

    def close(self) -> None: ...


@dataclass(eq=False)
class _Worker:
    process: SpawnProcess
    connection: Connection[Any, Any]
    task: Task | None = None
    since: float = 0.0
    patience: float = _STARTING


class Processes:
    """So many of this machine."""

    def __init__(self, width: int, patience: float = PATIENCE, work: Work = attempted) -> None:
        """`work` is what a worker does with a task."""
        check_workers(width)
        self._work = work
        self.width = width
        self.patience = patience
        self._workers: list[_Worker] = []

    def carry_out(self, tasks: Sequence[Task], done: Done) -> None:
        waiting = deque((task, 1) for task in tasks)
        attempts: dict[int, int] = {}
        while waiting or any(worker.task is not None for worker in self._workers):
            self._give(waiting, attempts)
            busy = [worker for worker in self._workers if worker.task is not None]
            wait([worker.connection for worker in busy], _LOOK)
            for worker in busy:
                answer = self._answer(worker)
                task, attempt = worker.task, attempts[id(worker)]
                if answer is None or task is None:
                    continue
                worker.task = None
                if isinstance(answer, _Lost):
                    self._remove(worker)
                    if attempt < ATTEMPTS:
                        waiting.append((task, attempt + 1))
                        continue
                    answer = Failed(f"{answer.reason}, {attempt} times")
                done(task, answer, time.monotonic() - worker.since)

    def close(self) -> None:
        for worker in list(self._workers):
            self._remove(worker)

    def _give(self, waiting: deque[tuple[Task, int]], attempts: dict[int, int]) -> None:
        while waiting:
            worker = next((one for one in self._workers if one.task is None), None)
            if worker is None:
                if len(self._workers) == self.width:
                    return
                worker = self._start()
            task, attempt = waiting.popleft()
            worker.task, worker.since = task, time.monotonic()
            attempts[id(worker)] = attempt
            try:
                worker.connection.send(task)
            except OSError:
                # It died between two tasks; that is seen where its answer is waited for.
                continue

    def _answer(self, worker: _Worker) -> Answer | Failed | _Lost | None:
        """None as long as there is none."""
        try:
            if worker.connection.poll():
                answer: Answer | Failed | _Ready = worker.connection.recv()
                if not isinstance(answer, _Ready):
                    return answer
                # Starting it, with all its imports, is not the task's time.
                worker.since, worker.patience = time.monotonic(), self.patience
                return None
        except (EOFError, OSError):
            worker.process.join(_LOOK)
            return _Lost(f"the worker ended with status {worker.process.exitcode}")
        if time.monotonic() - worker.since > worker.patience:
            return _Lost(f"the worker gave no answer in {worker.patience:.0f} s")
        return None

    def _start(self) -> _Worker:
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        process = context.Process(target=serve, args=(theirs, self._work), name="cuasmrl-worker", daemon=True)
        process.start()
        theirs.close()
        worker = _Worker(process, ours)
        self._workers.append(worker)
        return worker

    def _remove(self, worker: _Worker) -> None:
        self._workers.remove(worker)
        worker.connection.close()
        worker.process.kill()
        worker.process.join()


@dataclass(frozen=True)
class _Lost:
    reason: str


class _Ready:
    """The first that a worker says."""


def serve(connection: Connection[Any, Any], work: Work) -> None:
    """The other side: a task, its answer, the next one."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # It would go on writing to a run that the next head continues.
    end_with_parent()
    try:
        connection.send(_Ready())
        while True:
            connection.send(work(connection.recv()))
    except (EOFError, OSError):
        # Nobody asks any more.
        return
