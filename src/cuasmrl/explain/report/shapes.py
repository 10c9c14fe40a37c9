"""Elements of an SVG as text. Numbers have at most two decimals: the same picture is the same bytes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from xml.sax.saxutils import escape


def number(value: float) -> str:
    shown = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if shown == "-0" else shown


def signed(value: float) -> str:
    """With one decimal, and a minus as wide as the plus."""
    return f"{value:+.1f}".replace("-", "\N{MINUS SIGN}")


def text(x: float, y: float, said: str, looks: str) -> str:
    return f'<text class="{looks}" x="{number(x)}" y="{number(y)}">{escape(said)}</text>'


def spans(x: float, y: float, parts: Iterable[tuple[str, str]], looks: str) -> str:
    """A text of parts, each with looks of its own."""
    inside = "".join(f'<tspan class="{own}">{escape(said)}</tspan>' for said, own in parts)
    return f'<text class="{looks}" x="{number(x)}" y="{number(y)}">{inside}</text>'


def rectangle(looks: str, x: float, y: float, width: float, height: float) -> str:
    return (
        f'<rect class="{looks}" x="{number(x)}" y="{number(y)}" '
        f'width="{number(width)}" height="{number(height)}"/>'
    )


def dash(x: float, y: float, width: float) -> str:
    """A piece of a broad line: a third of the bytes of a rectangle, where there are hundreds."""
    return f"M{number(x)} {number(y)}h{number(width)}"


def across(x: float, y: float, to_x: float, to_y: float) -> str:
    """A curve that leaves and arrives horizontally."""
    middle = number((x + to_x) / 2)
    return (
        f"M{number(x)} {number(y)}C{middle} {number(y)} {middle} {number(to_y)} {number(to_x)} {number(to_y)}"
    )


def down(x: float, y: float, to_x: float, to_y: float) -> str:
    """A curve that leaves and arrives vertically."""
    middle = number((y + to_y) / 2)
    return (
        f"M{number(x)} {number(y)}C{number(x)} {middle} {number(to_x)} {middle} {number(to_x)} {number(to_y)}"
    )


def path(looks: str, pieces: Iterable[str]) -> Iterator[str]:
    """All pieces as one path; nothing if there are none."""
    joined = "".join(pieces)
    if joined:
        yield f'<path class="{looks}" d="{joined}"/>'
