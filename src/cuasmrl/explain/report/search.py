"""The search as a chart: every schedule tried is a dot, the best so far a line; several runs on one chart."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import quantiles

from cuasmrl.explain.report.axes import Scale, below, beside, percent, short_percent
from cuasmrl.explain.report.curve import Curve
from cuasmrl.explain.report.palette import SERIES, series_class
from cuasmrl.explain.report.shapes import number, path, text

_LEFT = 58
_RIGHT = 14
_BOTTOM = 40
_LEGEND = 20
_MOST_DOTS = 1500
_DEPTH = 1.2
"""How far the chart reaches below the original, in times of the best gain."""


@dataclass(frozen=True)
class Search:
    name: str
    curve: Curve
    confirmed: float | None
    """The median that the gate confirmed."""


def floor_of(searches: Sequence[Search]) -> float:
    """The lowest gain that has a place of its own; what is below is drawn at the edge."""
    tops = max(max(one.curve.final, one.confirmed or 0.0) for one in searches)
    tried = [one.curve.gain(time) for one in searches for _, time in one.curve.tried]
    lower = quantiles(tried, n=20)[1] if len(tried) > 1 else 0.0
    return min(-0.002, max(lower, -_DEPTH * max(tops, 0.005)))


def draw_search(searches: Sequence[Search], width: float, height: float) -> Iterator[str]:
    top = _LEGEND * len(searches) if len(searches) > 1 else 6
    best = max(max(one.curve.final, one.confirmed or 0.0) for one in searches)
    up = Scale(floor_of(searches), max(best, 0.002) * 1.12, height - _BOTTOM, top + 4)
    along = Scale(0, max(1, *(one.curve.evaluations for one in searches)), _LEFT, width - _RIGHT)
    ticks, marks = up.ticks(6), along.ticks(max(2, int(width // 120)))
    yield from beside(up, ticks, [short_percent(tick) for tick in ticks], _LEFT, width - _RIGHT)
    yield from below(along, marks, [f"{mark:,.0f}" for mark in marks], up.start + 4, up.start + 4)
    yield text((_LEFT + width - _RIGHT) / 2, height - 4, "evaluations", "dim small mid")
    yield from path("rule", [f"M{_LEFT} {number(up(0))}H{number(width - _RIGHT)}"])
    share = max(1, -(-sum(len(one.curve.tried) for one in searches) // _MOST_DOTS))
    for k, one in enumerate(searches):
        yield from path(f"tried {series_class(k)}", _dots(one.curve, along, up, share))
    for k, one in enumerate(searches):
        yield from path(f"best {series_class(k)}", [_steps(one.curve, along, up)])
        if one.confirmed is not None and len(searches) == 1:
            y = up(one.confirmed)
            yield from path("confirmed", [f"M{_LEFT} {number(y)}H{number(width - _RIGHT)}"])
            said = f"confirmed median {percent(one.confirmed)}"
            yield text(_LEFT + 6, y - 6, said, "ink small halo")
        if len(searches) > 1:
            yield from _key(one, k, width)


def _dots(curve: Curve, along: Scale, up: Scale, share: int) -> Iterator[str]:
    """Lines of no length with round ends: a few bytes each, where there are thousands."""
    for evaluation, time in curve.tried[::share]:
        yield f"M{along(evaluation):.1f} {up.clamped(curve.gain(time)):.1f}h0"


def _steps(curve: Curve, along: Scale, up: Scale) -> str:
    pieces = [f"M{number(along(0))} {number(up(0))}"]
    for evaluation, time in curve.best[1:]:
        pieces.append(f"H{number(along(evaluation))}V{number(up(curve.gain(time)))}")
    return "".join((*pieces, f"H{number(along(curve.evaluations))}"))


def _key(one: Search, k: int, width: float) -> Iterator[str]:
    y = _LEGEND * k + 12
    yield from path(f"best {series_class(k)}", [f"M{_LEFT} {y - 4}h18"])
    said = f"{one.name}: {percent(one.curve.final)} in the search"
    if one.confirmed is not None:
        said += f", {percent(one.confirmed)} confirmed"
    yield text(_LEFT + 26, y, said, "ink small")


MOST_SEARCHES = len(SERIES)
