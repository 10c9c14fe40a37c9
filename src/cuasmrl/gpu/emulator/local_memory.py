"""Local memory: the stack of each thread."""

import numpy as np

from cuasmrl.gpu.emulator.spaces import Slab, Space


class LocalMemory(Space):
    """A stack of `size` bytes for each thread, addressed from 0 to its top."""

    name = "local"

    def __init__(self, slab: Slab, size: int) -> None:
        super().__init__(slab, np.zeros(slab.size * size, np.uint8), 0, size)
        self.size = size

    def strides(self, unit_bytes: int) -> tuple[int, int]:
        return 0, self.size // unit_bytes
