"""Ray without Ray: tasks are threads, nodes are names."""

from __future__ import annotations

import sys
import threading
import types
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest


class RayError(Exception):
    """As `ray.exceptions.RayError`."""


class RayTaskError(RayError):
    """As `ray.exceptions.RayTaskError`: the function failed."""

    def __init__(self, cause: Exception) -> None:
        super().__init__(str(cause))
        self.cause = cause


class WorkerCrashedError(RayError):
    pass


@dataclass(eq=False)
class Task:
    thread: threading.Thread
    options: dict[str, Any]
    answer: list[Any] = field(default_factory=list)
    lost: bool = False


class _Remote:
    def __init__(self, ray: FakeRay, function: Callable[..., Any], options: dict[str, Any]) -> None:
        self._ray, self._function, self._options = ray, function, options

    def options(self, **more: Any) -> _Remote:
        return _Remote(self._ray, self._function, {**self._options, **more})

    def remote(self, *arguments: Any) -> Task:
        def run() -> None:
            strategy = self._options.get("scheduling_strategy")
            blind = strategy is not None and strategy in self._ray.blind
            try:
                task.answer.append(False if blind else self._function(*arguments))
            except Exception as error:
                task.answer.append(RayTaskError(error))

        task = Task(threading.Thread(target=run, daemon=True), self._options)
        self._ray.tasks.append(task)
        if len([one for one in self._ray.tasks if one.thread.is_alive()]) < self._ray.processors:
            task.thread.start()
        return task


class FakeRay(types.ModuleType):
    """The module; `install` puts it where `import ray` finds it."""

    __version__ = "2.60.0"

    def __init__(self, processors: int = 2, refusal: Exception | None = None) -> None:
        super().__init__("ray")
        self.processors = processors
        self.gpus = 0
        self.refusal = refusal
        self.blind: set[str] = set()
        """Nodes that do not see the files of this one."""
        self.tasks: list[Task] = []
        self.losses = 0
        """So many of the next answers never arrive."""
        self.up = False
        self.given: dict[str, Any] = {}
        self.exceptions = types.SimpleNamespace(
            RayError=RayError, RayTaskError=RayTaskError, LocalRayletDiedError=RayError
        )
        affinity = types.SimpleNamespace(NodeAffinitySchedulingStrategy=lambda node, soft: node)
        self.util = types.ModuleType("ray.util")
        self.util.get_node_ip_address = lambda: "127.0.0.1"  # type: ignore[attr-defined]
        self.util.scheduling_strategies = affinity  # type: ignore[attr-defined]

    def install(self, monkeypatch: pytest.MonkeyPatch) -> FakeRay:
        strategies = types.ModuleType("ray.util.scheduling_strategies")
        for name, module in (("ray", self), ("ray.util", self.util), (strategies.__name__, strategies)):
            monkeypatch.setitem(sys.modules, name, module)
        return self

    def is_initialized(self) -> bool:
        return self.up

    def init(self, **given: Any) -> None:
        if self.refusal is not None:
            raise self.refusal
        self.up, self.given = True, given

    def shutdown(self) -> None:
        self.up = False

    def cluster_resources(self) -> dict[str, float]:
        return {"CPU": float(self.processors), "GPU": float(self.gpus)}

    def nodes(self) -> list[dict[str, Any]]:
        return [{"NodeID": f"node-{n}", "Alive": True} for n in range(self.processors)]

    def remote(self, function: Callable[..., Any]) -> _Remote:
        return _Remote(self, function, {})

    def wait(
        self, tasks: Sequence[Task], timeout: float, num_returns: int = 1
    ) -> tuple[list[Task], list[Task]]:
        done = [task for task in tasks if task.lost or task.answer]
        return done, [task for task in tasks if task not in done]

    def get(self, task: Task) -> Any:
        if task.lost:
            raise WorkerCrashedError
        task.thread.join()
        if self.losses:
            self.losses -= 1
            raise WorkerCrashedError
        if isinstance(task.answer[0], RayTaskError):
            raise task.answer[0]
        return task.answer[0]

    def cancel(self, task: Task, force: bool) -> None:
        task.lost = True
