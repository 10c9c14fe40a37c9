"""What kernels are given: buffers, numbers, and what of the chip is different in an experiment."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from cuasmrl.errors import CuasmrlError
from cuasmrl.gpu.launches.launch import Argument

_ROUNDS = 512
_SMALL_RING = 32
_NUMBERS = 8192
_PASSES = 256
_PITCH = 4098
"""Elements from one row of a tile to the next, in RRZE's gpu-benches."""


@dataclass(frozen=True)
class Inputs:
    arguments: tuple[Argument, ...]
    changes: dict[str, float] = field(default_factory=dict)
    """Numbers of the chip that are different, because the experiment says so."""


def inputs_of(line: str) -> Inputs:
    """Made anew for every launch, as kernels write to their buffers."""
    match line.split():
        case ["operands"]:
            return Inputs((_words(), _words(), _clocks(np.int64)))
        case ["doubles"]:
            return Inputs((np.zeros(_NUMBERS), np.zeros(_NUMBERS), _clocks(np.int64)))
        case ["sums"]:
            return Inputs((_words(), _clocks(np.uint32)))
        case ["sums", "of", "pairs"]:
            return Inputs((_clocks(np.uint64), _clocks(np.uint32)))
        case ["ring", "of", size]:
            return Inputs((np.zeros(int(size), np.uint64), _clocks(np.uint32)))
        case ["numbers", kind]:
            return Inputs((np.ones(_NUMBERS, kind), _clocks(np.uint32)))
        case ["data"]:
            # What stands behind the access may read a constant, which is not what is measured.
            return Inputs((_words(),), {"constant_miss": 0.0})
        case ["data", "sums"]:
            return Inputs((_words(), _words()))
        case ["data", "sums", "clocks"]:
            return Inputs((_words(), _words(), _clocks(np.uint32)))
        case ["stride", stride]:
            return Inputs((_words(), _clocks(np.uint32), np.uint32(int(stride))))
        case ["places", size, "bytes", "stride", stride]:
            return _places(int(size), 1024, int(stride), 0)
        case ["places", size, "bytes", "width", width]:
            return _places(int(size), int(width), 1, _PITCH)
        case ["numbers", kind, "cached"]:
            # The last loads of a round go on behind the end of what is cached.
            data = np.ones(2 * _NUMBERS + 128, kind)
            return Inputs((data, np.zeros(_NUMBERS, kind), _clocks(np.uint32)))
        case ["numbers", kind, "of", "threads", threads]:
            # What one pass of all threads reads, and what the later ones go on to.
            count = 4 * int(threads) + 128 * _PASSES
            data = np.ones(count, kind)
            return Inputs((data, np.zeros(_NUMBERS, kind), _clocks(np.uint32), np.uint32(count)))
        case ["ring", "in", place, "of", size]:
            return _ring(place, int(size))
    raise CuasmrlError(f"the bench does not know the inputs {line!r}.")


def _places(size: int, width: int, stride: int, pitch: int) -> Inputs:
    """A table that 1024 threads read in rows of `width`; see `strides.cu`."""
    kind = np.float32 if size == 4 else np.float64
    elements = 64 * max(stride, 1) + 33 * pitch + 64
    data = np.ones(elements, kind)
    numbers = (np.int32(n) for n in (0, width, stride, pitch))
    return Inputs((data, np.zeros(_NUMBERS, kind), _clocks(np.uint32), *numbers))


def _words() -> np.ndarray:
    return np.zeros(_NUMBERS, np.uint32)


def _clocks(kind: type[np.generic]) -> np.ndarray:
    return np.zeros(_NUMBERS, kind)


def _ring(place: str, size: int) -> Inputs:
    """A ring with one element in each line; its elements have `size` bytes.

    In L1, it is gone round before the clock is read. In L2, every line is touched once, so that L1 misses.
    """
    near = place == "L1"
    elements = _SMALL_RING if near else _ROUNDS
    step = 128 // size
    ring = np.zeros(elements * 128, np.uint8)
    numbers = (step, elements, elements if near else 0, _ROUNDS)
    arguments: list[Argument] = [ring, np.zeros(1, np.uint64), _clocks(np.uint32)]
    arguments += [np.int32(n) for n in numbers]
    return Inputs(tuple(arguments), {"dram_share": 1.0} if place == "DRAM" else {})
