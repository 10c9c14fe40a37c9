"""The hot loop as lines of SASS, before and after: what a page shows of them, and the drawings beside them.

The drawings have a row of the listing for a unit of height, so a page may give rows any height it likes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cuasmrl.explain.report.columns import control_parts
from cuasmrl.explain.report.loop import HotLoop, Row, Side, telling, window
from cuasmrl.explain.report.palette import reason_class
from cuasmrl.explain.report.shapes import number
from cuasmrl.explain.report.warp import Iteration, WarpTimeline
from cuasmrl.gpu.timing import REASON_NAMES, Reason

MOST_ROWS = 2400
"""Of a side; of a longer loop the part that tells most."""
_MAIN_PIPES = ("tensor", "memory")
"""What a reader looks for first; all else is dim."""
_THICK = 8
_ACROSS = 100
"""Width of the drawing between the columns, in its own units."""


@dataclass(frozen=True)
class Bar:
    looks: str
    share: float
    """Of the column's width, in percent."""


@dataclass(frozen=True)
class Line:
    index: int
    address: str
    control: tuple[tuple[str, str], ...]
    """Fields with their looks: faint, dim, or changed."""
    text: str
    looks: str
    bars: tuple[Bar, ...]
    cycles: str
    """That a warp waits there, per iteration; empty for none."""


@dataclass(frozen=True)
class Listing:
    before: tuple[Line, ...]
    after: tuple[Line, ...]
    shown: int
    of: int
    links: str
    """Between the columns: where instructions went."""
    timelines: tuple[str, str] | None
    """Of one warp, before and after; None if no whole iteration was logged."""


def listing_of(loop: HotLoop, timeline: WarpTimeline | None) -> Listing:
    seen = window(loop, MOST_ROWS)
    thick = frozenset(telling(loop, seen, _THICK))
    sides = (loop.before, loop.after)
    longest = max(row.waited for side in sides for row in side.rows[seen.start : seen.stop]) or 1
    before, after = (tuple(_lines(loop, side, seen, thick, longest)) for side in sides)
    return Listing(
        before,
        after,
        len(seen),
        len(loop.before.rows),
        _links(loop, seen, thick),
        None if timeline is None else _timelines(loop, timeline, seen),
    )


def _lines(loop: HotLoop, side: Side, seen: range, thick: frozenset[int], longest: int) -> Iterator[Line]:
    for row in side.rows[seen.start : seen.stop]:
        # The compiler's own bits are no news, so only the new schedule has changed ones.
        was = loop.before[row.index].control if side is loop.after else row.control
        yield Line(
            row.index,
            f"{row.address:04x}",
            tuple(control_parts(row.control, was)),
            row.text,
            " ".join(_looks(loop, row, thick)),
            tuple(Bar(reason_class(name), 100 * cycles / longest) for name, cycles in row.waits.items()),
            cycles_shown(loop.per_iteration(row.waited)),
        )


def _looks(loop: HotLoop, row: Row, thick: frozenset[int]) -> Iterator[str]:
    if row.pipe in _MAIN_PIPES:
        yield "k"
    if row.index in loop.moved:
        yield "m"
    if row.index in thick:
        yield "x"


def cycles_shown(cycles: float) -> str:
    """With a decimal where it says something."""
    if cycles < 0.05:
        return ""
    return f"{cycles:,.0f}" if cycles >= 100 else f"{cycles:.1f}".removesuffix(".0")


def _links(loop: HotLoop, seen: range, thick: frozenset[int]) -> str:
    """Curves from where instructions stood to where they stand; those pushed along are one faint path."""
    pushed, moved = [], []
    for index, here in loop.before.place.items():
        there = loop.after.place[index]
        has_moved = here != there or index in loop.moved
        if not has_moved or here not in seen or there not in seen:
            continue
        y, to = here - seen.start + 0.5, there - seen.start + 0.5
        if index in loop.moved:
            looks, curve = "x" if index in thick else "m", f"M0 {y:g}C50 {y:g} 50 {to:g} {_ACROSS} {to:g}"
            moved.append(f'<path class="{looks}" data-i="{index}" d="{curve}"/>')
        else:
            pushed.append(f"M0 {y:g}L{_ACROSS} {to:g}")
    faint = f'<path class="p" d="{"".join(pushed)}"/>' if pushed else ""
    return _drawing(_ACROSS, len(seen), f"{faint}{''.join(moved)}")


def _timelines(loop: HotLoop, timeline: WarpTimeline, seen: range) -> tuple[str, str]:
    """Both on one scale of cycles."""
    length = max(timeline.before.cycles, timeline.after.cycles)
    old, new = (
        _drawing(length, len(seen), "".join(_issues(iteration, side.place, seen)))
        for iteration, side in ((timeline.before, loop.before), (timeline.after, loop.after))
    )
    return old, new


def _issues(iteration: Iteration, place: dict[int, int], seen: range) -> Iterator[str]:
    """Waits in the colour of what held the warp up last, results on their way, and a tick for each issue."""
    waits: dict[str, list[str]] = defaultdict(list)
    flights, ticks = [], []
    previous = 0
    for issue in iteration.issues:
        if place[issue.index] in seen:
            top = place[issue.index] - seen.start
            if issue.cycle > previous:
                reason = Reason.NOT_SELECTED if issue.reason is None else Reason(issue.reason)
                width = issue.cycle - previous
                waits[reason_class(REASON_NAMES[reason])].append(
                    f"M{previous} {top + 0.2:g}h{width}v.6h-{width}z"
                )
            if issue.complete > issue.cycle:
                flights.append(f"M{issue.cycle} {top + 0.5:g}H{min(issue.complete, iteration.cycles)}")
            ticks.append(f"M{issue.cycle} {top + 0.15:g}v.7")
        previous = issue.cycle + 1
    yield _path("flight", flights)
    for looks in sorted(waits):
        yield _path(f"wait {looks}", waits[looks])
    yield _path("tick", ticks)


def _path(looks: str, pieces: Sequence[str]) -> str:
    return f'<path class="{looks}" d="{"".join(pieces)}"/>' if pieces else ""


def _drawing(width: float, rows: int, inside: str) -> str:
    box = f"0 0 {number(width)} {rows}"
    return f'<svg viewBox="{box}" preserveAspectRatio="none" aria-hidden="true">{inside}</svg>'
