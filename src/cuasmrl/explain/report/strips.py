"""The whole loop as two strips, one below the other: as long as an iteration takes, coloured by reason."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cuasmrl.explain.report.loop import ISSUED, HotLoop, Row, Side
from cuasmrl.explain.report.palette import reason_class
from cuasmrl.explain.report.shapes import dash, down, number, path, rectangle, signed, text
from cuasmrl.explain.waits.charges import BY_PREDECESSOR
from cuasmrl.gpu.timing import REASON_NAMES

HEIGHT = 98
"""From the upper edge of the first strip to the last line of the axis."""
_STRIP = 20
_PITCH = 54
_LABEL = 48
_THINNEST = 0.1
"""What is narrower is left out, and its place stays free: nobody sees it, and a long loop has thousands."""
_MOST_PIECES = 1500
"""Of a strip, the widest; so a picture stays small however long the loop is."""
_DENSEST = 1.6
"""Pieces for each unit of width: of more nobody sees the colours."""
_MOST_LINES = 300
_FEW_TICKS = 12
_STEPS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000)
_HELD_UP = tuple(REASON_NAMES[reason] for reason in BY_PREDECESSOR)


@dataclass(frozen=True)
class _Strip:
    name: str
    side: Side
    top: float
    edges: tuple[float, ...]
    """Where each instruction begins, and where the last one ends."""

    def middle(self, index: int) -> float:
        k = self.side.place[index]
        return (self.edges[k] + self.edges[k + 1]) / 2


def strips(
    loop: HotLoop, seen: range, thick: Sequence[int], left: float, right: float, top: float
) -> Iterator[str]:
    """Both strips, lines between them for what moved, and an axis; the window is shaded."""
    start = left + _LABEL
    longest = max(loop.per_iteration(side.cycles) for side in (loop.before, loop.after))
    scale = (right - start) / longest
    before, after = (
        _Strip(name, side, top + k * _PITCH, _edges(loop, side, start, scale))
        for k, (name, side) in enumerate((("before", loop.before), ("after", loop.after)))
    )
    for strip in (before, after):
        if len(seen) < len(strip.side.rows):
            x, end = strip.edges[seen.start], strip.edges[seen.stop]
            yield rectangle("shown", x, strip.top - 5, end - x, _STRIP + 10)
        yield from _pieces(loop, strip, scale)
        yield text(start - 8, strip.top + 14, strip.name, "ink end")
    yield from _links(loop, before, after, thick)
    yield from _axis(longest, start, scale, after.top + _STRIP)
    yield from _difference(loop, before, after)


def _edges(loop: HotLoop, side: Side, start: float, scale: float) -> tuple[float, ...]:
    edges, cycles = [start], 0
    for row in side.rows:
        cycles += row.executions + row.waited
        edges.append(start + scale * loop.per_iteration(cycles))
    return tuple(edges)


def _pieces(loop: HotLoop, strip: _Strip, scale: float) -> Iterator[str]:
    found: list[tuple[float, float, str]] = []
    for row, left in zip(strip.side.rows, strip.edges, strict=False):
        for name, start, cycles in _in_time(row):
            x, width = (scale * loop.per_iteration(n) for n in (start, cycles))
            found.append((left + x, width, name))
    most = min(_MOST_PIECES, round(_DENSEST * (strip.edges[-1] - strip.edges[0])))
    widest = sorted(found, key=lambda piece: -piece[1])[:most]
    shown = sorted(piece for piece in widest if piece[1] >= _THINNEST)
    for name in REASON_NAMES.values():
        dashes = (dash(x, strip.top + _STRIP / 2, width) for x, width, reason in shown if reason == name)
        yield from path(f"lane {reason_class(name)}", dashes)


def _in_time(row: Row) -> Iterator[tuple[str, int, int]]:
    """Reason, start and cycles: what was waited for, the issue, what it then holds up."""
    first = [entry for entry in row.waits.items() if entry[0] not in _HELD_UP]
    then = [entry for entry in row.waits.items() if entry[0] in _HELD_UP]
    start = 0
    for name, cycles in (*first, (ISSUED, row.executions), *then):
        yield name, start, cycles
        start += cycles


def _links(loop: HotLoop, before: _Strip, after: _Strip, thick: Sequence[int]) -> Iterator[str]:
    def line(index: int) -> str:
        return down(before.middle(index), before.top + _STRIP, after.middle(index), after.top)

    others = sorted(loop.moved - set(thick), key=lambda index: (-abs(loop.saved(index)), index))
    yield from path("link", map(line, others[:_MOST_LINES]))
    yield from path("strong", map(line, thick))


def _axis(longest: float, start: float, scale: float, top: float) -> Iterator[str]:
    step = next((s for s in _STEPS if longest / s <= _FEW_TICKS), _STEPS[-1])
    ticks = [(cycle, start + scale * cycle) for cycle in range(0, int(longest) + 1, step)]
    yield from path("rule", (f"M{number(x)} {number(top + 3)}v4" for _, x in ticks))
    for cycle, x in ticks:
        yield text(x, top + 18, f"{cycle:,}", "dim small mid")


def _difference(loop: HotLoop, before: _Strip, after: _Strip) -> Iterator[str]:
    """What the shorter strip leaves free at its end, if a number has room there."""
    cycles = loop.per_iteration(abs(loop.before.cycles - loop.after.cycles))
    short, long = sorted((before, after), key=lambda strip: strip.edges[-1])
    if long.edges[-1] - short.edges[-1] > 34:
        yield text((short.edges[-1] + long.edges[-1]) / 2, short.top + 14, signed(-cycles), "ink bold mid")
