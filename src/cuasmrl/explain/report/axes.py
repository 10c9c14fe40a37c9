"""Scales and axes of the charts."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cuasmrl.explain.report.shapes import number, path, text


@dataclass(frozen=True)
class Scale:
    """From values to places."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)

    def clamped(self, value: float) -> float:
        return self(min(max(value, self.low), self.high))

    def ticks(self, most: int) -> list[float]:
        """Round values inside, at most so many."""
        step = _round_step((self.high - self.low) / max(1, most))
        first = math.ceil(self.low / step - 1e-9)
        last = math.floor(self.high / step + 1e-9)
        return [k * step for k in range(first, last + 1)]


def spanning(values: Sequence[float], start: float, end: float, margin: float = 0.06) -> Scale:
    """A scale that holds all values and zero, with some air."""
    low, high = min(0.0, *values), max(0.0, *values)
    air = margin * ((high - low) or 1.0)
    return Scale(low - air if low < 0 else low, high + air, start, end)


def _round_step(least: float) -> float:
    power = 10.0 ** math.floor(math.log10(least))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= least * (1 - 1e-9))


def percent(share: float, digits: int = 2) -> str:
    """With a sign, and a minus as wide as the plus; no zero is negative."""
    return f"{round(100 * share, digits) + 0.0:+.{digits}f} %".replace("-", "\N{MINUS SIGN}")


def short_percent(share: float) -> str:
    """For ticks: as few digits as it takes, zero without a sign."""
    value = round(100 * share, 6)
    return f"{value:+g} %".replace("-", "\N{MINUS SIGN}") if value else "0 %"


def below(
    scale: Scale, ticks: Sequence[float], labels: Sequence[str], top: float, grid: float
) -> Iterator[str]:
    """An axis at `top` with its labels under it, and grid lines up to `grid`."""
    yield from path("grid", (f"M{number(scale(tick))} {number(grid)}V{number(top)}" for tick in ticks))
    for tick, label in zip(ticks, labels, strict=True):
        yield text(scale(tick), top + 16, label, "dim small mid")


def beside(
    scale: Scale, ticks: Sequence[float], labels: Sequence[str], left: float, right: float
) -> Iterator[str]:
    """An axis at `left` with its labels before it, and grid lines to `right`."""
    yield from path("grid", (f"M{number(left)} {number(scale(tick))}H{number(right)}" for tick in ticks))
    for tick, label in zip(ticks, labels, strict=True):
        yield text(left - 8, scale(tick) + 4, label, "dim small end")
