"""Cycles by reason as bars, one below the other on one scale."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

from cuasmrl.explain.report.axes import Scale
from cuasmrl.explain.report.palette import reason_class, text_class
from cuasmrl.explain.report.shapes import rectangle, spans, text
from cuasmrl.gpu.timing import REASON_NAMES

_PITCH = 48
_BAR = 24
_LETTER = 6.2


@dataclass(frozen=True)
class Stack:
    name: str
    reasons: Mapping[str, int]
    divisor: int
    """Counts divided by it are cycles."""
    unit: str = "cycles"

    @property
    def cycles(self) -> float:
        return sum(self.reasons.values()) / self.divisor


def reasons_in(stacks: Sequence[Stack]) -> list[str]:
    return [name for name in REASON_NAMES.values() if any(stack.reasons.get(name) for stack in stacks)]


def stacks_height(stacks: Sequence[Stack]) -> float:
    return _PITCH * len(stacks)


def draw_stacks(stacks: Sequence[Stack], width: float) -> Iterator[str]:
    scale = Scale(0, max(stack.cycles for stack in stacks) or 1, 0, width)
    for k, stack in enumerate(stacks):
        top = _PITCH * k
        title = [(stack.name, "ink bold"), (f"  {stack.cycles:,.1f} {stack.unit}", "dim")]
        yield spans(0, top + 13, title, "small")
        x = 0.0
        for name in reasons_in([stack]):
            cycles = stack.reasons[name] / stack.divisor
            length = scale(cycles)
            said = f"{name}: {cycles:,.1f} {stack.unit}, {100 * cycles / stack.cycles:.1f} %"
            yield f"<g><title>{escape(said)}</title>"
            yield rectangle(f"fill piece {reason_class(name)}", x, top + 19, length, _BAR)
            if length > _LETTER * len(name) + 10:
                yield text(x + 6, top + 19 + 16, name, f"small {text_class(name)}")
            yield "</g>"
            x += length
