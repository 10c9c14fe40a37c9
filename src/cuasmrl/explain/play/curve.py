"""How a search goes, in few enough points to be sent again and again."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

_MOST_POINTS = 400


@dataclass
class Curve:
    """What an agent has tried, thinned out as it grows, and how the best has risen."""

    tried: list[tuple[int, float]] = field(default_factory=list)
    best: list[tuple[int, float]] = field(default_factory=list)
    every: int = 1

    def add(self, number: int, gain: float, best: float) -> None:
        if number % self.every == 0:
            self.tried.append((number, round(gain, 6)))
        if len(self.tried) > _MOST_POINTS:
            self.tried, self.every = self.tried[1::2], 2 * self.every
        if not self.best or best > self.best[-1][1]:
            self.best.append((number, round(best, 6)))

    def as_dict(self) -> dict[str, Any]:
        return {"tried": list(self.tried), "best": list(self.best)}
