"""Rounding of floating-point results: modes, subnormals, formats that NumPy does not have.

A result is first computed in float64 and rounded to odd: if bits are lost, the last one left is set. Such
a number lies on the same side of every narrower number, and of every middle between two of them, as the
exact result does, so it can be rounded to the narrower format as if it were exact (Boldo and Melquiond,
"Emulation of FMA and correctly rounded sums", 2008).
"""

from math import isnan
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from cuasmrl.gpu.emulator.forms import Form
from cuasmrl.gpu.emulator.semantics.ufuncs import NAN_DOUBLE, NAN_HALF, NAN_SINGLE
from cuasmrl.gpu.emulator.values import Array, Long, Mask, Value

Single: TypeAlias = npt.NDArray[np.float32]
Double: TypeAlias = npt.NDArray[np.float64]
Halves: TypeAlias = npt.NDArray[np.uint16]
"""Bits of fp16 or bfloat16 numbers."""

_SMALLEST_NORMAL = np.float32(2.0**-126)
_SIGN = np.uint32(0x8000_0000)
_LAST = np.int64(1)
_ZERO, _ONE = np.float32(0), np.float32(1)
_TOWARD = {"RM": -np.inf, "RP": np.inf, "RZ": 0.0}
_TO_INTEGER = {"TRUNC": np.trunc, "FLOOR": np.floor, "CEIL": np.ceil, "ROUND": np.rint}


def mode_of(form: Form) -> str:
    """RN to nearest (ties to even), RM down, RP up, RZ toward zero."""
    return form.choose("RN", "RM", "RP", "RZ", default="RN")


def whole(form: Form) -> np.ufunc:
    """The function that rounds to a whole number as the modifiers say."""
    return _TO_INTEGER[form.choose("ROUND", "TRUNC", "FLOOR", "CEIL", default="ROUND")]


# float32


def flush(number: Single) -> Single:
    """.FTZ: subnormal numbers become zeros of the same sign."""
    small = np.abs(number) < _SMALLEST_NORMAL
    if not small.any():
        return number
    bits = number.view(np.uint32)
    return np.where(small, bits & _SIGN, bits).view(np.float32)


def saturate(number: Single) -> Single:
    """.SAT: into [0, 1]; NaN becomes 0."""
    return np.where(number > _ZERO, np.minimum(number, _ONE), _ZERO)


def single_bits(number: Single) -> Value:
    """With the one NaN that arithmetic answers with."""
    if has_nan(number):
        return np.where(np.isnan(number), NAN_SINGLE, number.view(np.uint32))
    return number.view(np.uint32)


def has_nan(number: Array) -> bool:
    """A maximum is NaN if anything is: half the time of looking at each."""
    return isnan(np.maximum.reduce(number, axis=None))


def single(number: Double, mode: str) -> Single:
    """A number that is exact or rounded to odd."""
    return _narrow(number, number.astype(np.float32), mode)


def _narrow(number: Double, nearest: Array, mode: str) -> Array:
    if mode == "RN":
        return nearest
    back = nearest.astype(np.float64)
    if mode == "RM":
        beyond = back > number
    elif mode == "RP":
        beyond = back < number
    else:
        beyond = np.abs(back) > np.abs(number)
    return np.where(beyond, np.nextafter(nearest, nearest.dtype.type(_TOWARD[mode])), nearest)


# float64


def two_sum(a: Double, b: Double) -> tuple[Double, Double]:
    """a + b rounded to nearest, and exactly what rounding took away (Knuth); NaN beside infinities."""
    total = a + b
    t = total - a
    return total, (a - (total - t)) + (b - t)


def add_to_odd(a: Double, b: Double, mode: str = "RN") -> Double:
    """a + b, rounded to odd; the mode decides only the sign of a zero."""
    total, lost = two_sum(a, b)
    inexact = np.abs(lost) > 0
    if inexact.any():
        bits = total.view(np.int64)
        away = np.where((lost > 0) == (total > 0), _LAST, -_LAST)
        total = np.where(inexact & (bits & _LAST == 0), bits + away, bits).view(np.float64)
    return zero_of_mode(total, a, b, mode)


def zero_of_mode(total: Double, a: Double, b: Double, mode: str) -> Double:
    """Rounding down, a sum of numbers of unlike signs that is zero is -0."""
    if mode != "RM":
        return total
    return np.where((total == 0) & (np.signbit(a) | np.signbit(b)), -0.0, total)


def direct(nearest: Double, lost: Double, finite: Mask, mode: str) -> Double:
    """From rounding to nearest to another mode; `lost` has the sign of what rounding took away.

    `finite` tells which operands were: only then has rounding made an infinity.
    """
    endless = np.isinf(nearest)
    if endless.any():
        lost = np.where(endless, np.where(finite, -nearest, 0.0), lost)
    if mode == "RM":
        beyond = lost < 0
    elif mode == "RP":
        beyond = lost > 0
    else:
        beyond = (np.abs(lost) > 0) & ((lost < 0) == (nearest > 0))
    return np.where(beyond, np.nextafter(nearest, _TOWARD[mode]), nearest)


def double_bits(number: Double) -> Long:
    if has_nan(number):
        return np.where(np.isnan(number), NAN_DOUBLE, number.view(np.uint64))
    return number.view(np.uint64)


# 16 bits


def half(number: Double, mode: str = "RN") -> Halves:
    """fp16 bits of a number that is exact or rounded to odd."""
    nearest = _narrow(number, number.astype(np.float16), mode).view(np.uint16)
    return np.where(np.isnan(number), np.uint16(NAN_HALF), nearest)


def bfloat(number: Double, mode: str = "RN") -> Halves:
    """bfloat16 bits of a number that is exact or rounded to odd."""
    cut = single(number, "RZ")
    bits = cut.view(np.uint32) | (cut != number).astype(np.uint32)  # float32 rounded to odd
    upper, rest = bits >> np.uint32(16), bits & np.uint32(0xFFFF)
    if mode == "RN":
        upper = upper + ((rest + (upper & np.uint32(1))) > np.uint32(0x8000))
    elif mode != "RZ":
        away = np.signbit(cut) if mode == "RM" else ~np.signbit(cut)
        upper = upper + ((rest != 0) & away)
    return np.where(np.isnan(number), np.uint16(NAN_HALF), upper.astype(np.uint16))


def from_half(bits: Halves) -> Single:
    return bits.view(np.float16).astype(np.float32)


def from_bfloat(bits: Halves) -> Single:
    return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)


def flush_halves(bits: Halves, mantissa: int) -> Halves:
    """Subnormal numbers of a format with so many mantissa bits become zeros of the same sign."""
    fraction = np.uint16((1 << mantissa) - 1)
    sign = np.uint16(0x8000)
    subnormal = bits & ~(sign | fraction) == 0
    return np.where(subnormal, bits & sign, bits)
