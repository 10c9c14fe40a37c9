"""Something that happens at a chosen step of what a process does to files: it dies, or the disk is full."""

import builtins
import errno
import io
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

STEPS = ("open", "replace", "rename", "unlink", "fsync", "makedirs", "mkdir", "listdir", "close")


def dies() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def disk_is_full() -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def disk_is_read_only() -> None:
    raise OSError(errno.EROFS, os.strerror(errno.EROFS))


class Steps:
    """Counts calls to the operating system and acts before the one of a given number."""

    def __init__(self, fatal: int | None, act: Callable[[], None], forever: bool) -> None:
        self.done = 0
        self._fatal = fatal
        self._forever = forever
        self._act = act

    def step(self) -> None:
        number = self.done
        self.done += 1
        if self._fatal is not None and (number == self._fatal or (self._forever and number > self._fatal)):
            self._act()


@contextmanager
def fault(
    fatal: int | None, act: Callable[[], None], writers_only: bool = False, forever: bool = False
) -> Iterator[Steps]:
    """`act` before step `fatal`, with `forever` before all after it too; half a write is a step by itself."""
    steps, real_open = Steps(fatal, act, forever), builtins.open
    with pytest.MonkeyPatch.context() as patch:
        for name in STEPS:
            if not (writers_only and name in ("listdir", "close")):
                patch.setattr(os, name, _counted(steps, getattr(os, name), name))

        def opened(file: Any, mode: str = "r", *arguments: Any, **named: Any) -> Any:
            if "w" in mode:
                steps.step()
                return _HalfWriter(steps, real_open(file, mode, *arguments, **named))
            return real_open(file, mode, *arguments, **named)

        for module in (builtins, io):
            patch.setattr(module, "open", opened)
        yield steps


def _counted(steps: Steps, real: Callable[..., Any], name: str) -> Callable[..., Any]:
    def call(*arguments: Any, **named: Any) -> Any:
        # Reading fails in other ways than writing; closing happens whatever comes.
        reads = name == "open" and not arguments[1] & (os.O_CREAT | os.O_WRONLY | os.O_RDWR)
        if not reads:
            steps.step()
        # Waiting for the disk would only slow the test down: no machine dies in it.
        return None if name == "fsync" else real(*arguments, **named)

    return call


class _HalfWriter:
    def __init__(self, steps: Steps, file: Any) -> None:
        self._steps = steps
        self._file = file

    def write(self, data: bytes) -> int:
        half = len(data) // 2
        self._file.write(data[:half])
        self._file.flush()
        self._steps.step()
        self._file.write(data[half:])
        return len(data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def __enter__(self) -> "_HalfWriter":
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
