"""The search of a run: what was tried, and the best so far."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from cuasmrl.game import Evaluation

MOST_TRIED = 4000
"""Evaluations that a page holds one by one."""


@dataclass(frozen=True)
class Curve:
    start: float
    """Time of the original, as the search sees it."""
    evaluations: int
    refused: int
    """Schedules that the device could not time."""
    every: int
    """Of the schedules tried, each so manieth is among `tried`."""
    tried: tuple[tuple[int, float], ...]
    """Number of the evaluation, and time."""
    best: tuple[tuple[int, float], ...]
    """All evaluations that were better than any before, the original first."""

    def gain(self, time: float) -> float:
        return self.start / time - 1

    @property
    def final(self) -> float:
        """Gain of the best, as the search sees it."""
        return self.gain(self.best[-1][1])

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "final": self.final}


def curve_of(evaluations: Sequence[Evaluation]) -> Curve | None:
    """The log of a run as a curve; None if not even the original was timed."""
    if not evaluations or not math.isfinite(evaluations[0].time):
        return None
    played = evaluations[1:]
    timed = [(e.number, e.time) for e in played if math.isfinite(e.time)]
    every = -(-len(timed) // MOST_TRIED) or 1
    best = [(0, evaluations[0].time)]
    for number, time in timed:
        if time < best[-1][1]:
            best.append((number, time))
    return Curve(
        evaluations[0].time,
        len(played),
        len(played) - len(timed),
        every,
        tuple(timed[::every]),
        tuple(best),
    )
