"""What kernels are given: buffers, numbers, and what of the chip is different in an experiment."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from cuasmrl.errors import CuasmrlError
from cuasmrl.gpu.launches.launch import Argument

_ROUNDS = 512
_SMALL_RING = 32
_NUMBERS = 8192


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
        case ["ring", "in", place, "of", size]:
            return _ring(place, int(size))
    raise CuasmrlError(f"the bench does not know the inputs {line!r}.")


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
