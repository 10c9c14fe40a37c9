"""Shifts of 32 bits and of 64 bits in two registers."""

from collections.abc import Callable

import numpy as np

from cuasmrl.binary.sass import Operand
from cuasmrl.gpu.emulator.faults import UnsupportedError
from cuasmrl.gpu.emulator.forms import Form, Read, Step
from cuasmrl.gpu.emulator.semantics.registry import executes
from cuasmrl.gpu.emulator.values import Value, high, join, low

Funnel = Callable[[Value, Value, Value], Value]


@executes("SHF", "USHF")
def funnel_shift(form: Form) -> Step:
    """Shift c:a by b and take the lower word, or the upper one (.HI).

    The type tells how far it can shift, 32 or 64, and what comes in from above. Greater distances count as
    that one; with .W they are taken modulo it.
    """
    left = form.choose("L", "R") == "L"
    kind = form.choose("U32", "S32", "U64", "S64")
    upper, wraps = form.has("HI"), form.has("W")
    limit, signed = int(kind[1:]), kind.startswith("S")
    for k in range(3):
        _refuse_sign(form.operand(k))
    lower, distance, above = form.integer(0), form.integer(1), form.integer(2)
    known = form.known(1)
    if known is not None:
        n = known % limit if wraps else min(known, limit)
        return form.compute(_by(n, left, signed, upper), lower, above)
    if wraps:
        distance = _modulo(distance, limit)
    if left and not upper:
        return form.compute(np.left_shift, lower, distance)
    if upper and not left:
        # Nothing comes down from above the upper word. NumPy fills shifts by 32 and more with the sign.
        if signed:
            return form.compute(_arithmetic, above, distance)
        return form.compute(np.right_shift, above, distance)
    return form.compute(_funnel(left, signed, limit), lower, above, distance)


def _refuse_sign(operand: Operand) -> None:
    if operand.negated or operand.inverted:
        raise UnsupportedError(f"operand {operand.text}")


def _modulo(read: Read, limit: int) -> Read:
    mask = np.uint32(limit - 1)
    return lambda w: read(w) & mask


def _arithmetic(a: Value, n: Value) -> Value:
    """Filled with the sign; a distance above 31 leaves nothing but the sign."""
    by = np.minimum(n, np.uint32(31)).view(np.int32)
    return (a.view(np.int32) >> by).view(np.uint32)


def _by(n: int, left: bool, signed: bool, upper: bool) -> Callable[[Value, Value], Value]:
    """The shift by a known distance; at most one of both words is looked at where one is enough."""
    up, down = np.uint32(n), np.uint32(32 - n if n <= 32 else n - 32)
    sign = np.int32(min(n if upper else n - 32, 31))
    if upper and not left:
        if signed:
            return lambda a, c: (c.view(np.int32) >> sign).view(np.uint32)
        return lambda a, c: c >> up
    if left and not upper:
        return lambda a, c: a << up
    if n == 0:
        return (lambda a, c: c) if left else (lambda a, c: a)
    if left:
        if n >= 32:
            return lambda a, c: a << down
        return lambda a, c: (c << up) | (a >> down)
    if n < 32:
        return lambda a, c: (a >> up) | (c << down)
    if signed:
        return lambda a, c: (c.view(np.int32) >> sign).view(np.uint32)
    return lambda a, c: c >> down


def _funnel(left: bool, signed: bool, limit: int) -> Funnel:
    """Both words, by a distance in a register."""

    def function(a: Value, c: Value, n: Value) -> Value:
        by = np.minimum(n, np.uint32(limit)).astype(np.uint64)
        both = join(a, c)
        if left:
            return high(both << by)
        if signed:
            by = np.minimum(by, np.uint64(63))
            return low((both.view(np.int64) >> by.view(np.int64)).view(np.uint64))
        return low(both >> by)

    return function
