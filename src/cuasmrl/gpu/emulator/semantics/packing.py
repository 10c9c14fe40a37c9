"""Words as the bytes and half words packed into them."""

from typing import Any

import numpy as np

from cuasmrl.gpu.emulator.values import Array, Value


def parts_of(value: Value, kind: Any) -> Array:
    """The parts of each word, the lowest first, along a fourth axis."""
    parts: Array = np.ascontiguousarray(value).reshape(*value.shape, 1).view(kind)
    return parts


def words_of(parts: Array) -> Value:
    """Words put together from their parts along the last axis."""
    words: Value = np.ascontiguousarray(parts).view(np.uint32)[..., 0]
    return words
