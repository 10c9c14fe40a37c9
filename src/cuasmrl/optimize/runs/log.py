"""The log of a run: one line for every schedule that a device has timed, in the order in which it was asked.

A line goes to the system in one piece before play goes on, so a process that is killed loses at most the line
it was writing; an unfinished last line is dropped when the log is opened again.
"""

from __future__ import annotations

import fcntl
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from cuasmrl.errors import CuasmrlError
from cuasmrl.game import Evaluation


@dataclass(frozen=True)
class _Reading:
    evaluations: list[Evaluation]
    length: int
    """Bytes of the lines that are whole."""


class BusyError(CuasmrlError):
    """Somebody else writes to the log now."""


class Log:
    """Append-only. Evaluation 0 is the original."""

    def __init__(self, path: Path) -> None:
        """Open or create; what is there already is expected to come again in the same order."""
        self.path = path
        self._file = _open_alone(path)
        reading = _read(path)
        self._file.truncate(reading.length)
        self.found = tuple(reading.evaluations)
        self._next = 0

    @property
    def known(self) -> dict[bytes, float]:
        """Times to be taken instead of asking the device."""
        return {evaluation.key: evaluation.time for evaluation in self.found}

    def record(self, evaluation: Evaluation) -> None:
        """Append, or see the evaluation that the log has at this place come again."""
        if self._next < len(self.found):
            if self.found[self._next] != evaluation:
                raise CuasmrlError(
                    f"{self.path}: evaluation {self.found[self._next].number} was another one before the run "
                    "stopped, so it cannot be continued; the software has changed, start another run"
                )
        else:
            self._file.write(_line(evaluation))
        self._next += 1

    def close(self) -> None:
        self._file.close()


def read_log(path: Path) -> tuple[Evaluation, ...]:
    """The evaluations of a run, also while it is going on."""
    return tuple(_read(path).evaluations)


def _open_alone(path: Path) -> IO[bytes]:
    """Unbuffered, and locked until this process ends, however it ends."""
    try:
        file = path.open("ab", buffering=0)
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        raise BusyError(f"{path} is being written by another process; wait for it, or end it") from None
    except OSError as error:
        raise CuasmrlError(f"cannot write {path}: {error.strerror}; choose a writable place") from error
    return file


def _line(evaluation: Evaluation) -> bytes:
    # JSON knows no infinity: a schedule that the device could not time has none.
    time = evaluation.time if math.isfinite(evaluation.time) else None
    data = {"number": evaluation.number, "key": evaluation.key.hex(), "time": time,
            "is_best": evaluation.is_best}  # fmt: skip
    return json.dumps(data).encode() + b"\n"


def _read(path: Path) -> _Reading:
    lines = path.read_bytes().splitlines(keepends=True)
    evaluations: list[Evaluation] = []
    length = 0
    for evaluation, line in _parsed(path, lines):
        evaluations.append(evaluation)
        length += len(line)
    return _Reading(evaluations, length)


def _parsed(path: Path, lines: list[bytes]) -> Iterator[tuple[Evaluation, bytes]]:
    for number, line in enumerate(lines):
        evaluation = _evaluation(line, number)
        if evaluation is not None:
            yield evaluation, line
        elif number + 1 < len(lines):
            raise CuasmrlError(f"{path}, line {number + 1} is damaged, so the run cannot be continued")


def _evaluation(line: bytes, number: int) -> Evaluation | None:
    """None if the line is not whole."""
    if not line.endswith(b"\n"):
        return None
    try:
        data = json.loads(line)
        time = math.inf if data["time"] is None else float(data["time"])
        found = Evaluation(int(data["number"]), bytes.fromhex(data["key"]), time, bool(data["is_best"]))
    except (ValueError, KeyError, TypeError):
        return None
    return found if found.number == number and not math.isnan(time) else None
