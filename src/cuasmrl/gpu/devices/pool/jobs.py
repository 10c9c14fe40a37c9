"""Functions carried out by many workers, here or on a Ray cluster: games, lessons, whatever takes seconds.

An `Executor` as the standard library has them, but for this: a worker that dies costs its job another
attempt, and the others nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from cuasmrl.errors import CuasmrlError
from cuasmrl.gpu.devices.pool.cluster import check_shared, connected

ATTEMPTS = 4
"""Of a job whose worker dies."""


class LostError(Exception):
    """The worker died, and what it was at may be tried again; the text says how it died."""


Attempt = Callable[..., Any]


class Jobs(Executor):
    """A thread for each worker, which waits for it and tries again."""

    def __init__(self, width: int, attempt: Attempt, close: Callable[[], None]) -> None:
        """`attempt` is given a function and its arguments, and raises `LostError`."""
        self.width = width
        self._attempt = attempt
        self._close = close
        self._threads = ThreadPoolExecutor(width, thread_name_prefix="cuasmrl-job")

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        return self._threads.submit(self._carried_out, fn, *args, **kwargs)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        self._threads.shutdown(wait, cancel_futures=cancel_futures)
        self._close()

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        """Whoever is interrupted does not want what has not begun."""
        self.shutdown(cancel_futures=kind is not None)

    def _carried_out(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        for _ in range(ATTEMPTS):
            try:
                return self._attempt(fn, *args, **kwargs)
            except LostError as error:
                ending = str(error)
        raise CuasmrlError(f"{ATTEMPTS} workers in turn were lost over one job: the last one {ending}")


class _Own(threading.local):
    """The process of each thread."""

    process: ProcessPoolExecutor | None = None


def here(width: int) -> Jobs:
    """On processes of this machine."""
    own, every = _Own(), list[ProcessPoolExecutor]()

    def attempt(fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        if own.process is None:
            own.process = ProcessPoolExecutor(1, get_context("spawn"))
            every.append(own.process)
        try:
            return own.process.submit(fn, *args, **kwargs).result()
        except BrokenProcessPool as error:
            own.process = None
            raise LostError("ended before it had answered") from error

    def close() -> None:
        for process in every:
            process.shutdown()

    return Jobs(width, attempt, close)


def on_ray(address: str | None = None, shared: Sequence[Path] = ()) -> Jobs:
    """On a cluster, as many at a time as it has processors; all nodes have to see the `shared` folders."""
    ray = connected(address)
    for folder in shared:
        check_shared(ray, folder)

    def attempt(fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        task = ray.remote(fn).options(max_retries=0, num_cpus=1)
        try:
            return ray.get(task.remote(*args, **kwargs))
        except ray.exceptions.RayTaskError as error:
            # It ran, and failed by itself.
            raise error.cause from None
        except ray.exceptions.RayError as error:
            raise LostError(f"was lost on Ray ({type(error).__name__})") from error

    return Jobs(max(1, int(ray.cluster_resources().get("CPU", 1))), attempt, ray.shutdown)


def jobs_of(width: int, on: str | None, shared: Sequence[Path] = ()) -> Jobs:
    """Processes of this machine, or a cluster: `ray` for one of this machine, else its address."""
    return here(width) if on is None else on_ray(None if on == "ray" else on, shared)
