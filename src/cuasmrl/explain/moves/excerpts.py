"""The lines of SASS that a step is about: `-` where an instruction stood, `+` where it stands now."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from cuasmrl.binary.cubin import WORD_BYTES
from cuasmrl.schedule import Block, Schedule

_AROUND = 2


@dataclass(frozen=True)
class Line:
    mark: str
    """`-`, `+`, or a blank."""
    address: int
    """Where it stands: for `-` before the step, else after it."""
    control: str
    text: str


def excerpt(
    before: Schedule, after: Schedule, block: Block, marked: Collection[int]
) -> tuple[Line | None, ...]:
    """What the marked instructions leave and where they come to, with a few lines around; None for a gap."""
    lines = _merged(before, after, block, marked)
    near = {
        other
        for k, (mark, _) in enumerate(lines)
        if mark != " "
        for other in range(k - _AROUND, k + _AROUND + 1)
    }
    found: list[Line | None] = []
    for k, (mark, position) in enumerate(lines):
        # A mark for a gap would take as much room as a single line.
        if k in near or (k - 1 in near and k + 1 in near):
            found.append(_line(mark, position, before if mark == "-" else after))
        elif found and found[-1] is not None:
            found.append(None)
    return tuple(found[:-1] if found and found[-1] is None else found)


def _merged(
    before: Schedule, after: Schedule, block: Block, marked: Collection[int]
) -> list[tuple[str, int]]:
    """Marks and positions of both orders: what is not marked is in the same order in both."""
    lines: list[tuple[str, int]] = []
    old = new = block.start
    while old < block.end or new < block.end:
        if old < block.end and before.order[old] in marked:
            lines.append(("-", old))
            old += 1
        elif new < block.end and after.order[new] in marked:
            lines.append(("+", new))
            new += 1
        else:
            lines.append((" ", new))
            old, new = old + 1, new + 1
    return lines


def _line(mark: str, position: int, schedule: Schedule) -> Line:
    i = schedule.order[position]
    return Line(mark, WORD_BYTES * position, str(schedule.controls[i]), schedule.listing.instructions[i].text)
