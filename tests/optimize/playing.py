"""A player that finds something quickly, and an ensemble small enough to wait for."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache

import pytest

from cuasmrl.agents import AGENTS
from cuasmrl.gpu.devices import CandidateError, Objective, Rival, VirtualTimer
from cuasmrl.gpu.timing.uncertainty import Gain
from cuasmrl.gpu.traced import TracedKernel
from cuasmrl.optimize import Request, Subject, optimizer
from cuasmrl.optimize.gate import Problems
from cuasmrl.optimize.subject import prepare
from cuasmrl.schedule import Schedule
from tests.climbing import CONFIG, NAME, SIZES


class Stopped(BaseException):
    """As if the process had ended."""


class Device:
    """Counts what it is asked for, and ends everything at a given moment."""

    def __init__(self) -> None:
        self.asked = 0
        self.last: int | None = None
        self.faulty: set[bytes] = set()
        """Schedules that fail when they are to be confirmed."""
        self.faults_when_confirmed = False
        """Or else already when they are picked from."""
        self.picked_from: list[list[bytes]] = []

    def open(
        self,
        name: str,
        kernel: TracedKernel,
        launch: object,
        objective: Objective = Objective.NOMINAL,
        game: int = 0,
    ) -> VirtualTimer:
        device = self

        class Counted(VirtualTimer):
            def time(self, schedule: Schedule, rival: Rival | None = None) -> float:
                device.asked += 1
                if device.last is not None and device.asked > device.last:
                    raise Stopped
                return super().time(schedule, rival)

            def pick(self, old: Schedule, candidates: Sequence[Schedule]) -> Schedule:
                device.picked_from.append([schedule.key for schedule in candidates])
                for schedule in candidates:
                    if not device.faults_when_confirmed:
                        self.run(schedule)
                return super().pick(old, candidates)

            def confirm(self, old: Schedule, new: Schedule) -> Gain:
                self.run(new)
                return super().confirm(old, new)

            def run(self, schedule: Schedule) -> None:
                if schedule.key in device.faulty:
                    raise CandidateError(f"{schedule.key.hex()[:8]} faults", schedule.key)

        return Counted(kernel, members=3)


@lru_cache
def _prepared(source: str, config: str, sizes: tuple[tuple[str, int], ...], device: str | None) -> Subject:
    """Judged by its own problem only."""
    subject = prepare(Request(source, config, dict(sizes), device=device), lambda done, total: None)
    return replace(subject, problems=Problems(subject.problems.main))


def prepare_quickly(request: Request, advance: Callable[[int, int], None]) -> Subject:
    assert request.config is not None
    return _prepared(request.source, request.config, tuple(request.sizes.items()), request.device)


def device_for(patch: pytest.MonkeyPatch) -> Device:
    found = Device()
    patch.setitem(AGENTS.modules, "climber", "tests.climbing:Climber")
    patch.setitem(AGENTS.modules, "idler", "tests.climbing:Idler")
    patch.setattr(optimizer, "open_timer", found.open)
    return found


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> Device:
    return device_for(monkeypatch)


def asking(**changes: object) -> Request:
    asked = {"source": NAME, "config": CONFIG, "sizes": SIZES, "agent": "climber", "budget": 60, "seed": 0,
             "min_gain": 0.0, "min_faster": 0.5}  # fmt: skip
    return Request(**{**asked, **changes})  # type: ignore[arg-type]
