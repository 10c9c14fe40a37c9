"""Moves between registers, and choices between them."""

import numpy as np

from cuasmrl.gpu.emulator.faults import UnsupportedError
from cuasmrl.gpu.emulator.forms import Form, Step
from cuasmrl.gpu.emulator.semantics.registry import executes
from cuasmrl.gpu.emulator.values import Mask, Value
from cuasmrl.gpu.emulator.warps import Warps


@executes("MOV", "UMOV")
def move(form: Form) -> Step:
    # .SPILL marks a uniform register put aside in a general one.
    form.ignore("SPILL")
    if form.operand(0).negated or form.operand(0).inverted:
        raise UnsupportedError("sign of a move")
    if len(form.sources) > 1 and form.immediate(1) != 0xF:
        raise UnsupportedError("move of some bytes only")
    words = [
        (form.word(0, i), write) for i, write in enumerate(form.result_words(2 if form.has("64") else 1))
    ]
    if len(words) == 1:
        ((read, write),) = words
        return lambda w: write(w, read(w))

    def step(w: Warps) -> None:
        values = [read(w) for read, _ in words]
        for (_, write), value in zip(words, values, strict=True):
            write(w, value)

    return step


@executes("SEL", "USEL")
def select(form: Form) -> Step:
    condition = form.predicate(2)
    if not form.has("64"):
        return form.compute(choose, condition, form.integer(0), form.integer(1))
    if any(form.operand(k).negated or form.operand(k).inverted for k in (0, 1)):
        raise UnsupportedError("signs on 64 bits")
    words = [(form.word(0, i), form.word(1, i), write) for i, write in enumerate(form.result_words(2))]

    def step(w: Warps) -> None:
        mask = condition(w)
        values = [choose(mask, a(w), b(w)) for a, b, _ in words]
        for (_, _, write), value in zip(words, values, strict=True):
            write(w, value)

    return step


def choose(condition: Mask, a: Value, b: Value) -> Value:
    if condition.size == 1:
        return a if condition.item() else b
    return np.where(condition, a, b)
