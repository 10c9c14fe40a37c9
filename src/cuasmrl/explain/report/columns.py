"""A window of the loop with its SASS, before and after side by side, and lines between what moved."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

from cuasmrl.explain.report.loop import HotLoop, Row, Side
from cuasmrl.explain.report.palette import reason_class
from cuasmrl.explain.report.shapes import across, path, rectangle, spans, text

PITCH = 15
HEADING = 24
_GUTTER = 92
_CONTROL_AT = 34
_TEXT_AT = _CONTROL_AT + 127
_CHARACTERS = 28
"""Of SASS, which has 6.3 units to a character."""
_BAR_AT = _TEXT_AT + 184
_NUMBER = 26
"""Left free behind the longest bar."""
_BASE = PITCH - 4.3
_PRINTED = 0.05
"""Cycles from which on a bar has a number."""
_MAIN_PIPES = ("tensor", "memory")
"""What a reader looks for first; all else is dim."""


@dataclass(frozen=True)
class _Column:
    name: str
    loop: HotLoop
    side: Side
    other: Side
    seen: range
    thick: frozenset[int]
    left: float
    width: float
    top: float
    """Of the first row."""
    scale: float
    """Width of a cycle."""

    @property
    def rows(self) -> tuple[Row, ...]:
        return self.side.rows[self.seen.start : self.seen.stop]

    def middle(self, index: int) -> float:
        return self.top + PITCH * (self.side.place[index] - self.seen.start + 0.5)


def columns(
    loop: HotLoop, seen: range, thick: Sequence[int], left: float, right: float, top: float
) -> Iterator[str]:
    width = (right - left - _GUTTER) / 2
    longest = max(
        row.waited for side in (loop.before, loop.after) for row in side.rows[seen.start : seen.stop]
    )
    scale = (width - _BAR_AT - _NUMBER) / (loop.per_iteration(longest) or 1)
    before = _Column(
        "before, as compiled",
        loop,
        loop.before,
        loop.after,
        seen,
        frozenset(thick),
        left,
        width,
        top + HEADING,
        scale,
    )
    after = _Column(
        "after",
        loop,
        loop.after,
        loop.before,
        seen,
        frozenset(thick),
        right - width,
        width,
        top + HEADING,
        scale,
    )
    for column in (before, after):
        yield text(column.left, top + 13, column.name, "ink bold")
        yield text(column.left + _BAR_AT, top + 13, "cycles waited", "dim small")
        yield from _lines(column)
    yield from _links(before, after)


def _lines(column: _Column) -> Iterator[str]:
    texts = shortened([row.text for row in column.rows], _CHARACTERS)
    for k, (row, said) in enumerate(zip(column.rows, texts, strict=True)):
        yield f"<g><title>{escape(_tip(column, row))}</title>"
        top = column.top + PITCH * k
        yield rectangle("stripe" if k % 2 == 0 else "card", column.left - 4, top, column.width + 8, PITCH)
        yield from _line(column, row, said, top)
        yield "</g>"


def _tip(column: _Column, row: Row) -> str:
    """What a reader is shown who points at the line."""
    cycles = (f"{name} {column.loop.per_iteration(n):.1f}" for name, n in row.waits.items())
    said = f"{row.address:#06x} {row.control} {row.text}\n{', '.join(cycles) or 'no wait'}"
    if row.awaited in column.side.place:
        producer = column.side[row.awaited]
        said += f"\nmostly for {producer.text} at {producer.address:#06x}"
    return said


def _line(column: _Column, row: Row, said: str, top: float) -> Iterator[str]:
    """Address, control code, SASS and a bar."""
    left, base = column.left, top + _BASE
    yield text(left, base, f"{row.address:04x}", "faint code")
    was = column.other[row.index].control if column.side is column.loop.after else row.control
    yield spans(left + _CONTROL_AT, base, control_parts(row.control, was), "code")
    looks = "ink" if row.pipe in _MAIN_PIPES else "dim"
    yield text(
        left + _TEXT_AT, base, said, f"{looks} code bold" if row.index in column.thick else f"{looks} code"
    )
    x = left + _BAR_AT
    for name, cycles in row.waits.items():
        width = column.scale * column.loop.per_iteration(cycles)
        yield rectangle(f"fill {reason_class(name)}", x, top + 3, width, PITCH - 6)
        x += width
    waited = column.loop.per_iteration(row.waited)
    if waited >= _PRINTED:
        said = f"{waited:,.0f}" if waited >= 100 else f"{waited:.1f}".removesuffix(".0")
        yield text(x + 4, base, said, "dim small")


def control_parts(control: str, was: str) -> Iterator[tuple[str, str]]:
    """Fields of a control code: faint if nothing is set, bold if they were different before."""
    fields = control.split(":")
    for k, (field, old) in enumerate(zip(fields, was.split(":"), strict=True)):
        is_set = any(c.isdigit() or c == "Y" for c in field)
        looks = "ink bold" if field != old else "dim" if is_set else "faint"
        yield (field if k == len(fields) - 1 else f"{field}:"), looks


def _links(before: _Column, after: _Column) -> Iterator[str]:
    """A line where both ends are in the window, else at its end how far away the other one is."""
    loop, seen = before.loop, before.seen
    left, right = before.left + before.width + 6, after.left - 6
    lines: dict[str, list[str]] = {"link": [], "link moved": [], "strong": []}
    notes: list[str] = []
    for index, here in loop.before.place.items():
        there = loop.after.place[index]
        is_thick = index in before.thick
        looks = f"{'ink bold' if is_thick else 'dim'} small halo"
        if here == there:
            continue
        if here in seen and there in seen:
            kind = "strong" if is_thick else "link moved" if index in loop.moved else "link"
            lines[kind].append(across(left, before.middle(index), right, after.middle(index)))
        elif here in seen:
            notes.append(text(left, before.middle(index) + 4, _away(there - here), looks))
        elif there in seen:
            notes.append(text(right, after.middle(index) + 4, _away(here - there), f"{looks} end"))
    for kind, pieces in lines.items():
        yield from path(kind, pieces)
    yield from notes


def _away(positions: int) -> str:
    return f"{'▼' if positions > 0 else '▲'}{abs(positions)}"


def shortened(texts: Sequence[str], most: int) -> list[str]:
    """SASS in so many characters: no reuse marks, of an opcode the modifiers that fit everywhere; or cut."""
    split = [_parts(said.replace(".reuse", "")) for said in texts]
    kept: dict[str, int] = {}
    for guard, (opcode, *modifiers), operands in split:
        room = most - len(_joined(guard, [opcode], operands))
        fitting = 0
        while fitting < len(modifiers) and (room := room - len(modifiers[fitting]) - 1) >= 0:
            fitting += 1
        kept[opcode] = min(kept.get(opcode, fitting), fitting)
    found = [
        _joined(guard, mnemonic[: 1 + kept[mnemonic[0]]], operands) for guard, mnemonic, operands in split
    ]
    return [said if len(said) <= most else said[: most - 1] + "…" for said in found]


def _parts(said: str) -> tuple[str, list[str], str]:
    """Guard, opcode with its modifiers, operands."""
    guard, _, rest = said.partition(" ") if said.startswith("@") else ("", "", said)
    mnemonic, _, operands = rest.strip().partition(" ")
    return guard, mnemonic.split("."), operands


def _joined(guard: str, mnemonic: Sequence[str], operands: str) -> str:
    return " ".join(part for part in (guard, ".".join(mnemonic), operands) if part)
