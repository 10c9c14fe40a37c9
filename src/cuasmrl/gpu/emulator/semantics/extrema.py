"""Minima and maxima of integers."""

from collections.abc import Callable
from typing import Any

import numpy as np

from cuasmrl.gpu.emulator.faults import UnsupportedError
from cuasmrl.gpu.emulator.forms import Form, ReadMask, Step
from cuasmrl.gpu.emulator.semantics.packing import parts_of, words_of
from cuasmrl.gpu.emulator.semantics.registry import executes
from cuasmrl.gpu.emulator.values import Array, Long, Mask, Value
from cuasmrl.gpu.emulator.warps import Warps

_TYPES: dict[str, Any] = {
    "S32": np.int32, "U32": np.uint32, "S16x2": np.int16, "U16x2": np.uint16, "S64": np.int64,
    "U64": np.uint64,
}  # fmt: skip


@executes("IMNMX", "UIMNMX", "VIMNMX", "UVIMNMX")
def extremum(form: Form) -> Step:
    """The smaller one where the predicate holds, the greater one elsewhere."""
    kind = form.choose(*_TYPES, default="S32")
    if kind.endswith("64"):
        return _extremum_long(form, _TYPES[kind])
    choose = _chooser(form, 2)
    function = _folded(kind)
    return form.compute(
        lambda a, b, smaller: function(smaller, a, b), form.integer(0), form.integer(1), choose
    )


@executes("VIMNMX3")
def extremum_of_three(form: Form) -> Step:
    function = _folded(form.choose("S32", "U32", "S16x2", "U16x2", default="S32"))
    choose = _chooser(form, 3)
    return form.compute(
        lambda a, b, c, smaller: function(smaller, a, b, c),
        form.integer(0), form.integer(1), form.integer(2), choose,
    )  # fmt: skip


@executes("VIADDMNMX")
def extremum_of_sum(form: Form) -> Step:
    """min(a + b, c) or max(a + b, c), where the sum wraps around as that of IADD3 does."""
    function = _folded(form.choose("S32", "U32", default="S32"))
    choose = _chooser(form, 3)
    return form.compute(
        lambda a, b, c, smaller: function(smaller, a + b, c),
        form.integer(0), form.integer(1), form.integer(2), choose,
    )  # fmt: skip


def _extremum_long(form: Form, kind: Any) -> Step:
    choose = _chooser(form, 2)
    a, b, write = form.long(0), form.long(1), form.result_long()

    def step(w: Warps) -> None:
        write(w, _extreme(choose(w), a(w).view(kind), b(w).view(kind)).view(np.uint64))

    return step


def _chooser(form: Form, k: int) -> ReadMask:
    if form.result_predicate(0) is not None or form.result_predicate(1) is not None:
        raise UnsupportedError("result predicate")
    if len(form.sources) > k + 1 and form.known(k + 1) != 0:
        # IMNMX has one more predicate on sm_120, which would continue a comparison of longer numbers.
        raise UnsupportedError("continued comparison")
    return form.predicate(k)


def _folded(kind: str) -> Callable[..., Value]:
    view = _TYPES[kind]

    def words(smaller: Mask, first: Value, *rest: Value) -> Value:
        best: Array = first.view(view)
        for value in rest:
            best = _extreme(smaller, best, value.view(view))
        result: Value = best.view(np.uint32)
        return result

    def halves(smaller: Mask, first: Value, *rest: Value) -> Value:
        best = parts_of(first, view)
        for value in rest:
            best = _extreme(smaller[..., None], best, parts_of(value, view))
        return words_of(best)

    return halves if kind.endswith("x2") else words


def _extreme(smaller: Mask, a: Array | Long, b: Array | Long) -> Array:
    if smaller.size == 1:
        return np.minimum(a, b) if smaller.item() else np.maximum(a, b)
    return np.where(smaller, np.minimum(a, b), np.maximum(a, b))
