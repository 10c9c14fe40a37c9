"""What one kernel launch needs, in the terms of the driver's launch call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from cuasmrl.errors import CuasmrlError

Argument: TypeAlias = "npt.NDArray[Any] | np.generic | None"
"""A buffer passed by pointer, a NumPy scalar passed by value in its own type, or a null pointer."""

POINTER_BYTES = 8


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

    def __post_init__(self) -> None:
        if min(self.grid) < 1 or min(self.block) < 1:
            raise CuasmrlError(
                f"A launch needs at least one thread, got grid {self.grid} and block {self.block}."
            )
        for position, argument in enumerate(self.arguments):
            if not (argument is None or isinstance(argument, np.ndarray | np.generic)):
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
    return argument.dtype.itemsize
