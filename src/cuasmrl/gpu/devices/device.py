"""The interface of a device: something that times schedules of one kernel under one launch."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from cuasmrl.errors import CuasmrlError
from cuasmrl.gpu.timing.uncertainty import Gain
from cuasmrl.schedule import Schedule

COST_ON_A_GPU = 300.0
"""Races of one schedule on a GPU take 0.1 to 3 seconds, a replay of the model 0.3 to 10 milliseconds."""


class CandidateError(CuasmrlError):
    """A schedule that the device could not time: it is refused, faults, hangs or computes something else."""

    def __init__(self, sentence: str, key: bytes | None = None) -> None:
        super().__init__(sentence)
        self.key = key
        """Of the schedule, so that whoever asked about several knows which one it was."""


@dataclass(frozen=True)
class Rival:
    """The schedule that another one has to beat to be of interest."""

    schedule: Schedule
    time: float


def time_or_never(timer: Timer, schedule: Schedule, rival: Rival | None = None) -> float:
    """The time of a schedule, infinite if the device cannot time it."""
    try:
        return timer.time(schedule, rival)
    except CandidateError:
        return math.inf


class Timer(Protocol):
    """Times schedules of one kernel."""

    @property
    def device(self) -> str:
        """Such as `virtual:a100`."""

    @property
    def unit(self) -> str:
        """What `time` gives."""

    @property
    def cost(self) -> float:
        """What `time` costs, in replays of the model.

        It follows from the kind of device and from what is replayed, and was not read off a clock: so players
        may go by it and still repeat themselves.
        """

    def time(self, schedule: Schedule, rival: Rival | None = None) -> float:
        """How long a schedule takes, for comparison with others while searching; may raise CandidateError.

        With a rival the device may stop as soon as the schedule is clearly slower, or no different.
        """

    def times(self, schedules: Sequence[Schedule], rival: Rival | None = None) -> list[float]:
        """What `time` gives for each of them, infinite where that would raise CandidateError.

        A device may use all cores for it; the times do not depend on how many there are.
        """

    @property
    def finalists(self) -> int:
        """Schedules of a game that are worth picking from: more where one time says little."""

    def pick(self, old: Schedule, candidates: Sequence[Schedule]) -> Schedule:
        """The best of several under other conditions than those of the search, and other than `confirm`'s.

        Raises CandidateError with the key of the schedule if one of them cannot be timed.
        """

    def confirm(self, old: Schedule, new: Schedule) -> Gain:
        """How much faster the new one is under conditions that no search has seen."""


@runtime_checkable
class Eager(Protocol):
    """A timer that can begin with a schedule before it is asked for; answers do not depend on it."""

    @property
    def ahead(self) -> int:
        """How many schedules are worth announcing; 1 if it has one core only."""

    def announce(self, schedule: Schedule, rival: Rival | None = None) -> None:
        """It will probably be asked for soon, with this rival."""

    def withdraw(self, schedules: Sequence[Schedule]) -> None:
        """They were announced and will not be asked for."""
