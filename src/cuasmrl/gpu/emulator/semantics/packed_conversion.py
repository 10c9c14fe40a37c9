"""F2FP: conversions that put several small numbers into a register, and take them out again."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from cuasmrl.gpu.emulator.faults import UnsupportedError
from cuasmrl.gpu.emulator.forms import Form, Step, raw
from cuasmrl.gpu.emulator.semantics.formats import is_zero, refuse_suffixes
from cuasmrl.gpu.emulator.semantics.registry import executes
from cuasmrl.gpu.emulator.semantics.rounding import Single, bfloat, half, mode_of
from cuasmrl.gpu.emulator.semantics.single import Function
from cuasmrl.gpu.emulator.semantics.ufuncs import (
    NAN_HALF,
    NAN_SINGLE,
    pack_bfloats,
    pack_halves,
    widen_half,
)
from cuasmrl.gpu.emulator.values import ZERO, Value

_BYTE, _HALF = np.uint32(8), np.uint32(16)
_LOW_BYTE = np.uint32(0xFF)
_ZERO = ZERO.view(np.float32)


@dataclass(frozen=True)
class Small:
    """A format of 8 bits."""

    mantissa: int
    bias: int
    finite: int
    """How many codes from 0 on are finite positive numbers; what follows is infinite or NaN."""
    infinity: bool

    @cached_property
    def numbers(self) -> Single:
        """The finite positive ones by code."""
        codes = np.arange(self.finite)
        exponent, fraction = codes >> self.mantissa, codes & (1 << self.mantissa) - 1
        significand = fraction + np.where(exponent > 0, 1 << self.mantissa, 0)
        scale = np.maximum(exponent, 1) - self.bias - self.mantissa
        numbers: Single = np.ldexp(significand, scale).astype(np.float32)
        return numbers

    @cached_property
    def middles(self) -> Single:
        return (self.numbers[:-1] + self.numbers[1:]) / np.float32(2)

    @cached_property
    def halves(self) -> Value:
        """fp16 bits of every code."""
        positive = np.full(128, NAN_HALF, np.uint32)
        positive[: self.finite] = self.numbers.astype(np.float16).view(np.uint16)
        if self.infinity:
            positive[self.finite] = 0x7C00
        signs = np.where(positive == NAN_HALF, 0, 0x8000).astype(np.uint32)
        return np.concatenate([positive, positive | signs])

    def codes(self, number: Single) -> Value:
        """To nearest, ties to even; what is too large becomes the largest finite number."""
        magnitude = np.abs(number)
        code = np.searchsorted(self.middles, magnitude)
        tie = magnitude == self.middles[np.minimum(code, self.finite - 2)]
        code += tie & (code % 2 == 1)
        signs = np.where(np.signbit(number), 0x80, 0)
        return np.where(np.isnan(number), 0x7F, code | signs).astype(np.uint32)


SMALL = {"E4M3": Small(3, 7, 0x7F, infinity=False), "E5M2": Small(2, 15, 0x7C, infinity=True)}


@executes("F2FP")
def convert(form: Form) -> Step:
    shape = form.choose("PACK_AB", "MERGE_C", "PACK_B", "UNPACK_B", "PACK_AB_MERGE_C", "UNPACK_B_MERGE_C")
    match shape:
        case "PACK_AB":
            return form.compute(_pack_two(form), form.single(0), form.single(1))
        case "MERGE_C":
            return _convert_one(form)
        case "PACK_B":
            return _to_tensor_float(form)
        case "UNPACK_B":
            return _widen_bytes(form)
    return _narrow_to_bytes(form, from_halves=shape == "UNPACK_B_MERGE_C")


def _pack_two(form: Form) -> Function:
    """`d, a, b`: a goes to the upper half. sm_80 and sm_86 do not write the types .F16 and .F32."""
    kind, relu, mode = form.choose("F16", "BF16", default="F16"), form.has("RELU"), mode_of(form)
    form.ignore("F32")
    nearest = pack_halves if kind == "F16" else pack_bfloats
    narrow = half if kind == "F16" else bfloat

    def directed(a: Single, b: Single) -> Value:
        upper, lower = (narrow(x.astype(np.float64), mode).astype(np.uint32) for x in (a, b))
        return upper << _HALF | lower

    function = nearest if mode == "RN" else directed
    return (lambda a, b: function(_positive(a), _positive(b))) if relu else function


def _convert_one(form: Form) -> Step:
    """.MERGE_C: a to the lower half; ptxas is only seen to merge it with RZ."""
    other = form.operand(1)
    if not is_zero(other):
        raise UnsupportedError(f"merges with {other.text}")
    function = _pack_two(form)
    return form.compute(lambda a: function(_ZERO, a), form.single(0))


def _to_tensor_float(form: Form) -> Step:
    """TF32: the first 10 bits of the fraction, the others zero."""
    if not (form.has("TF32") and form.has("F32")):
        raise UnsupportedError("packs in an unknown way")

    def function(number: Single) -> Value:
        bits = number.view(np.uint32)
        odd = bits >> np.uint32(13) & np.uint32(1)
        rounded = bits + np.uint32(0xFFF) + odd & np.uint32(0xFFFF_E000)
        return np.where(np.isnan(number), NAN_SINGLE, rounded)

    return form.compute(function, form.single(0))


def _widen_bytes(form: Form) -> Step:
    """Two bytes of the lower half, or of the upper one with `.H1`, as fp16 numbers."""
    table = SMALL[form.choose(*SMALL)].halves
    if not form.has("F16"):
        raise UnsupportedError("unpacks to something other than fp16")
    operand = form.operand(0)
    refuse_suffixes(operand, "H0", "H1")
    if operand.negated or operand.absolute:
        raise UnsupportedError(f"operand {operand.text}")
    read, start = raw(operand, 0), np.uint32(16 if operand.has("H1") else 0)

    def function(bits: Value) -> Value:
        bits = bits >> start
        lower, upper = table.take(bits & _LOW_BYTE), table.take(bits >> _BYTE & _LOW_BYTE)
        return upper << _HALF | lower

    return form.compute(function, read)


def _narrow_to_bytes(form: Form, from_halves: bool) -> Step:
    """a and b, or both halves of a, become the lower half; the lower half of c becomes the upper one.

    So ptxas packs four numbers with two instructions, and the second merges the result of the first.
    """
    small = SMALL[form.choose(*SMALL)]
    if not (form.has("SATFINITE") and form.has("F16" if from_halves else "F32")):
        raise UnsupportedError("packs in an unknown way")
    relu = form.has("RELU")

    def function(a: Single, b: Single, c: Value) -> Value:
        upper, lower = (small.codes(_positive(x) if relu else x) for x in (a, b))
        return upper << _BYTE | lower | c << _HALF

    def of_halves(bits: Value, c: Value) -> Value:
        upper, lower = widen_half(bits >> _HALF), widen_half(bits)
        return function(upper.view(np.float32), lower.view(np.float32), c)

    if from_halves:
        return form.compute(of_halves, form.integer(0), form.integer(1))
    return form.compute(function, form.single(0), form.single(1), form.integer(2))


def _positive(number: Single) -> Single:
    """.RELU: negative numbers become zero, NaN stays."""
    return np.where(number <= 0, np.float32(0), number)
