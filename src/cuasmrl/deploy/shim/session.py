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
_NOTHING = (
    "no cubin was compiled by ptxas in this run (all cached, or compiled in another way: cuasmrl doctor)"
)


@dataclass(frozen=True)
class Noted:
    """Kernels that wait in a store, and their launches."""

    kernels: int = 0
    launches: int = 0

    def __str__(self) -> str:
        return f"{count(self.kernels, 'kernel')}, {count(self.launches, 'launch', 'launches')}"


def count(number: int, one: str, many: str | None = None) -> str:
    return f"{number} {one if number == 1 else many or f'{one}s'}"


@dataclass(frozen=True)
class Outcome:
    status: int
    """Of the program; negative for the signal that ended it."""
    events: tuple[Mapping[str, Any], ...]
    """What the shims noted down: each compiled cubin, and each doubt."""
    problems: tuple[str, ...]
    """Tools that could not be stood in for."""
    recorded: Noted | None = None
    """What is new in the store among the kernels that wait; None if nothing was to be recorded."""

    @property
    def compiled(self) -> int:
        """Cubins that ptxas has written in this run; what frameworks take from caches is not counted."""
        return sum("output" in event for event in self.events)

    @property
    def used(self) -> int:
        return sum(bool(event["used"]) for event in self.events)

    @property
    def modelled(self) -> int:
        """Of those used, how many no GPU has measured."""
        return sum(bool(event["used"] and event.get("modelled")) for event in self.events)

    @property
    def left_out(self) -> int:
        """Results that were not used because they are modelled."""
        return sum(bool(not event["used"] and event.get("modelled")) for event in self.events)

    @property
    def doubts(self) -> Counter[str]:
        """Why ptxas's own code was kept although there may have been better, and how often."""
        return Counter(str(event["reason"]) for event in self.events if event["doubt"])

    @property
    def sentence(self) -> str:
        parts = [self._compiled()]
        if self.left_out:
            parts.append(
                f"{count(self.left_out, 'modelled result')} not used, for no GPU has measured "
                f"{'it' if self.left_out == 1 else 'them'} (`cuasmrl run --modelled` uses modelled results)"
            )
        if self.recorded is not None:
            parts.append(f"newly recorded: {self.recorded}")
        parts += [f"{number} in doubt: {why}" for why, number in self.doubts.most_common()]
        return "; ".join(parts)

    def _compiled(self) -> str:
        if not self.events:
            return _NOTHING
        cubins = count(self.compiled, "cubin")
        modelled = f" ({self.modelled} modelled)" if self.modelled else ""
        return f"{cubins} compiled by ptxas in this run, {self.used} from the store{modelled}"

    def as_dict(self) -> dict[str, Any]:
        recorded = self.recorded or Noted()
        return {
            "status": self.status,
            "compiled": self.compiled,
            "from_store": self.used,
            "modelled": self.modelled,
            "modelled_left_out": self.left_out,
            "recorded": {"kernels": recorded.kernels, "launches": recorded.launches},
            "doubts": dict(self.doubts),
            "problems": list(self.problems),
            "events": list(self.events),
        }


def prepared(store: Store, mode: Mode, chip: str | None = None, modelled: bool = False) -> Prepared:
    return prepare(home(), store, mode, chip, modelled=modelled)


def run(
    command: Sequence[str], store: Store, mode: Mode, chip: str | None = None, modelled: bool = False
) -> Outcome:
    """Run a program to its end; its input, output and terminal are its own."""
    with tempfile.TemporaryDirectory(prefix="cuasmrl-run-", ignore_cleanup_errors=True) as session:
        ready = prepared(store, mode, chip, modelled)
        records = mode is not Mode.DEPLOY
        before = _waiting(store) if records else {}
        status = _run(command, {**os.environ, **ready.changes, SESSION: session})
        recorded = _added(before, _waiting(store)) if records else None
        return Outcome(status, _events(Path(session) / EVENTS), ready.problems, recorded)


def _waiting(store: Store) -> dict[str, tuple[int, frozenset[str]]]:
    """By recorded code: how many kernels it holds, and the names of their launch files."""
    found = {}
    # What cannot be read cannot be counted, and is no reason to stop a program.
    with suppress(CuasmrlError, OSError):
        for one in store.recorded():
            found[one.key] = len(one.kernels), frozenset(path.name for path in one.launches)
    return found


def _added(
    before: Mapping[str, tuple[int, frozenset[str]]], after: Mapping[str, tuple[int, frozenset[str]]]
) -> Noted:
    known = {key: launches for key, (_, launches) in before.items()}
    return Noted(
        sum(kernels for key, (kernels, _) in after.items() if key not in known),
        sum(len(launches - known.get(key, frozenset())) for key, (_, launches) in after.items()),
    )


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
