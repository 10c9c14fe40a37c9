"""A pretended GPU whose kernels store clocks: how long each takes is up to the test."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from cuasmrl.gpu.devices.driver import (
    ALONE,
    Dimensions,
    DriverError,
    Function,
    Gpu,
    Module,
    Parameters,
    Stream,
    Together,
)
from tests.gpu.devices.fake_driver import FakeDriver, Scene

START = (1 << 32) - 50
"""The clock wraps soon after."""
MHZ = 1380


@dataclass(frozen=True)
class Clocked:
    """Cycles of a kernel, by its name and the number of its warp."""

    cycles: Callable[[str, int], int]
    wide: frozenset[str] = frozenset()
    """Kernels that store clocks in 64 bits."""
    faults: frozenset[str] = frozenset()
    name: str = "NVIDIA A100-SXM4-40GB"
    scene: Scene = field(default_factory=Scene)


class ClockedDriver(FakeDriver):
    def __init__(self, clocked: Clocked) -> None:
        super().__init__(clocked.scene)
        self.clocked = clocked
        self.names: list[str] = []

    def gpu(self, ordinal: int) -> Gpu:
        return Gpu(ordinal, self.clocked.name, self.scene.arch, 108, 40 << 20, 13010)

    def function(self, module: Module, name: str) -> Function:
        self.names.append(name)
        return Function(len(self.names) - 1)

    def launch(
        self, function: Function, grid: Dimensions, block: Dimensions, shared_bytes: int, stream: Stream,
        parameters: Parameters, together: Together = ALONE,
    ) -> None:  # fmt: skip
        name = self.names[function]
        if name in self.clocked.faults:
            raise DriverError("cuLaunchKernel", 700, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal access")
        self.launches.append((grid, block, shared_bytes))
        places = np.frombuffer(parameters.data[: len(parameters.data) // 8 * 8], np.uint64)
        buffers = [self.memory[int(place)] for place in places if int(place) in self.memory]
        if name == "spin":
            cycles = int(places[-1])
            buffers[0].view(np.uint64)[:] = (7, 7 + cycles, 1000, 1000 + cycles * 1000 // MHZ)
            return
        kind = np.int64 if name in self.clocked.wide else np.uint32
        clocks = buffers[-1].view(kind)
        for thread in range(block[0]):
            start = START + 3 * (thread // 32)
            stop = start + self.clocked.cycles(name, thread // 32)
            clocks[2 * thread : 2 * thread + 2] = start % (1 << 32), stop % (1 << 32)
