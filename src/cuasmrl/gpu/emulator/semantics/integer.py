"""Integer sums: additions with carries, shifted additions, differences."""

from collections.abc import Sequence

import numpy as np

from cuasmrl.gpu.emulator.faults import UnsupportedError
from cuasmrl.gpu.emulator.forms import Form, Read, Step
from cuasmrl.gpu.emulator.semantics.carries import (
    Terms,
    complement,
    one_and_two,
    terms,
    total,
    total_with_carries,
)
from cuasmrl.gpu.emulator.semantics.registry import executes
from cuasmrl.gpu.emulator.values import ZERO, Value
from cuasmrl.gpu.emulator.warps import Warps


@executes("IADD3", "UIADD3", "IADD")
def add(form: Form) -> Step:
    count = 3 if form.opcode.endswith("3") else 2
    if form.has("64"):
        return _add_long(form, count)
    extended = form.has("X")
    return sum_up(form, terms(form, [(k, form.word(k)) for k in range(count)], extended, count))


@executes("VIADD")
def add_without_carry(form: Form) -> Step:
    return sum_up(form, terms(form, [(0, form.word(0)), (1, form.word(1))], False, 2))


def sum_up(form: Form, parts: Terms) -> Step:
    """Write the sum, and its carries where there is a predicate for them.

    With two predicates ptxas hands both to the next word, which adds them: it is not known which of them a
    single carry sets. We take the first.
    """
    write, first, second = form.result(), form.result_predicate(0), form.result_predicate(1)
    if first is None and second is None:
        return _plain(form, parts)

    def step(w: Warps) -> None:
        value, carries = total_with_carries(*parts.read(w))
        one, two = one_and_two(carries)
        write(w, value)
        if first is not None:
            first(w, one)
        if second is not None:
            second(w, two)

    return step


def _plain(form: Form, parts: Terms) -> Step:
    """Without carries out; the usual cases without lists."""
    match parts:
        case Terms((a,), (), ()):
            write = form.result()
            return lambda w: write(w, a(w))
        case Terms((a, b), (), ()):
            return form.compute(np.add, a, b)
        case Terms((a,), (b,), ()):
            return form.compute(np.subtract, a, b)
        case Terms((), (a,), ()):
            return form.compute(np.negative, a)
    write = form.result()
    return lambda w: write(w, total(*parts.read(w)))


def _add_long(form: Form, count: int) -> Step:
    """Sums of pairs (sm_100 and later): a low word, and a high one that takes its carries."""
    if form.result_predicate(0) is not None or form.result_predicate(1) is not None:
        raise UnsupportedError("carry out of 64 bits")
    low = terms(form, [(k, form.word(k)) for k in range(count)], False, count)
    # -x is ~x + 1: the one is in the low word.
    high: Sequence[Read] = [
        complement(form.word(k, 1)) if form.operand(k).negated else form.word(k, 1) for k in range(count)
    ]
    if any(form.operand(k).inverted for k in range(count)):
        raise UnsupportedError("inverted operands of 64 bits")
    write_low, write_high = form.result_words(2)

    def step(w: Warps) -> None:
        value, carries = total_with_carries(*low.read(w))
        upper = total([read(w) for read in high], [], carries)
        write_low(w, value)
        write_high(w, upper)

    return step


@executes("LEA", "ULEA")
def shift_and_add(form: Form) -> Step:
    """`LEA` (a << n) + b; `LEA.HI` the same with what the shift of c:a pushes into the upper word."""
    extended = form.has("X")
    if not form.has("HI"):
        shifted = _shifted(form.word(0), form.immediate(2))
        return sum_up(form, terms(form, [(0, shifted), (1, form.word(1))], extended, 3))
    if form.operand(0).negated or form.operand(0).inverted:
        # Negated before or after the shift? ptxas does not use it.
        raise UnsupportedError("upper word of a negated operand")
    if form.has("SX32"):
        shifted, carry = _upper_of_signed(form.word(0), form.immediate(2)), 3
    else:
        if form.operand(2).negated or form.operand(2).inverted:
            raise UnsupportedError("upper word of a negated operand")
        upper = None if form.known(2) == 0 else form.word(2)
        shifted, carry = _upper(form.word(0), upper, form.immediate(3)), 4
    parts = terms(form, [(1, form.word(1))], extended, carry)
    return sum_up(form, Terms((shifted, *parts.added), parts.subtracted, parts.carries))


def _shifted(read: Read, n: int) -> Read:
    if n == 0:
        return read
    by = np.uint32(n)
    return lambda w: read(w) << by


def _upper(low: Read, high: Read | None, n: int) -> Read:
    """The upper word of high:low << n."""
    if n == 0:
        return high or (lambda w: ZERO)
    up, down = np.uint32(n), np.uint32(32 - n)
    if high is None:
        return lambda w: low(w) >> down
    return lambda w: (high(w) << up) | (low(w) >> down)


def _upper_of_signed(low: Read, n: int) -> Read:
    # Beyond 31 the sign fills all bits.
    down = np.int32(min(32 - n, 31))
    return lambda w: (low(w).view(np.int32) >> down).view(np.uint32)


@executes("IABS")
def absolute(form: Form) -> Step:
    return form.compute(_absolute, form.integer(0))


def _absolute(a: Value) -> Value:
    """|a|; the most negative number stays as it is."""
    return np.abs(a.view(np.int32)).view(np.uint32)


@executes("VABSDIFF")
def absolute_difference(form: Form) -> Step:
    """|a - b| + c, the difference without overflow."""
    if form.result_predicate(0) is not None:
        raise UnsupportedError("result predicate")
    greater, less = (np.maximum, np.minimum)
    if form.has("U32"):
        return form.compute(
            lambda a, b, c: greater(a, b) - less(a, b) + c, form.integer(0), form.integer(1), form.integer(2)
        )

    def signed(a: Value, b: Value, c: Value) -> Value:
        x, y = a.view(np.int32), b.view(np.int32)
        return greater(x, y).view(np.uint32) - less(x, y).view(np.uint32) + c

    return form.compute(signed, form.integer(0), form.integer(1), form.integer(2))
