"""Workers without processes: threads of this one that serve as others do, and misbehave when told to."""

from __future__ import annotations

import multiprocessing
import threading
from collections.abc import Callable
from typing import Any

from cuasmrl.gpu.devices.pool.crew import Seat
from cuasmrl.gpu.devices.pool.messages import Line
from cuasmrl.gpu.devices.pool.worker import serve

Serve = Callable[[Line, int], None]


class _Thread:
    pid = None

    def __init__(self, number: int, work: Serve) -> None:
        self.number = number
        self.line, self._theirs = multiprocessing.Pipe()
        self._reason: str | None = None
        self._thread = threading.Thread(target=self._run, args=(work,), daemon=True)
        self._thread.start()

    def ending(self) -> str | None:
        return self._reason

    def dismiss(self) -> None:
        self.line.close()

    def _run(self, work: Serve) -> None:
        work(self._theirs, self.number)
        self._theirs.close()
        self._reason = "ended"


class Threads:
    """`works` says what each in turn does; those behind the last one work as they should."""

    own_gpus = False

    def __init__(self, width: int, *works: Serve) -> None:
        self.width = width
        self.works = list(works)
        self.recruited = 0

    def recruit(self, number: int) -> Seat:
        self.recruited += 1
        return _Thread(number, self.works.pop(0) if self.works else serve)

    def close(self) -> None: ...


class _Counted:
    """A line that does something at a question: `read` of the pipe is what a worker sees."""

    def __init__(self, line: Line, last: int, then: Callable[[], Any]) -> None:
        self._line, self._left, self._then = line, last, then

    def recv_bytes(self) -> bytes:
        data = self._line.recv_bytes()
        self._left -= 1
        if self._left < 0:
            self._then()
        return data

    def __getattr__(self, name: str) -> Any:
        return getattr(self._line, name)


def dies_at(question: int) -> Serve:
    """It ends when it is given the question of that number, counted from 1; the device comes before."""

    def end() -> None:
        raise EOFError

    return lambda line, number: serve(_Counted(line, question, end), number)  # type: ignore[arg-type]


def hangs_at(question: int) -> Serve:
    """It does not answer any more."""
    return lambda line, number: serve(_Counted(line, question, threading.Event().wait), number)  # type: ignore[arg-type]


def ends_at_once(line: Line, number: int) -> None:
    """It does not even start."""
