"""Single precision: sums, products, minima, choices."""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from cuasmrl.binary.sass import Kind
from cuasmrl.gpu.emulator.faults import UnsupportedError
from cuasmrl.gpu.emulator.forms import Form, Read, ReadFloat, Step, raw
from cuasmrl.gpu.emulator.semantics.registry import executes
from cuasmrl.gpu.emulator.semantics.rounding import (
    Double,
    Single,
    add_to_odd,
    flush,
    has_nan,
    mode_of,
    saturate,
    single,
    single_bits,
)
from cuasmrl.gpu.emulator.semantics.ufuncs import NAN_SINGLE, fused_single, larger, select, smaller
from cuasmrl.gpu.emulator.values import Value, constant
from cuasmrl.gpu.emulator.warps import Warps

_SIGN = np.uint32(0x8000_0000)
Function: TypeAlias = Callable[..., Value]
"""From numbers to the bits of the result."""


@executes("FADD", "UFADD")
def add(form: Form) -> Step:
    return form.compute(sum_of(form), form.single(0), form.single(1))


@executes("FMUL", "UFMUL")
def multiply(form: Form) -> Step:
    return form.compute(product_of(form), form.single(0), form.single(1))


@executes("FFMA", "UFFMA")
def fused_multiply_add(form: Form) -> Step:
    return form.compute(fused_of(form), form.single(0), form.single(1), form.single(2))


@executes("FMNMX", "UFMNMX", "FMNMX3")
def extremum(form: Form) -> Step:
    """The last operand says which: true for the minimum, false for the maximum."""
    choice = form.operand(-1)
    minimum = form.predicate(-1)
    reads = [form.single(k) for k in range(3 if form.opcode == "FMNMX3" else 2)]
    ftz, nan = form.has("FTZ"), form.has("NAN")
    if form.has("XORSIGN"):
        return _extremum_of_magnitudes(form, ftz, nan)
    write = form.result()
    known = choice.register is not None and choice.register.index is None

    def step(w: Warps) -> None:
        numbers = [flush(read(w)) if ftz else read(w) for read in reads]
        if known:
            write(w, _extremum(larger if choice.inverted else smaller, numbers, nan))
        else:
            least, most = _extremum(smaller, numbers, nan), _extremum(larger, numbers, nan)
            write(w, select(minimum(w), least, most))

    return step


def _extremum_of_magnitudes(form: Form, ftz: bool, nan: bool) -> Step:
    """.XORSIGN: min or max of magnitudes, with the sign of the product (PTX ISA, min.xorsign.abs)."""
    operands = [form.operand(k) for k in range(2)]
    if len(form.sources) != 3 or not all(o.absolute and not o.negated for o in operands):
        raise UnsupportedError("signs of operands whose signs are combined")
    bits, minimum, write = [raw(operand, 0) for operand in operands], form.predicate(2), form.result()

    def step(w: Warps) -> None:
        a, b = (read(w) for read in bits)
        numbers = [(word & ~_SIGN).view(np.float32) for word in (a, b)]
        numbers = [flush(number) for number in numbers] if ftz else numbers
        least, most = _extremum(smaller, numbers, nan), _extremum(larger, numbers, nan)
        found = select(minimum(w), least, most)
        write(w, np.where(np.isnan(found.view(np.float32)), found, found | (a ^ b) & _SIGN))

    return step


@executes("FSEL", "UFSEL")
def choose(form: Form) -> Step:
    """Bits pass unchanged: ptxas selects halves of doubles with it."""
    ftz = form.has("FTZ")
    a, b, condition = _bits(form, 0), _bits(form, 1), form.predicate(2)
    if ftz:
        return form.compute(
            lambda c, a, b: flush(select(c, a, b).view(np.float32)).view(np.uint32), condition, a, b
        )
    return form.compute(select, condition, a, b)


def sum_of(form: Form) -> Function:
    return _rounded(form, lambda a, b: single_bits(a + b), lambda mode, a, b: add_to_odd(a, b, mode))


_SCALES = {"M2": 2.0, "M4": 4.0, "M8": 8.0, "D2": 0.5, "D4": 0.25, "D8": 0.125}
"""The product times a power of two, rounded once."""


def product_of(form: Form) -> Function:
    # 24 by 24 bits: exact in float64.
    scale = next((factor for name, factor in _SCALES.items() if form.has(name)), None)
    if scale is not None:
        return _rounded(
            form,
            lambda a, b: single_bits((a.astype(np.float64) * b * scale).astype(np.float32)),
            lambda mode, a, b: a * b * scale,
        )
    return _rounded(form, lambda a, b: single_bits(a * b), lambda mode, a, b: a * b)


def fused_of(form: Form) -> Function:
    return _rounded(form, fused_single, lambda mode, a, b, c: add_to_odd(a * b, c, mode))


def _rounded(form: Form, nearest: Function, exact: Callable[..., Double]) -> Function:
    """With the modifiers of arithmetic: rounding mode, subnormals to zero, into [0, 1]."""
    mode, ftz, sat = mode_of(form), form.has("FTZ"), form.has("SAT")

    def directed(*numbers: Single) -> Value:
        wide = exact(mode, *(number.astype(np.float64) for number in numbers))
        return single_bits(single(wide, mode))

    function = nearest if mode == "RN" else directed

    def flushed(*numbers: Single) -> Value:
        return flush(function(*map(flush, numbers)).view(np.float32)).view(np.uint32)

    last = flushed if ftz else function
    if sat:
        return lambda *numbers: saturate(last(*numbers).view(np.float32)).view(np.uint32)
    return last


def _extremum(function: Function, numbers: list[Single], nan: bool) -> Value:
    result = function(numbers[0], numbers[1])
    for number in numbers[2:]:
        result = function(result.view(np.float32), number)
    if nan:
        for number in numbers:
            if has_nan(number):
                result = np.where(np.isnan(number), NAN_SINGLE, result)
    return result


def _bits(form: Form, k: int) -> Read:
    operand = form.operand(k)
    if operand.kind is Kind.IMMEDIATE and "NAN" in operand.text:
        # The text hides which NaN it is; bits 32 to 63 of the instruction hold it.
        number = constant(int.from_bytes(form.instruction.word[4:8], "little"))
        return lambda w: number
    read: ReadFloat = form.single(k)
    return lambda w: read(w).view(np.uint32)
