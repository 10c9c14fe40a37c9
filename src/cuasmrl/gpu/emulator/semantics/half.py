"""Half precision: two fp16 or bfloat16 numbers in a register.

Selectors say which halves an operand gives to the lower and the upper result: `.H0_H0`, `.H1_H1`, or both
in their places where nothing is written. A number is written as two, the upper one first.
"""

from collections.abc import Callable
from functools import partial

import numpy as np

from cuasmrl.binary.sass import Kind, Operand
from cuasmrl.gpu.emulator.faults import UnsupportedError
from cuasmrl.gpu.emulator.forms import Form, Read, Step, raw, signed
from cuasmrl.gpu.emulator.semantics.formats import (
    BF16,
    FP16,
    Format,
    elements,
    is_zero,
    packed,
    refuse_suffixes,
)
from cuasmrl.gpu.emulator.semantics.registry import executes
from cuasmrl.gpu.emulator.semantics.relations import combination_of, relation_of
from cuasmrl.gpu.emulator.semantics.rounding import (
    Halves,
    add_to_odd,
    flush_halves,
    single_bits,
)
from cuasmrl.gpu.emulator.semantics.ufuncs import fused_halves, larger, smaller, widen_half
from cuasmrl.gpu.emulator.values import Mask, Value, constant
from cuasmrl.gpu.emulator.warps import Warps

_SIGNS = np.uint32(0x8000_8000)
_MAGNITUDES = np.uint32(0x7FFF_7FFF)
_LOW, _HIGH = np.uint32(0xFFFF), np.uint32(0xFFFF_0000)
_BITS = np.uint32(16)


@executes("HADD2")
def add(form: Form) -> Step:
    if form.has("F32"):
        return _add_to_single(form)
    one = FP16.one if "BF16_V2" not in form.modifiers else BF16.one
    ones = constant(one << 16 | one)
    function = _fused(form)
    a, b = _operands(form, 2)
    return form.compute(lambda a, b: function(a, ones, b), a, b)


@executes("HMUL2")
def multiply(form: Form) -> Step:
    zeros = constant(int(_SIGNS))  # x + -0 is x, also for zeros
    function = _fused(form)
    a, b = _operands(form, 2)
    return form.compute(lambda a, b: function(a, b, zeros), a, b)


@executes("HFMA2")
def fused_multiply_add(form: Form) -> Step:
    form.ignore("MMA")  # where it is executed
    reads = _operands(form, 3)
    if all(o.kind is Kind.IMMEDIATE or is_zero(o) for o in form.sources):
        # `HFMA2 R3, -RZ, RZ, 1.625, 0` loads a constant.
        write, function = form.result(), _fused(form, compiled=False)
        with np.errstate(all="ignore"):
            known = function(*(_constant(read) for read in reads))
        return lambda w: write(w, known)
    return form.compute(_fused(form), *reads)


@executes("HMNMX2")
def extremum(form: Form) -> Step:
    """As FMNMX, for both halves."""
    kind, ftz, nan = _format(form), form.has("FTZ"), form.has("NAN")
    a, b = _operands(form, 2)
    minimum = form.predicate(-1)

    def function(a: Value, b: Value, least: Mask) -> Value:
        x, y = elements(a), elements(b)
        if ftz:
            x, y = flush_halves(x, kind.mantissa), flush_halves(y, kind.mantissa)
        p, q = kind.widen(x), kind.widen(y)
        found = np.where(least[..., None], smaller(p, q), larger(p, q)).view(np.float32)
        if nan:
            found = np.where(np.isnan(p) | np.isnan(q), np.float32(np.nan), found)
        return packed(kind.narrow(found.astype(np.float64)))

    return form.compute(function, a, b, minimum)


@executes("HSET2")
def compare_to_register(form: Form) -> Step:
    """Per half all ones, or 1.0 with .BF."""
    true = np.uint16(_format(form).one if form.has("BF") else 0xFFFF)
    found, combine, write = _comparison(form), combination_of(form, -1), form.result()

    def step(w: Warps) -> None:
        both = np.stack([combine(w, half) for half in found(w)], axis=-1)
        write(w, packed(np.where(both, true, np.uint16(0))))

    return step


@executes("HSETP2")
def compare(form: Form) -> Step:
    """The first predicate is for the lower halves, the second for the upper ones."""
    found, combine = _comparison(form), combination_of(form, -1)
    writes = [form.result_predicate(k) for k in (0, 1)]

    def step(w: Warps) -> None:
        results = [combine(w, half) for half in found(w)]
        for write, result in zip(writes, results, strict=True):
            if write is not None:
                write(w, result)

    return step


