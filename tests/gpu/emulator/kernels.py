"""Small CUDA kernels on the emulator: load a file of `sources/` once, launch its kernels many times."""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pytest

from cuasmrl.binary.cubin import Cubin
from cuasmrl.binary.sass import Listing, disassemble
from cuasmrl.errors import CuasmrlError
from cuasmrl.gpu.emulator import DEFAULT_BUDGET, Emulator, Run, Trace
from cuasmrl.gpu.launches.launch import Argument, Launch

Size: TypeAlias = int | tuple[int, ...]
Array: TypeAlias = npt.NDArray[Any]


class Kernels:
    """The kernels of one cubin, each decoded when it is first launched."""

    def __init__(self, cubin: Cubin) -> None:
        self.cubin = cubin
        self._emulators: dict[str, Emulator] = {}

    @cached_property
    def listings(self) -> dict[str, Listing]:
        return disassemble(self.cubin)

    def emulator(self, name: str) -> Emulator:
        if name not in self._emulators:
            listing = self.listings[name]
            if any(i.opcode == "R2UR" and i.operands[0].is_predicate for i in listing.instructions):
                # nvcc 13.4 asks R2UR in this way whether lanes agree; 13.0 does not.
                with pytest.raises(CuasmrlError, match="R2UR P"):
                    Emulator(self.cubin, name, listing=listing)
                pytest.skip("R2UR with a predicate result is refused")
            self._emulators[name] = Emulator(self.cubin, name, listing=listing)
        return self._emulators[name]

    def run(
        self,
        name: str,
        *arguments: Argument,
        grid: Size = 1,
        block: Size = 32,
        shared: int = 0,
        blocks: Sequence[int] | None = None,
        budget: int = DEFAULT_BUDGET,
    ) -> Run:
        return self.emulator(name).run(launch(arguments, grid, block, shared), blocks, budget)

    def trace(
        self, name: str, *arguments: Argument, grid: Size = 1, block: Size = 32, shared: int = 0
    ) -> Trace:
        return self.emulator(name).trace(launch(arguments, grid, block, shared))


Load: TypeAlias = Callable[[str, str], Kernels]
"""load("control", "sm_80"): sources/control.cu for a chip."""


def launch(arguments: Sequence[Argument], grid: Size = 1, block: Size = 32, shared: int = 0) -> Launch:
    return Launch(_three(grid), _three(block), shared, tuple(arguments))


def _three(size: Size) -> tuple[int, int, int]:
    x, y, z = (*((size,) if isinstance(size, int) else size), 1, 1)[:3]
    return x, y, z


def numbers(count: int, low: int = 0, high: int = 100, seed: int = 0) -> npt.NDArray[np.int32]:
    """Random int32."""
    return np.random.default_rng(seed).integers(low, high, count, np.int32, endpoint=False)
