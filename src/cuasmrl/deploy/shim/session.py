"""A program run with the shims in its environment, and what they did for it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cuasmrl.deploy.shim.environment import Prepared, prepare
from cuasmrl.deploy.shim.folders import home
from cuasmrl.deploy.shim.substitute import EVENTS, SESSION
from cuasmrl.deploy.store import Store
from cuasmrl.deploy.triton.modes import Mode
from cuasmrl.errors import CuasmrlError

_FORWARDED = (signal.SIGTERM, signal.SIGHUP)
_LEFT_TO_PROGRAM = (signal.SIGINT, signal.SIGQUIT)


@dataclass(frozen=True)
class Outcome:
    status: int
    """Of the program; negative for the signal that ended it."""
    events: tuple[Mapping[str, Any], ...]
    """What the shims noted down: each compiled cubin, and each doubt."""
    problems: tuple[str, ...]
    """Tools that could not be stood in for."""

    @property
    def compiled(self) -> int:
        return sum("output" in event for event in self.events)

    @property
    def used(self) -> int:
        return sum(bool(event["used"]) for event in self.events)

    @property
    def recorded(self) -> int:
        return sum(bool(event.get("recorded")) for event in self.events)

    @property
    def doubts(self) -> Counter[str]:
        """Why ptxas's own code was kept although there may have been better, and how often."""
        return Counter(str(event["reason"]) for event in self.events if event["doubt"])

    @property
    def sentence(self) -> str:
        if not self.events:
            return "no cubin was compiled by ptxas (all cached, or compiled in another way: cuasmrl doctor)"
        cubins = "1 cubin" if self.compiled == 1 else f"{self.compiled} cubins"
        recorded = f", {self.recorded} recorded" if self.recorded else ""
        doubts = "".join(f"; {count} in doubt: {why}" for why, count in self.doubts.most_common())
        return f"{cubins} compiled, {self.used} from the store{recorded}{doubts}"

    def as_dict(self) -> dict[str, Any]:
        return {
            "status": self.status,
            "compiled": self.compiled,
            "from_store": self.used,
            "recorded": self.recorded,
            "doubts": dict(self.doubts),
            "problems": list(self.problems),
            "events": list(self.events),
        }


def prepared(store: Store, mode: Mode, chip: str | None = None) -> Prepared:
    return prepare(home(), store, mode, chip)


def run(command: Sequence[str], store: Store, mode: Mode, chip: str | None = None) -> Outcome:
    """Run a program to its end; its input, output and terminal are its own."""
    with tempfile.TemporaryDirectory(prefix="cuasmrl-run-", ignore_cleanup_errors=True) as session:
        ready = prepared(store, mode, chip)
        status = _run(command, {**os.environ, **ready.changes, SESSION: session})
        return Outcome(status, _events(Path(session) / EVENTS), ready.problems)


def _run(command: Sequence[str], environment: Mapping[str, str]) -> int:
    try:
        program = subprocess.Popen(command, env=environment)
    except OSError as error:
        raise CuasmrlError(f"cannot run {command[0]}: {error.strerror}") from error
    # What a terminal sends reaches the program by itself, and it decides whether to end.
    before = {number: signal.signal(number, signal.SIG_IGN) for number in _LEFT_TO_PROGRAM}
    before |= {
        number: signal.signal(number, lambda got, _: program.send_signal(got)) for number in _FORWARDED
    }
    try:
        return program.wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _events(log: Path) -> tuple[Mapping[str, Any], ...]:
    try:
        lines = log.read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError):
        return ()
    events = []
    for line in lines:
        # A shim that is killed, or a full disk, may leave half a line.
        with suppress(ValueError):
            events.append(json.loads(line))
    return tuple(events)
