"""Loads, stores and their checks over all threads of a slab at once, compiled by Numba.

Every space is a flat array of units of one, two or four bytes, here called a window. A thread's unit is

    (address - base) / unit size + block * block stride + thread * thread stride

with both strides 0 for global memory, a block stride for shared and a thread stride for local memory.
Addresses are int64: a pointer with its top bit set lies outside of everything, as it should.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

Addresses = npt.NDArray[np.int64]
Flat = npt.NDArray[np.bool_]


class Window(NamedTuple):
    """The units of one space as an access of one size sees them."""

    units: npt.NDArray[Any]
    base: int
    block_stride: int
    thread_stride: int


@njit(cache=True)
def survey(address, active, base, limit, size):  # type: ignore[no-untyped-def]
    """First active thread outside base..limit, and first one not aligned to its size; -1 for none."""
    outside = -1
    for i in range(address.size):
        if active[i]:
            at = address[i]
            if at % size != 0:
                return outside, i
            if outside < 0 and (at < base or at + size > limit):
                outside = i
    return outside, -1


@njit(cache=True)
def inside(address, active, base, limit, size):  # type: ignore[no-untyped-def]
    """The active threads whose access lies in base..limit."""
    found = np.zeros(address.size, np.bool_)
    for i in range(address.size):
        found[i] = active[i] and base <= address[i] and address[i] + size <= limit
    return found


@njit(cache=True)
def load(window, address, active, threads, out):  # type: ignore[no-untyped-def]
    """Read out.shape[0] units for each active thread; `threads` is the number in a block."""
    units = window.units
    for i in range(address.size):
        if active[i]:
            at = (address[i] - window.base) // units.itemsize
            at += (i // threads) * window.block_stride + i * window.thread_stride
            for k in range(out.shape[0]):
                out[k, i] = units[at + k]


@njit(cache=True)
def store(window, address, active, threads, data):  # type: ignore[no-untyped-def]
    """Write data.shape[0] units for each active thread, in the order of threads."""
    units = window.units
    for i in range(address.size):
        if active[i]:
            at = (address[i] - window.base) // units.itemsize
            at += (i // threads) * window.block_stride + i * window.thread_stride
            for k in range(data.shape[0]):
                units[at + k] = data[k, i]
