"""The directory of a run.

config.json        what was asked for
original.cubin     what is optimised
launch.json        how it is launched, if a launch file said so
effort.json        how much the virtual GPU replays to score a schedule, and how well that ranks them
log.jsonl          every evaluation
best.json          the best schedule so far, as the searching timer sees it
dropped.json       finalists that the device could not time when they were to be confirmed, and why
certificate.json   of the checker, for the best schedule
result.cubin       the best schedule, if it passed the gate
verdict.json       of the gate; written last, so where it is the run is over
explanation.json   the moves that mattered and the rules learned, once somebody has looked for them
report.html        all of it for people, once somebody has asked for it
tensorboard/       curves, if the agent logs any
twin.jsonl         a line for each batch and each fit, if the agent has a twin of the device
beliefs.json       what it believes of the device: numbers with intervals before and after
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from cuasmrl.binary.cubin import Cubin
from cuasmrl.binary.sass import Listing
from cuasmrl.errors import CuasmrlError
from cuasmrl.files import write_text
from cuasmrl.game import Evaluation
from cuasmrl.gpu.devices.effort import Effort
from cuasmrl.gpu.launches import LaunchRecord, save
from cuasmrl.optimize.runs.config import RunConfig
from cuasmrl.optimize.runs.log import Log, read_log
from cuasmrl.optimize.runs.schedules import schedule_from, schedule_to
from cuasmrl.schedule import Schedule

_CONFIG = "config.json"
_DROPPED = "dropped.json"
_EXPLANATION = "explanation.json"
_BELIEFS = "beliefs.json"
_PARTIAL = ".partial"


class RunDirectory:
    def __init__(self, path: Path, config: RunConfig) -> None:
        self.path = path
        self.config = config

    @staticmethod
    def create(path: Path, config: RunConfig) -> RunDirectory:
        """A new run; a directory with something in it is refused."""
        check_vacant(path)
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise CuasmrlError(
                f"cannot make {path}: {error.strerror}; choose a writable place with --run"
            ) from error
        write_text(path / _CONFIG, json.dumps(config.as_dict(), indent=1) + "\n")
        return RunDirectory(path, config)

    @staticmethod
    def open(path: Path) -> RunDirectory:
        """A run that was started before."""
        where = path / _CONFIG
        try:
            data = json.loads(where.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise CuasmrlError(f"{path} holds no run (there is no {_CONFIG}); start one with --run") from None
        except OSError as error:
            raise CuasmrlError(f"cannot read {where}: {error.strerror}") from error
        except ValueError as error:
            raise CuasmrlError(f"{where} is not JSON: {error}") from error
        return RunDirectory(path, RunConfig.parse(data, str(where)))

    def extend(self, budget: int) -> RunDirectory:
        """With more evaluations than it was started with; it is not over any more."""
        config = replace(self.config, budget=budget)
        write_text(self.path / _CONFIG, json.dumps(config.as_dict(), indent=1) + "\n")
        (self.path / "verdict.json").unlink(missing_ok=True)
        return RunDirectory(self.path, config)

    def open_log(self) -> Log:
        """For writing, by one process at a time."""
        log = Log(self.path / "log.jsonl")
        for stray in self.path.glob(f"*{_PARTIAL}"):
            # Only a process that was killed leaves these, and no other one writes here now.
            stray.unlink()
        return log

    def evaluations(self) -> tuple[Evaluation, ...]:
        return read_log(self.path / "log.jsonl")

    def keep_original(self, cubin: Cubin, launch: LaunchRecord | None) -> None:
        """What is optimised, so that a run can be looked at wherever it is."""
        cubin.save(self.path / "original.cubin")
        if launch is not None:
            save(self.path / "launch.json", launch)

    def keep_effort(self, effort: Effort) -> None:
        self._write("effort.json", asdict(effort))

    def original(self) -> Cubin:
        return Cubin.load(self.path / "original.cubin")

    def keep_best(self, schedule: Schedule, time: float) -> None:
        self._write("best.json", {"time": time, **schedule_to(schedule)})

    def best(self, listing: Listing) -> Schedule:
        """The best schedule so far."""
        return schedule_from(listing, self._read("best.json"), str(self.path / "best.json"))

    def drop(self, key: bytes, reason: str) -> None:
        """Note a finalist that fails, so that a run that goes on does not try it again."""
        dropped = {one.hex(): why for one, why in self.dropped().items()}
        self._write(_DROPPED, {**dropped, key.hex(): reason})

    def dropped(self) -> dict[bytes, str]:
        """By key, with the reason."""
        found = self._read(_DROPPED) if (self.path / _DROPPED).exists() else {}
        return {bytes.fromhex(key): str(reason) for key, reason in found.items()}

    def finish(
        self, verdict: dict[str, Any], certificate: dict[str, Any] | None, result: Cubin | None
    ) -> None:
        """Keep what came out; the result only if it is to be used."""
        if certificate is not None:
            self._write("certificate.json", certificate)
        if result is not None:
            result.save(self.path / "result.cubin")
        self._write("verdict.json", verdict)

    def verdict(self) -> dict[str, Any] | None:
        """None while the run is not over."""
        return self._read("verdict.json") if (self.path / "verdict.json").exists() else None

    def keep_explanation(self, explanation: dict[str, Any]) -> None:
        self._write(_EXPLANATION, explanation)

    def explanation(self) -> dict[str, Any] | None:
        """None if nobody has looked for one."""
        return self._read(_EXPLANATION) if (self.path / _EXPLANATION).exists() else None

    def beliefs(self) -> list[dict[str, Any]]:
        """Of the device, by an agent that has any."""
        found: list[dict[str, Any]] = self._read(_BELIEFS) if (self.path / _BELIEFS).exists() else []
        return found

    def _write(self, name: str, data: dict[str, Any]) -> None:
        write_text(self.path / name, json.dumps(data) + "\n")

    def _read(self, name: str) -> Any:
        where = self.path / name
        try:
            return json.loads(where.read_text(encoding="utf-8"))
        except OSError as error:
            raise CuasmrlError(f"cannot read {where}: {error.strerror}") from error
        except ValueError as error:
            raise CuasmrlError(f"{where} is not JSON: {error}") from error


def check_vacant(path: Path) -> None:
    """Refuse a place where a new run could not be kept, before any work is done for it."""
    try:
        # What a killed process was writing counts for nothing.
        taken = [entry for entry in os.listdir(path) if not entry.endswith(_PARTIAL)]
    except FileNotFoundError:
        taken = []
        parent = next(p for p in path.absolute().parents if p.exists())
        _check_writable(parent, path)
    except OSError as error:
        raise CuasmrlError(f"cannot use {path} for a run: {error.strerror}; choose another place") from error
    else:
        _check_writable(path, path)
    if taken:
        go_on = "continue it with --resume, or choose" if _CONFIG in taken else "choose"
        raise CuasmrlError(f"{path} is not empty; {go_on} another directory with --run")


def _check_writable(directory: Path, path: Path) -> None:
    if not os.access(directory, os.W_OK | os.X_OK):
        raise CuasmrlError(f"cannot write to {path}: permission denied; choose a writable place with --run")


def vacant(path: Path) -> Path:
    """This path, or the first of path-2, path-3, ... that nothing stands in the way of."""
    number, found = 1, path
    while found.exists():
        number += 1
        found = path.with_name(f"{path.name}-{number}")
    return found
