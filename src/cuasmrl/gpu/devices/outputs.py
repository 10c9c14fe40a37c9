"""Is what a buffer holds after a launch what the original leaves there?

Most kernels leave the same bits each time. Where atomics decide about an order, the original itself does
not: then it is run several times, and a candidate is held to what those runs have in common: the same values
in any order, or each element within the bounds of the runs, widened by a tolerance.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from cuasmrl.gpu.devices.driver import Bytes

Numbers: TypeAlias = npt.NDArray[Any]

STEADY_RUNS = 3
"""Runs of the original before its output counts as the same each time."""
UNSTEADY_RUNS = 12
"""Runs that bounds are drawn from."""
_WIDER = 2.0
"""How far beyond the bounds an element may lie, in widths of them."""
_MANY = 2.0
"""How many more elements may lie beyond the bounds than of one run of the original against the others."""
_FEW = 4
_CHUNK = 1 << 20
_STEP = {"bfloat16": 2.0**-7, "float16": 2.0**-10, "float32": 2.0**-23, "float64": 2.0**-52}
"""Between neighbouring numbers, relative to them."""
_INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
_FLOATS = ("float16", "float32", "float64")


class Likeness(StrEnum):
    """What runs of the original have in common."""

    BITS = "bit by bit"
    ORDER = "as the same values in any order"
    BOUNDS = "within the bounds of several runs"
    NONE = "not at all, since the original's own runs differ too much"


@dataclass(frozen=True, eq=False)
class Reference:
    """What candidates are held to."""

    likeness: Likeness
    element: str
    runs: tuple[Bytes, ...] = field(repr=False)
    """One is enough where all are the same."""
    outside: int = 0
    """How many elements of a run may lie beyond the bounds of the others."""

    def difference(self, content: Bytes) -> str | None:
        """How a content differs, in words, or None."""
        match self.likeness:
            case Likeness.BITS:
                return _bits(self.runs[0], content)
            case Likeness.ORDER:
                same = np.array_equal(_sorted(self.runs[0], self.element), _sorted(content, self.element))
                return None if same else "holds other values, whatever their order"
            case Likeness.BOUNDS:
                return self._beyond(content)
        return None

    def _beyond(self, content: Bytes) -> str | None:
        outside, worst = _strays(content, self.runs, self.element)
        if worst is not None:
            return f"differs in element {worst} by more than runs of the original do"
        if outside > self.outside:
            return (
                f"has {outside} elements beyond the bounds of {len(self.runs)} runs of the original, and one "
                f"of those has {self.outside} at most"
            )
        return None


def same(content: Bytes, element: str) -> Reference:
    """Of an original that always leaves this."""
    return Reference(Likeness.BITS, element, (content,))


def reference(runs: Sequence[Bytes], element: str) -> Reference:
    """What these runs of the original have in common."""
    if all(np.array_equal(runs[0], run) for run in runs[1:]):
        return same(runs[0], element)
    if element in _INTEGERS + _FLOATS and len(runs[0]) % np.dtype(element).itemsize == 0:
        first = _sorted(runs[0], element)
        if all(np.array_equal(first, _sorted(run, element)) for run in runs[1:]):
            return Reference(Likeness.ORDER, element, (runs[0],))
    if element not in (*_FLOATS, "bfloat16"):
        return Reference(Likeness.NONE, element, ())
    counts = []
    for number, run in enumerate(runs):
        outside, worst = _strays(run, [*runs[:number], *runs[number + 1 :]], element)
        if worst is not None:
            return Reference(Likeness.NONE, element, ())
        counts.append(outside)
    return Reference(Likeness.BOUNDS, element, tuple(runs), int(_MANY * max(counts)) + _FEW)


def _bits(expected: Bytes, content: Bytes) -> str | None:
    places = np.flatnonzero(expected != content)
    if not len(places):
        return None
    return f"differs in {len(places)} of {len(expected)} bytes, first in byte {places[0]}"


def _strays(content: Bytes, runs: Sequence[Bytes], element: str) -> tuple[int, int | None]:
    """How many elements lie beyond the bounds of the runs, and the first that lies too far beyond."""
    outside, width = 0, np.dtype("uint16" if element == "bfloat16" else element).itemsize
    for start in range(0, len(content), _CHUNK * width):
        part = slice(start, start + _CHUNK * width)
        values = _numbers(content[part], element)
        known = np.stack([_numbers(run[part], element) for run in runs])
        low, high = known.min(axis=0), known.max(axis=0)
        # An element that the runs happen to agree about may still differ as much as its neighbours do.
        spread = high - low
        changing = spread[spread > 0]
        usual = float(np.quantile(changing, 0.99)) if changing.size > spread.size // 2 else 0.0
        room = _WIDER * np.maximum(np.maximum(spread, usual), _STEP[element] * np.abs(high))
        # A NaN lies beyond all bounds unless every run has one there.
        both = np.isnan(values) & np.isnan(known).all(axis=0)
        beyond = ~((values >= low) & (values <= high)) & ~both
        far = ~((values >= low - room) & (values <= high + room)) & ~both
        if far.any():
            return outside, start // width + int(np.flatnonzero(far)[0])
        outside += int(beyond.sum())
    return outside, None


def _numbers(content: Bytes, element: str) -> Numbers:
    """As floating-point numbers."""
    if element == "bfloat16":
        return (content.view(np.uint16).astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    return content.view(element).astype(np.float64)


def _sorted(content: Bytes, element: str) -> Numbers:
    """By their bits, so that every NaN has its place."""
    return np.sort(content.view(f"u{np.dtype(element).itemsize}"))
