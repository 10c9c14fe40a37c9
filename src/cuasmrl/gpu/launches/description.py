"""From a launch to a launch file: arguments by value as they are, buffers by a fill that resembles them.

Integers decide where a kernel goes and what it touches, so small buffers of them are kept element by element,
and large ones by their range, in which every index that was inside a buffer stays inside it. Floats rarely
decide anything a timing depends on: of them only the distribution is kept.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.lib.array_utils import byte_bounds

from cuasmrl.errors import CuasmrlError
from cuasmrl.gpu.launches.fills import FLOATS, INTEGERS, Array, Number, holds
from cuasmrl.gpu.launches.launch import Argument, Launch, Tiles
from cuasmrl.gpu.launches.record import Buffer, Bytes, Entry, LaunchRecord, SameAs, Scalar

_KEPT = 4096
"""Integer buffers up to this many elements are kept whole."""
_FEW = 64
"""Fewer elements than this say nothing about their distribution."""
_LARGEST = {
    "float16": 0x7BFF, "float32": 0x7F7F_FFFF, "float64": 0x7FEF_FFFF_FFFF_FFFF,
    "bfloat16": 0x7F7F, "float8_e4m3fn": 0x7E, "float8_e5m2": 0x7B,
}  # fmt: skip
"""Bits of the largest finite number of each type."""
_FLAT = 4.0
"""Extent over standard deviation: 3.5 for uniform numbers, beyond 5 for this many normal ones."""


def describe(launch: Launch, kernel: str | None = None, names: Sequence[str] = ()) -> LaunchRecord:
    """The record of a launch; `names` are those of its arguments, for the reader."""
    spans: dict[tuple[int, int], int] = {}
    entries: list[Entry] = []
    for number, argument in enumerate(launch.arguments):
        name = names[number] if number < len(names) else ""
        if isinstance(argument, np.ndarray) and argument.size:
            first = spans.setdefault(byte_bounds(argument), number)
            entries.append(SameAs(first, name) if first != number else _buffer(argument, name))
        else:
            entries.append(_entry(argument, number, name))
    return LaunchRecord(
        launch.grid,
        launch.block,
        launch.shared_bytes,
        tuple(entries),
        kernel,
        cooperative=launch.cooperative,
        cluster=launch.cluster,
    )


def _entry(argument: Argument, number: int, name: str) -> Entry:
    if argument is None:
        return None
    if isinstance(argument, Tiles):
        raise CuasmrlError(f"argument {number} is a tensor map, which a launch file cannot hold")
    dtype = argument.dtype.name
    if isinstance(argument, np.ndarray):
        return Buffer(dtype, argument.shape, "zeros", {}, (), name)
    if dtype in INTEGERS:
        return Scalar(dtype, int(argument), name)
    if dtype in FLOATS:
        return Scalar(dtype, float(np.float64(argument)), name)
    if isinstance(argument, np.void):
        return Bytes(argument.tobytes(), name)
    raise CuasmrlError(f"argument {number} has type {dtype}, which a launch file cannot hold")


def _buffer(array: Array, name: str) -> Buffer:
    dtype = array.dtype.name
    if dtype not in INTEGERS + FLOATS:
        raise CuasmrlError(f"a buffer has elements of type {dtype}, which a launch file cannot hold")
    if not array.flags.c_contiguous:
        # A kernel sees the memory from the first byte to the last, gaps included.
        start, end = byte_bounds(array)
        return _described(array.ravel(), ((end - start) // array.itemsize,), name)
    return _described(array.ravel(), array.shape, name)


def _described(flat: Array, shape: tuple[int, ...], name: str) -> Buffer:
    dtype = flat.dtype.name
    fill, settings = _pattern(flat)
    if fill == "integers" and flat.size <= _KEPT and flat.size == np.prod(shape):
        return Buffer(dtype, shape, "values", {}, tuple(int(v) for v in flat), name)
    return Buffer(dtype, shape, fill, settings, (), name)


def _pattern(flat: Array) -> tuple[str, dict[str, Number]]:
    bits = flat.view(f"u{flat.itemsize}")
    if (bits == bits[0]).all():
        if not bits[0]:
            return "zeros", {}
        value = flat[0]
        return "constant", {"value": int(value) if flat.dtype.name in INTEGERS else float(value)}
    if flat.dtype.name in INTEGERS:
        start, step = int(flat[0]), int(flat[1]) - int(flat[0])
        # Unsigned differences wrap around; where the last element is right, so are those between.
        steps = np.diff(bits)
        is_even = (steps == steps[0]).all() and int(flat[-1]) == start + step * (flat.size - 1)
        if is_even and flat.dtype.name != "bool":
            return "range", {"start": start, "step": step}
        return "integers", {"low": int(flat.min()), "high": int(flat.max())}
    return _distribution(flat)


def _distribution(flat: Array) -> tuple[str, dict[str, Number]]:
    numbers = flat[_is_finite(flat)].astype(np.float64)
    if not numbers.size:
        return "constant", {"value": float(flat[0])}
    with np.errstate(over="ignore", invalid="ignore"):
        mean, std = float(f"{numbers.mean():.4g}"), float(f"{numbers.std():.4g}")
        low, high = float(numbers.min()), float(numbers.max())
        extent = high - low
    if not all(math.isfinite(number) and holds(flat.dtype.name, number) for number in (mean, std, extent)):
        # Numbers from end to end of their type have no distribution that the type holds.
        return "constant", {"value": float(numbers[0])}
    if numbers.size >= _FEW and extent < _FLAT * std:
        return "uniform", {"low": low, "high": high}
    return "normal", {"mean": mean, "std": std}


def _is_finite(flat: Array) -> Array:
    """By the bits. Memory that nobody wrote may hold a signalling NaN, which no operation may touch."""
    bits = flat.view(f"u{flat.itemsize}")
    is_finite: Array = (bits & np.iinfo(bits.dtype).max >> 1) <= _LARGEST[flat.dtype.name]
    return is_finite
