"""How the buffers of a launch file are filled, and the element types they may have."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from cuasmrl.errors import CuasmrlError

Array: TypeAlias = npt.NDArray[Any]
Number: TypeAlias = int | float

INTEGERS = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
_NARROW_FLOATS = ("bfloat16", "float8_e4m3fn", "float8_e5m2")
FLOATS = ("float16", "float32", "float64", *_NARROW_FLOATS)

FILLS: Mapping[str, Mapping[str, Number | None]] = {
    "zeros": {},
    "constant": {"value": None},
    "normal": {"mean": 0.0, "std": 1.0},
    "uniform": {"low": 0.0, "high": 1.0},
    "range": {"start": 0, "step": 1},
    "integers": {"low": None, "high": None},
}
"""Every fill but `values`, with its settings and their defaults; None where one must be given."""
FLOATS_ONLY = ("normal", "uniform")


def dtype_named(name: str) -> np.dtype[Any]:
    """The element type of that name; those NumPy lacks come from ml_dtypes."""
    if name in _NARROW_FLOATS:
        try:
            import ml_dtypes
        except ImportError:
            raise CuasmrlError(f"elements of type {name} need ml_dtypes; pip install ml_dtypes") from None
        narrow: np.dtype[Any] = np.dtype(getattr(ml_dtypes, name))
        return narrow
    return np.dtype(name)


def holds(dtype: str, value: Number) -> bool:
    """Can an element of this type be that number, rounded if it is a float?"""
    if dtype not in INTEGERS:
        return not math.isfinite(value) or bool(np.isfinite(np.float64(cast(value, dtype))))
    low, high = (0, 1) if dtype == "bool" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    return value == int(value) and low <= value <= high if math.isfinite(value) else False


def cast(value: Number, dtype: str) -> np.generic:
    with np.errstate(over="ignore"):
        scalar: np.generic = dtype_named(dtype).type(value)
    return scalar


def filled(dtype: str, shape: tuple[int, ...], fill: str, settings: Mapping[str, Number], seed: Any) -> Array:
    """A buffer; the same for the same seed."""
    rng = np.random.default_rng(seed)
    kind = dtype_named(dtype)
    # Drawn in single precision where that is enough: half the time and memory.
    drawn = np.float64 if dtype == "float64" else np.float32
    array: Array
    match fill:
        case "zeros":
            return np.zeros(shape, kind)
        case "constant":
            return np.full(shape, cast(settings["value"], dtype), kind)
        case "normal":
            array = rng.standard_normal(shape, drawn) * drawn(settings["std"]) + drawn(settings["mean"])
        case "uniform":
            extent = settings["high"] - settings["low"]
            array = rng.random(shape, drawn) * drawn(extent) + drawn(settings["low"])
        case "range":
            start, step, count = settings["start"], settings["step"], math.prod(shape)
            is_wide = dtype in INTEGERS and not all(
                holds("int64", number) for number in (start, step, start + step * count)
            )
            array = (start + step * np.arange(count, dtype=object if is_wide else np.int64)).reshape(shape)
        case "integers":
            low, high = int(settings["low"]), int(settings["high"])
            wide: Any = np.uint64 if high > np.iinfo(np.int64).max else np.int64
            array = rng.integers(low, high, shape, wide, endpoint=True)
        case _:
            raise AssertionError(fill)
    return array.astype(kind)
