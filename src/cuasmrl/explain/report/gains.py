"""The gain of a run and how it is distributed: every member of the ensemble is a dot."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from xml.sax.saxutils import escape

from cuasmrl.explain.report.axes import below, percent, short_percent, spanning
from cuasmrl.explain.report.shapes import number, path, rectangle, text

_RADIUS = 4.5
_LANE = 74
_FIRST = 30
"""Middle of the first lane, when it has no name above it."""
_NAME = 20
_AXIS = 24
_CHARACTER = 6.4


@dataclass(frozen=True)
class GainOf:
    """What the gate of one run said."""

    name: str
    gain: Mapping[str, Any]
    accepted: bool
    is_modelled: bool

    @property
    def members(self) -> Sequence[float]:
        return self.gain["members"]  # type: ignore[no-any-return]


def height_of(gains: Sequence[GainOf]) -> float:
    return _lane(gains) * len(gains) + _AXIS


def draw_gains(gains: Sequence[GainOf], width: float) -> Iterator[str]:
    """A lane for each run on one axis: the middle of the members as a band, their median as a line."""
    values = [v for one in gains for v in (*one.members, one.gain["low"], one.gain["high"])]
    finite = [v for v in values if abs(v) < 1e6]
    scale = spanning(finite or [0.01], 14, width - 14)
    ticks = scale.ticks(max(3, int(width // 110)))
    bottom = _lane(gains) * len(gains)
    yield from below(scale, ticks, [short_percent(tick) for tick in ticks], bottom, 0)
    yield from path("rule", [f"M{number(scale(0))} 0V{number(bottom + 4)}"])
    for k, one in enumerate(gains):
        top = k * _lane(gains)
        if len(gains) > 1:
            yield text(scale.start, top + 14, one.name, "ink small bold halo")
            top += _NAME
        low, high = scale.clamped(one.gain["low"]), scale.clamped(one.gain["high"])
        median, middle = scale.clamped(one.gain["median"]), top + _FIRST
        yield rectangle("band", low, middle - 15, max(1.0, high - low), 30)
        yield from _dots(one, scale.clamped, middle)
        yield from path("accent", [f"M{number(median)} {number(middle - 19)}v38"])
        yield from _labels(one, scale.clamped, top, width)


def _lane(gains: Sequence[GainOf]) -> float:
    return _LANE + (_NAME if len(gains) > 1 else 0)


def _dots(one: GainOf, place: Any, middle: float) -> Iterator[str]:
    """In the order of their values; those that would hide each other step aside, by turns up and down."""
    order = sorted(range(len(one.members)), key=lambda k: (one.members[k], k))
    taken: list[tuple[float, float]] = []
    steps = [0.0, *(sign * 3.2 * n for n in range(1, 5) for sign in (-1, 1))]
    for k in order:
        x = place(one.members[k])
        free = (
            s for s in steps if all(abs(x - a) + abs(s - b) * 1.6 > 1.5 * _RADIUS for a, b in taken[-12:])
        )
        offset = next(free, 0.0)
        taken.append((x, offset))
        kind = "dot nominal" if k == 0 and one.is_modelled else "dot"
        said = _member(one, k)
        yield (
            f'<circle class="{kind}" cx="{number(x)}" cy="{number(middle + offset)}" r="{_RADIUS}">'
            f"<title>{escape(said)}</title></circle>"
        )


def _member(one: GainOf, k: int) -> str:
    if not one.is_modelled:
        return f"round {k + 1}: {percent(one.members[k])}"
    return f"{'nominal chip' if k == 0 else f'chip {k + 1}'}: {percent(one.members[k])}"


def _labels(one: GainOf, place: Any, top: float, width: float) -> Iterator[str]:
    """The median above, the nominal one below; kept inside of the picture."""
    word = "confirmed median" if one.accepted else "median, not confirmed"
    yield _kept(
        place(one.gain["median"]), top + 8, f"{word} {percent(one.gain['median'])}", "ink small bold", width
    )
    if one.is_modelled:
        said = f"nominal chip {percent(one.gain['nominal'])}"
        yield _kept(place(one.gain["nominal"]), top + 62, said, "dim small", width)


def _kept(x: float, y: float, said: str, looks: str, width: float) -> str:
    half = _CHARACTER * len(said) / 2
    if x - half < 0:
        return text(0, y, said, f"{looks} halo")
    if x + half > width:
        return text(width, y, said, f"{looks} halo end")
    return text(x, y, said, f"{looks} halo mid")
