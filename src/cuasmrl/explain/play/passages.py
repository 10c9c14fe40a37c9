"""From one schedule to another, in a few words."""

from __future__ import annotations

from cuasmrl.explain.report.loop import fewest_moves
from cuasmrl.schedule import Schedule

_TOLD = 2


def told(before: Schedule, after: Schedule) -> str:
    """Which instructions moved, the farthest first; they have the addresses of `before`."""
    old = {i: position for position, i in enumerate(before.order)}
    new = {i: position for position, i in enumerate(after.order)}
    code = before.listing.instructions
    moved = sorted(fewest_moves(before.order, new), key=lambda i: (-abs(new[i] - old[i]), i))
    words = [
        f"{code[i].opcode} at {16 * old[i]:#06x} {'up' if new[i] < old[i] else 'down'} {abs(new[i] - old[i])}"
        for i in moved[:_TOLD]
    ]
    if len(moved) > _TOLD:
        words.append(f"{len(moved) - _TOLD} more")
    if not words:
        edited = sum(a != b for a, b in zip(before.controls, after.controls, strict=True))
        words.append(f"{edited} control codes edited" if edited > 1 else "one control code edited")
    return ", ".join(words)
