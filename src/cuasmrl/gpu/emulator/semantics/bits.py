"""Single bits: counts, positions, masks, reversal."""

import numpy as np

from cuasmrl.gpu.emulator.faults import UnsupportedError
from cuasmrl.gpu.emulator.forms import Form, Step
from cuasmrl.gpu.emulator.semantics.registry import executes
from cuasmrl.gpu.emulator.values import Value

_ONES_OF_HALF = np.unpackbits(np.arange(1 << 16, dtype=np.uint16).view(np.uint8).reshape(-1, 2), axis=1)
_COUNTS = _ONES_OF_HALF.sum(axis=1, dtype=np.uint32)
_REVERSED = np.packbits(np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1)[:, ::-1], axis=1)[:, 0]


@executes("POPC", "UPOPC")
def count_ones(form: Form) -> Step:
    return form.compute(
        lambda a: _COUNTS[a & np.uint32(0xFFFF)] + _COUNTS[a >> np.uint32(16)], form.integer(0)
    )


@executes("FLO", "UFLO")
def find_leading_one(form: Form) -> Step:
    """Position of the highest one, -1 without any; of a negative number that of its highest zero.

    With .SH the distance from bit 31 instead, which is the shift that would bring it there.
    """
    if form.result_predicate(0) is not None:
        raise UnsupportedError("result predicate")
    signed, from_top = not form.has("U32"), form.has("SH")

    def function(a: Value) -> Value:
        if signed:
            a = a ^ (a.view(np.int32) >> np.int32(31)).view(np.uint32)
        # A double holds 32 bits exactly, and its exponent is the number of bits: 0 for zero.
        length = np.frexp(a.astype(np.float64))[1]
        if from_top:
            return np.where(length == 0, np.int32(-1), np.int32(32) - length).view(np.uint32)
        return (length - np.int32(1)).view(np.uint32)

    return form.compute(function, form.integer(0))


@executes("BREV")
def reverse_bits(form: Form) -> Step:
    def function(a: Value) -> Value:
        return _REVERSED[np.ascontiguousarray(a).byteswap().view(np.uint8)].view(np.uint32)

    return form.compute(function, form.integer(0))


@executes("SGXT", "USGXT")
def extend_sign(form: Form) -> Step:
    """Keep the lowest n bits, filled up with their sign, or with zeros (.U32); none where n is 0.

    Above 32 n counts as 32; with .W only its lowest five bits count.
    """
    signed, wraps = not form.has("U32"), form.has("W")
    width = form.known(1)
    if width is not None:
        width = width & 31 if wraps else min(width, 32)
        if signed and width > 0:
            out = np.int32(32 - width)
            return form.compute(lambda a: ((a.view(np.int32) << out) >> out).view(np.uint32), form.integer(0))
        kept = np.uint32((1 << width) - 1)
        return form.compute(lambda a: a & kept, form.integer(0))

    def function(a: Value, n: Value) -> Value:
        n = n & np.uint32(31) if wraps else np.minimum(n, np.uint32(32))
        # A shift by 32 leaves nothing: NumPy defines it, unlike C.
        out = np.uint32(32) - n
        up = a << out
        return (up.view(np.int32) >> out.view(np.int32)).view(np.uint32) if signed else up >> out

    return form.compute(function, form.integer(0), form.integer(1))


@executes("BMSK")
def bit_mask(form: Form) -> Step:
    """`b` ones, the lowest of them at position `a`; with .W both modulo 32."""
    wraps = form.has("W")

    def function(a: Value, b: Value) -> Value:
        if wraps:
            a, b = a & np.uint32(31), b & np.uint32(31)
        # A shift by 32 or more leaves nothing, so that 32 ones are 0 - 1.
        one = np.uint32(1)
        return ((one << b) - one) << a

    return form.compute(function, form.integer(0), form.integer(1))
