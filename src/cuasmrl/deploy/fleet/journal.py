"""What workers have answered, a line each, written before the head goes on: killed, it forgets nothing."""

from __future__ import annotations

import fcntl
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from cuasmrl.deploy.fleet.pool import Failed
from cuasmrl.deploy.fleet.tasks import Answer, Finish, Finished, Play, Survey, Surveyed, Task
from cuasmrl.errors import CuasmrlError
from cuasmrl.optimize.slices import Slice

_KINDS: dict[str, Any] = {kind.__name__: kind for kind in (Surveyed, Slice, Finished, Failed)}


def name_of(task: Task) -> str:
    """The same for the same task in every attempt."""
    match task:
        case Survey(job):
            return f"survey {job.name}"
        case Play(job, budget):
            return f"play {job.name} {budget}"
        case Finish(job, budget):
            return f"finish {job.name} {budget}"


class Journal:
    """Append-only; an unfinished last line is dropped."""

    def __init__(self, path: Path) -> None:
        try:
            self._file = path.open("ab", buffering=0)
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise CuasmrlError(f"{path} is written by another head; wait for it, or end it") from None
        except OSError as error:
            raise CuasmrlError(f"cannot write {path}: {error.strerror}; choose a writable place") from error
        self.known: dict[str, Answer | Failed] = {}
        length = 0
        for line in path.read_bytes().splitlines(keepends=True):
            if not line.endswith(b"\n"):
                break
            self._take(line, path)
            length += len(line)
        self._file.truncate(length)

    def keep(self, task: Task, answer: Answer | Failed, seconds: float) -> None:
        name = name_of(task)
        line = {"task": name, "kind": type(answer).__name__, "seconds": round(seconds, 3), **asdict(answer)}
        self._file.write(json.dumps(line).encode() + b"\n")
        self.known[name] = answer

    def close(self) -> None:
        self._file.close()

    def _take(self, line: bytes, path: Path) -> None:
        try:
            data = json.loads(line)
            name, kind, _ = data.pop("task"), _KINDS[data.pop("kind")], data.pop("seconds")
            self.known[name] = kind(**data)
        except (ValueError, KeyError, TypeError) as error:
            raise CuasmrlError(f"{path} is damaged: {error!r}; start another fleet with --run") from None
