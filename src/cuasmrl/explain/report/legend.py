"""Reasons with their colours, and their cycles before and after; the figures sum to the totals."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from cuasmrl.explain.report.palette import reason_class
from cuasmrl.explain.report.shapes import rectangle, signed, spans, text
from cuasmrl.gpu.timing import REASON_NAMES

_ROW = 36

Table: TypeAlias = list[tuple[str, int, int]]
"""Reason, tenths of a cycle before and after."""


def tenths_table(before: Mapping[str, int], after: Mapping[str, int], divisor: int) -> Table:
    """Counts divided by `divisor` are cycles. Only reasons of which there is something to see."""
    names = [name for name in REASON_NAMES.values() if name in before or name in after]
    old, new = (tenths(side, names, divisor) for side in (before, after))
    return [row for row in zip(names, old, new, strict=True) if row[1] or row[2]]


def tenths(counts: Mapping[str, int], names: Sequence[str], divisor: int) -> list[int]:
    """Rounded so that they sum to the total as it is printed: those with the largest rests go up."""
    scaled = [10 * counts.get(name, 0) for name in names]
    found = [n // divisor for n in scaled]
    missing = round(10 * (sum(counts.values()) / divisor)) - sum(found)
    by_rest = sorted(range(len(scaled)), key=lambda k: (-(scaled[k] % divisor), k))
    for k in by_rest[:missing]:
        found[k] += 1
    return found


def legend_height(table: Table, columns: int) -> float:
    return _ROW * -(-len(table) // columns)


def legend(table: Table, left: float, right: float, columns: int, top: float) -> Iterator[str]:
    pitch = (right - left) / columns
    for k, (name, old, new) in enumerate(table):
        x = left + pitch * (k % columns)
        y = top + _ROW * (k // columns)
        yield rectangle(f"fill {reason_class(name)}", x, y, 11, 11)
        yield text(x + 17, y + 10, name, "ink")
        change = signed((new - old) / 10) if new != old else ""
        figures = [(f"{old / 10:,.1f} → {new / 10:,.1f}", "dim"), (f"  {change}", "ink")]
        yield spans(x + 17, y + 25, figures, "small")
