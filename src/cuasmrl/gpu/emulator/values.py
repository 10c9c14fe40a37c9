"""What a register holds for all threads that are emulated together.

A slab of blocks is executed at once. A register's value is an array with three axes: block, warp in the
block, lane in the warp. An axis along which the value does not change has length 1, so a kernel parameter
is a single number, a block index one number per block and a thread index one number per warp and lane;
NumPy broadcasts them when they meet. Most address arithmetic therefore touches far fewer elements than
there are threads.

Values are never written in place: a write replaces the array, so registers may share one.
"""

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

LANES = 32

Array: TypeAlias = npt.NDArray[Any]
Value: TypeAlias = npt.NDArray[np.uint32]
"""32 bits of one register for every thread of a slab."""
Long: TypeAlias = npt.NDArray[np.uint64]
"""64 bits in a pair of registers."""
Mask: TypeAlias = npt.NDArray[np.bool_]
"""A predicate, or a set of threads."""


def constant(bits: int) -> Value:
    """The same 32 bits for every thread; negative numbers as two's complement."""
    return np.full((1, 1, 1), bits & 0xFFFF_FFFF, np.uint32)


ZERO = constant(0)
TRUE: Mask = np.ones((1, 1, 1), np.bool_)
FALSE: Mask = np.zeros((1, 1, 1), np.bool_)


def join(low: Value, high: Value) -> Long:
    """A pair of registers as one number."""
    wide = high.astype(np.uint64)
    wide <<= np.uint64(32)
    return wide | low


def low(value: Long) -> Value:
    return value.astype(np.uint32)


def high(value: Long) -> Value:
    return (value >> np.uint64(32)).astype(np.uint32)
