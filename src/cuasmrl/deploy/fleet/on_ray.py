"""Workers on a Ray cluster: Ray finds a place for each task, and says when one is lost.

Ray's own retries are off: what is tried again, and how often, is the same here as with processes.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cuasmrl.deploy.fleet.pool import ATTEMPTS, PATIENCE, Done, Failed, Work, attempted
from cuasmrl.deploy.fleet.tasks import Answer, Task
from cuasmrl.gpu.devices.pool.cluster import check_shared, connected

_LOOK = 1.0


class _NodeLostError(Exception):
    """The node by which this process speaks to the cluster."""


@dataclass(frozen=True)
class _Running:
    task: Task
    attempt: int
    since: float


class OnRay:
    """As many tasks at a time as the cluster has processors, however many nodes they are on."""

    _ray: Any = None

    def __init__(
        self,
        address: str | None = None,
        shared: Sequence[Path] = (),
        patience: float = PATIENCE,
        work: Work = attempted,
    ) -> None:
        """`shared` are folders that every worker has to see; `work` is what one does with a task."""
        self._address, self._work = address, work
        self.patience = patience
        self._connect()
        for folder in shared:
            check_shared(self._ray, folder)

    @property
    def width(self) -> int:
        """Nodes come and go."""
        return max(1, int(self._ray.cluster_resources().get("CPU", 1)))

    def carry_out(self, tasks: Sequence[Task], done: Done) -> None:
        waiting = deque((task, 1) for task in tasks)
        running: dict[Any, _Running] = {}
        while waiting or running:
            try:
                self._step(waiting, running, done)
            except _NodeLostError:
                # What ran for the connection that is gone ends with it, and counts as not begun.
                waiting.extendleft((one.task, one.attempt) for one in running.values())
                running.clear()
                self._connect()

    def _step(self, waiting: deque[tuple[Task, int]], running: dict[Any, _Running], done: Done) -> None:
        """Give out what there is room for, and look once for answers."""
        while waiting and len(running) < self.width:
            task, attempt = waiting.popleft()
            running[self._task.remote(task)] = _Running(task, attempt, time.monotonic())
        ready, late = self._ray.wait(list(running), num_returns=1, timeout=_LOOK)
        for reference in ready:
            answer, one = self._answer(reference), running.pop(reference)
            if isinstance(answer, str) and one.attempt < ATTEMPTS:
                waiting.append((one.task, one.attempt + 1))
                continue
            final = Failed(f"{answer}, {one.attempt} times") if isinstance(answer, str) else answer
            done(one.task, final, time.monotonic() - one.since)
        for reference in late:
            if time.monotonic() - running[reference].since > self.patience:
                self._ray.cancel(reference, force=True)

    def close(self) -> None:
        self._ray.shutdown()

    def _connect(self) -> None:
        """Also again, where the node that this process was connected to is gone."""
        if self._ray is not None:
            self._ray.shutdown()
        self._ray = connected(self._address)
        self._task = self._ray.remote(self._work).options(max_retries=0, num_cpus=1)

    def _answer(self, reference: Any) -> Answer | Failed | str:
        """In words if the worker or its node was lost."""
        try:
            answer: Answer | Failed = self._ray.get(reference)
        except self._ray.exceptions.LocalRayletDiedError as error:
            raise _NodeLostError from error
        except self._ray.exceptions.RayError as error:
            return f"a worker on Ray was lost ({type(error).__name__})"
        return answer