def _add_to_single(form: Form) -> Step:
    """HADD2.F32: ptxas adds -0 to a half in order to widen it."""
    zeros = [k for k in (0, 1) if is_zero(form.operand(k))]
    if len(form.sources) != 2 or not zeros:
        raise UnsupportedError("adds two numbers to a single")
    k = 1 - zeros[0]
    zero, operand = form.operand(zeros[0]), form.operand(k)
    if not (operand.has("H0_H0") or operand.has("H1_H1")):
        raise UnsupportedError(f"operand {operand.text}")
    refuse_suffixes(zero, "H0_H0", "H1_H1")
    refuse_suffixes(operand, "H0_H0", "H1_H1")
    read, upper, plain = raw(operand, 0), operand.has("H1_H1"), zero.negated

    def function(bits: Value) -> Value:
        bits = signed(operand, widen_half(bits >> _BITS if upper else bits))
        return bits if plain else single_bits(bits.view(np.float32) + np.float32(0))

    if operand.negated or operand.absolute:
        return form.compute(lambda bits: single_bits(function(bits).view(np.float32)), read)
    return form.compute(function, read)


def _format(form: Form) -> Format:
    return BF16 if form.has("BF16_V2") else FP16


def _fused(form: Form, compiled: bool = True) -> Callable[[Value, Value, Value], Value]:
    """a * b + c for both halves, with one rounding and what the modifiers ask for."""
    kind, ftz = _format(form), form.has("FTZ")
    clamp = form.choose("SAT", "RELU", default="")
    fuse = fused_halves if kind is FP16 and compiled else partial(_fuse, kind)
    if not ftz and not clamp:
        return fuse

    def function(*operands: Value) -> Value:
        if ftz:
            operands = tuple(packed(flush_halves(elements(o), kind.mantissa)) for o in operands)
        result = elements(fuse(*operands))
        if ftz:
            result = flush_halves(result, kind.mantissa)
        if clamp:
            result = _clamped(result, kind, clamp)
        return packed(result)

    return function


def _clamped(bits: Halves, kind: Format, clamp: str) -> Halves:
    """.SAT: into [0, 1], NaN to 0. .RELU: negative numbers to 0, NaN stays."""
    number, zero = kind.widen(bits), np.uint16(0)
    if clamp == "RELU":
        return np.where((number <= 0), zero, bits)
    return np.where(number >= 1, np.uint16(kind.one), np.where(number > 0, bits, zero))


def _fuse(kind: Format, a: Value, b: Value, c: Value) -> Value:
    x, y, z = (kind.widen(elements(o)).astype(np.float64) for o in (a, b, c))
    return packed(kind.narrow(add_to_odd(x * y, z)))


def _comparison(form: Form) -> Callable[[Warps], list[Mask]]:
    """The relation of the lower halves and that of the upper ones."""
    kind, ftz, relation = _format(form), form.has("FTZ"), relation_of(form)
    a, b = _operands(form, 2)

    def found(w: Warps) -> list[Mask]:
        x, y = elements(a(w)), elements(b(w))
        if ftz:
            x, y = flush_halves(x, kind.mantissa), flush_halves(y, kind.mantissa)
        p, q = kind.widen(x), kind.widen(y)
        return [relation(p[..., k], q[..., k]) for k in (0, 1)]

    return found


# operands


def _operands(form: Form, count: int) -> list[Read]:
    """`count` of them from the first source on; a number is two sources."""
    reads, k = [], 0
    for _ in range(count):
        operand = form.operand(k)
        k += 1
        if operand.kind is Kind.IMMEDIATE:
            reads.append(_number(form, operand, form.operand(k)))
            k += 1
        else:
            reads.append(_register(operand))
    return reads


def _number(form: Form, upper: Operand, lower: Operand) -> Read:
    kind = _format(form)
    bits = 0
    for operand in (upper, lower):
        if operand.kind is not Kind.IMMEDIATE or operand.value is None or operand.text.startswith("0x"):
            raise UnsupportedError(f"expects two numbers instead of {operand.text}")
        value = float(operand.value)
        bits = bits << 16 | kind.bits(value)
    known = constant(bits)
    return lambda w: known


def _register(operand: Operand) -> Read:
    refuse_suffixes(operand, "H0_H0", "H1_H1", "H1_H0")
    read = raw(operand, 0)
    low, high = operand.has("H0_H0"), operand.has("H1_H1")
    absolute, negated = operand.absolute, operand.negated
    if not (low or high or absolute or negated):
        return read

    def selected(w: Warps) -> Value:
        bits = read(w)
        if low:
            bits = bits & _LOW
            bits |= bits << _BITS
        elif high:
            bits = bits & _HIGH
            bits |= bits >> _BITS
        if absolute:
            bits = bits & _MAGNITUDES
        return bits ^ _SIGNS if negated else bits

    return selected


def _constant(read: Read) -> Value:
    nobody: Warps = None  # type: ignore[assignment]
    return read(nobody)
