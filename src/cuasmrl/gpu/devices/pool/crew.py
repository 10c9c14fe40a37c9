"""Where workers are: processes of this machine. `on_ray` finds them places on a cluster."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from dataclasses import dataclass, field
from multiprocessing.context import SpawnProcess
from typing import Protocol

from cuasmrl.errors import CuasmrlError
from cuasmrl.gpu.devices.pool.messages import Line
from cuasmrl.gpu.devices.pool.worker import serve

WORKER_BYTES = 1 << 30
"""What a worker may need: the trace of a kernel, its model, compiled code."""
_LOOK = 1.0


class Seat(Protocol):
    """A worker, from when it is asked for until it is dismissed."""

    number: int

    @property
    def line(self) -> Line | None:
        """None as long as it has not come."""

    @property
    def pid(self) -> int | None:
        """Of a process of this machine."""

    def ending(self) -> str | None:
        """Why it is gone, in words; None while it lives."""

    def dismiss(self) -> None:
        """End it now."""


class Crew(Protocol):
    own_gpus: bool
    """Does every worker see GPUs of its own?"""

    @property
    def width(self) -> int:
        """How many workers there should be."""

    def recruit(self, number: int) -> Seat:
        """Ask for one; this does not wait for it."""

    def close(self) -> None: ...


def cores() -> int:
    """Of this process."""
    return len(os.sched_getaffinity(0))


def check_workers(width: int) -> None:
    """Refuse what cannot be before anything is played."""
    if width < 1:
        raise CuasmrlError(f"--workers {width} leaves nobody to work; give at least 1")
    check_memory(width)


def check_memory(width: int) -> None:
    """Refuse more workers than the memory that is free now can hold."""
    free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    able = max(1, int(free // WORKER_BYTES))
    if width > able:
        raise CuasmrlError(
            f"{width} workers may need {width * WORKER_BYTES >> 30} GiB, and {free >> 30} GiB are free; "
            f"give --workers {able}"
        )


@dataclass(eq=False)
class _Process:
    number: int
    line: Line
    process: SpawnProcess = field(repr=False)

    @property
    def pid(self) -> int | None:
        return self.process.pid

    def ending(self) -> str | None:
        status = self.process.exitcode
        if status is None:
            return None
        return f"ended by signal {-status}" if status < 0 else f"ended with status {status}"

    def dismiss(self) -> None:
        self.line.close()
        self.process.kill()
        self.process.join()


class Alone:
    """Nobody but this process, which then uses one core."""

    own_gpus, width = False, 1

    def recruit(self, number: int) -> Seat:
        raise AssertionError("whoever is alone recruits nobody")

    def close(self) -> None: ...


class Processes:
    """Of this machine."""

    own_gpus = False

    def __init__(self, width: int, daemon: bool = True) -> None:
        """Workers that have processes of their own, as on a GPU, cannot be daemons."""
        check_workers(width)
        self._width = width
        self._daemon = daemon

    @property
    def width(self) -> int:
        return self._width

    def recruit(self, number: int) -> Seat:
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        name = f"cuasmrl-worker-{number}"
        process = context.Process(target=_work, args=(theirs, number), name=name, daemon=self._daemon)
        process.start()
        theirs.close()
        return _Process(number, ours, process)

    def close(self) -> None:
        """Seats are dismissed by whoever recruited them."""


def _work(line: Line, number: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with_parent()
    serve(line, number)


def end_with_parent() -> None:
    """A worker whose head was killed has nobody to work for."""
    threading.Thread(target=_watch, args=(os.getppid(),), daemon=True).start()


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_LOOK)
    os._exit(1)
