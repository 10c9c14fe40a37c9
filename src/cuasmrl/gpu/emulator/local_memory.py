"""Local memory: the stack of each thread."""

import numpy as np

from cuasmrl.gpu.emulator.access import Addresses, Flat
from cuasmrl.gpu.emulator.global_memory import GlobalSpace
from cuasmrl.gpu.emulator.module import LOCAL_WINDOW
from cuasmrl.gpu.emulator.spaces import Slab, Space
from cuasmrl.gpu.emulator.values import Value


class LocalMemory(Space):
    """A stack of `size` bytes for each thread, addressed from 0 to its top."""

    name = "local"

    def __init__(self, slab: Slab, size: int) -> None:
        super().__init__(slab, np.zeros(slab.size * size, np.uint8), 0, size)
        self.size = size

    def strides(self, unit_bytes: int) -> tuple[int, int]:
        return 0, self.size // unit_bytes


class GenericSpace:
    """Addresses that may lie in global memory or on the stack."""

    def __init__(self, memory: GlobalSpace, local: LocalMemory) -> None:
        self._memory = memory
        self._local = local

    def load(self, address: Addresses, active: Flat, size: int, signed: bool = False) -> list[Value]:
        near = active & (address >= LOCAL_WINDOW)
        if not near.any():
            return self._memory.load(address, active, size, signed)
        values = self._local.load(address - LOCAL_WINDOW, near, size, signed)
        far = active & ~near
        if not far.any():
            return values
        # Threads that do not take part get zeros.
        return [a | b for a, b in zip(values, self._memory.load(address, far, size, signed), strict=True)]

    def store(self, address: Addresses, active: Flat, size: int, registers: tuple[Value, ...]) -> None:
        near = active & (address >= LOCAL_WINDOW)
        if near.any():
            self._local.store(address - LOCAL_WINDOW, near, size, registers)
        far = active & ~near
        if far.any():
            self._memory.store(address, far, size, registers)
