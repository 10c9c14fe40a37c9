"""What one kernel launch needs, in the terms of the driver's launch call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from cuasmrl.errors import CuasmrlError

Argument: TypeAlias = "npt.NDArray[Any] | np.generic | Tiles | None"
"""A buffer passed by pointer, a NumPy scalar passed by value in its own type, tiles of a buffer, or a null
pointer."""

POINTER_BYTES = 8
TILES_BYTES = 128


@dataclass(frozen=True, eq=False)
class Tiles:
    """A tensor map passed by value (CUtensorMap): how TMA finds tiles of an array that begins the tensor.

    Dimensions go from the innermost outwards.
    """

    array: npt.NDArray[Any]
    element: str
    """As `emulator.tensor_maps.Element` names it, such as F16."""
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    """Bytes from one element to the next along dimensions 1 and up."""
    box: tuple[int, ...]
    swizzle: int = 0
    """Bytes: 0, 32, 64 or 128."""
    fills_nan: bool = False
    rounds_to_tf32: bool = False


def buffer_of(argument: Argument) -> npt.NDArray[Any] | None:
    """The memory that a kernel reaches by an argument."""
    if isinstance(argument, Tiles):
        return argument.array
    return argument if isinstance(argument, np.ndarray) else None


@dataclass(frozen=True, eq=False)
class Launch:
    """Grid, block, dynamic shared memory and the arguments in the order of the kernel's parameters."""

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int
    """Dynamic shared memory; static shared memory is declared in the cubin itself."""
    arguments: tuple[Argument, ...]
    cooperative: bool = False
    """Do all blocks run at the same time, so that they may wait for one another?"""
    cluster: tuple[int, int, int] | None = None
    """Blocks of a cluster, where the launch says it instead of the cubin."""

    def __post_init__(self) -> None:
        if min(self.grid) < 1 or min(self.block) < 1:
            raise CuasmrlError(
                f"A launch needs at least one thread, got grid {self.grid} and block {self.block}."
            )
        if self.cluster is not None and any(
            size < 1 or blocks % size for blocks, size in zip(self.grid, self.cluster, strict=True)
        ):
            raise CuasmrlError(
                f"A grid of {self.grid} blocks cannot be divided into clusters of {self.cluster}; "
                "choose a grid that is a multiple of the cluster."
            )
        for position, argument in enumerate(self.arguments):
            if not (argument is None or isinstance(argument, np.ndarray | np.generic | Tiles)):
                raise CuasmrlError(
                    f"Argument {position} of a launch is a Python {type(argument).__name__}; "
                    "use a NumPy array, a NumPy scalar such as np.int32(7), or None."
                )

    @property
    def threads(self) -> int:
        """Threads in one block."""
        return self.block[0] * self.block[1] * self.block[2]

    @property
    def blocks(self) -> int:
        """Blocks in the grid."""
        return self.grid[0] * self.grid[1] * self.grid[2]


def argument_bytes(argument: Argument) -> int:
    """Bytes an argument takes in the kernel's parameter block."""
    if argument is None or isinstance(argument, np.ndarray):
        return POINTER_BYTES
    if isinstance(argument, Tiles):
        return TILES_BYTES
    return argument.dtype.itemsize
