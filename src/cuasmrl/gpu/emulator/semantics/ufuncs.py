"""Floating-point loops that NumPy lacks or is slow at, compiled by numba to ufuncs.

They take and give bits where the bits of a NaN matter: the hardware answers with one NaN per format,
whatever NaNs went in. All of them round to nearest, ties to even.
"""

from collections.abc import Callable
from typing import Any, TypeAlias

import numba
import numpy as np
from llvmlite import ir
from numba.extending import intrinsic

from cuasmrl.gpu.emulator.values import Array

Loop: TypeAlias = Callable[..., Array]

NAN_SINGLE = np.uint32(0x7FFF_FFFF)
NAN_DOUBLE = np.uint64(0xFFF8_0000_0000_0000)
NAN_HALF = np.uint32(0x7FFF)
"""Also of bfloat16."""

_LOW = np.uint32(0xFFFF)
_HALF = np.uint32(16)
_ONE = np.uint32(1)
# From here on a loop over dense operands is faster even though a single number has to be copied first:
# LLVM makes vector instructions only for dense ones.
_WORTH_COPYING = 1024


def _fma_type(typing: Any, a: Any, b: Any, c: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.fma(*arguments)

    return a(a, a, a), generate


def _to_half_type(typing: Any, number: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        half = builder.fptrunc(arguments[0], ir.HalfType())
        return builder.zext(builder.bitcast(half, ir.IntType(16)), ir.IntType(32))

    return numba.types.uint32(numba.types.float32), generate


def _from_half_type(typing: Any, bits: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        half = builder.bitcast(builder.trunc(arguments[0], ir.IntType(16)), ir.HalfType())
        return builder.fpext(half, ir.FloatType())

    return numba.types.float32(numba.types.uint32), generate


_fma = intrinsic(_fma_type)
_to_half = intrinsic(_to_half_type)
_from_half = intrinsic(_from_half_type)


def _ufunc(signature: str, function: Callable[..., Any]) -> Loop:
    """Made on first use: compiling takes a fifth of a second, loading what an earlier run compiled half."""
    loop: Loop | None = None

    def call(*operands: Array) -> Array:
        nonlocal loop
        if loop is None:
            loop = _compiled(signature, function)
        sizes = [operand.size for operand in operands]
        if 1 in sizes and max(sizes) >= _WORTH_COPYING:
            like = operands[sizes.index(max(sizes))]
            operands = tuple(_dense(operand, like) for operand in operands)
        return loop(*operands)

    return call


def _compiled(signature: str, function: Callable[..., Any]) -> Loop:
    loop: Loop = numba.vectorize([signature], cache=True)(function)
    return loop


def _dense(operand: Array, like: Array) -> Array:
    if operand.size > 1:
        return operand
    copy = np.empty(like.shape, operand.dtype)
    copy[...] = operand
    return copy


def _fused_single(a: Any, b: Any, c: Any) -> Any:
    r = np.float32(_fma(a, b, c))
    return r.view(np.uint32) if not np.isnan(r) else NAN_SINGLE


def _fused_double(a: Any, b: Any, c: Any) -> Any:
    r = np.float64(_fma(a, b, c))
    return r.view(np.uint64) if not np.isnan(r) else NAN_DOUBLE


def _smaller(a: Any, b: Any) -> Any:
    x = np.float32(b if np.isnan(a) else a)
    y = np.float32(a if np.isnan(b) else b)
    if x == y:
        return x.view(np.uint32) | y.view(np.uint32)  # -0 < +0
    r = np.float32(x if x < y else y)
    return r.view(np.uint32) if not np.isnan(r) else NAN_SINGLE


def _larger(a: Any, b: Any) -> Any:
    x = np.float32(b if np.isnan(a) else a)
    y = np.float32(a if np.isnan(b) else b)
    if x == y:
        return x.view(np.uint32) & y.view(np.uint32)
    r = np.float32(x if x > y else y)
    return r.view(np.uint32) if not np.isnan(r) else NAN_SINGLE


def _pack_halves(high: Any, low: Any) -> Any:
    h = _to_half(high) if not np.isnan(high) else NAN_HALF
    l = _to_half(low) if not np.isnan(low) else NAN_HALF  # noqa: E741
    return h << _HALF | l


def _pack_bfloats(high: Any, low: Any) -> Any:
    h, l = np.float32(high).view(np.uint32), np.float32(low).view(np.uint32)  # noqa: E741
    h = h + np.uint32(0x7FFF) + (h >> _HALF & _ONE) if not np.isnan(high) else NAN_HALF << _HALF
    l = l + np.uint32(0x7FFF) + (l >> _HALF & _ONE) if not np.isnan(low) else NAN_HALF << _HALF  # noqa: E741
    return h & ~_LOW | l >> _HALF


def _widen_half(bits: Any) -> Any:
    r = np.float32(_from_half(bits))
    return r.view(np.uint32) if not np.isnan(r) else NAN_SINGLE


def _fused_half(a: Any, b: Any, c: Any) -> Any:
    """The product is exact in float32; the sum is rounded to odd there, so that rounding it again to half
    precision rounds only once (Boldo and Melquiond, 2008)."""
    p, x = _from_half(a) * _from_half(b), _from_half(c)
    total = np.float32(p + x)
    t = total - p
    lost = (p - (total - t)) + (x - t)
    bits = total.view(np.uint32)
    if (lost > 0 or lost < 0) and not bits & _ONE:
        bits = bits + _ONE if (lost > 0) == (total > 0) else bits - _ONE
    return _to_half(np.uint32(bits).view(np.float32)) if not np.isnan(total) else NAN_HALF


_fused_half_jitted = numba.njit(_fused_half)


def _fused_halves(a: Any, b: Any, c: Any) -> Any:
    low = _fused_half_jitted(a, b, c)
    return low | _fused_half_jitted(a >> _HALF, b >> _HALF, c >> _HALF) << _HALF


def _select(condition: Any, a: Any, b: Any) -> Any:
    return a if condition else b


fused_single = _ufunc("uint32(float32, float32, float32)", _fused_single)
"""a * b + c with one rounding."""
fused_double = _ufunc("uint64(float64, float64, float64)", _fused_double)
smaller = _ufunc("uint32(float32, float32)", _smaller)
"""The smaller number: a NaN loses against a number, -0 is smaller than +0."""
larger = _ufunc("uint32(float32, float32)", _larger)
pack_halves = _ufunc("uint32(float32, float32)", _pack_halves)
"""Two singles as fp16, the first in the upper half."""
pack_bfloats = _ufunc("uint32(float32, float32)", _pack_bfloats)
widen_half = _ufunc("uint32(uint32)", _widen_half)
"""The fp16 number in the lower half as a single."""
fused_halves = _ufunc("uint32(uint32, uint32, uint32)", _fused_halves)
"""a * b + c for both fp16 halves."""
select = _ufunc("uint32(boolean, uint32, uint32)", _select)
"""np.where, several times as fast where the condition follows no pattern."""
