"""What the three memory spaces have in common: moving registers of a slab in and out of an array of bytes."""

from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from cuasmrl.gpu.emulator import access
from cuasmrl.gpu.emulator.access import Addresses, Flat, Window
from cuasmrl.gpu.emulator.faults import LaneFault
from cuasmrl.gpu.emulator.values import Array, Value

_UNITS: dict[tuple[int, bool], type] = {
    (1, False): np.uint8,
    (1, True): np.int8,
    (2, False): np.uint16,
    (2, True): np.int16,
    (4, False): np.uint32,
}


class Slab:
    """The threads that are emulated together, as the memory sees them: how many, and who is active."""

    def __init__(self, blocks: int, warps: int) -> None:
        self.shape = (blocks, warps, 32)
        self.threads = warps * 32
        """Threads of one block, with those that only fill up its last warp."""
        self.size = blocks * self.threads
        self.flattened = 0
        """How often something had to be laid out thread by thread."""

    @cached_property
    def _everyone(self) -> Flat:
        return np.ones(self.size, np.bool_)

    def flat(self, value: Array) -> npt.NDArray[Any]:
        """One element per thread of the slab, in order."""
        self.flattened += 1
        return np.ascontiguousarray(np.broadcast_to(value, self.shape)).reshape(-1)

    def active(self, mask: Array) -> Flat:
        if mask.size == 1 and mask.item():
            return self._everyone
        return self.flat(mask)


def unit_of(size: int, signed: bool) -> type:
    """The element type in which an access of `size` bytes is made: wide ones go by words."""
    return _UNITS[min(size, 4), signed and size < 4]


class Space:
    """Bytes addressed from `base` to `limit`; each block or each thread has its own, or all the same."""

    name: ClassVar[str]

    def __init__(self, slab: Slab, data: npt.NDArray[np.uint8], base: int, limit: int) -> None:
        self.slab = slab
        self.data = data
        self.base = base
        self.limit = limit
        self._units: dict[type, npt.NDArray[Any]] = {}

    def strides(self, unit_bytes: int) -> tuple[int, int]:
        """Units from block to block, and from thread to thread."""
        return 0, 0

    def window(self, unit: type) -> Window:
        if unit not in self._units:
            size = np.dtype(unit).itemsize
            self._units[unit] = self.data[: self.data.size // size * size].view(unit)
        units = self._units[unit]
        return Window(units, self.base, *self.strides(units.itemsize))

    def load(self, address: Addresses, active: Flat, size: int, signed: bool = False) -> list[Value]:
        """The registers of a load, `size` bytes per thread."""
        self.check(address, active, size)
        out = np.zeros((max(1, size // 4), self.slab.size), np.uint32)
        access.load(self.window(unit_of(size, signed)), address, active, self.slab.threads, out)
        return [row.reshape(self.slab.shape) for row in out]

    def store(self, address: Addresses, active: Flat, size: int, registers: tuple[Value, ...]) -> None:
        self.check(address, active, size)
        data = np.empty((len(registers), *self.slab.shape), np.uint32)
        for row, register in zip(data, registers, strict=True):
            row[...] = register
        flat = data.reshape(len(registers), -1)
        access.store(self.window(unit_of(size, False)), address, active, self.slab.threads, flat)

    def check(self, address: Addresses, active: Flat, size: int) -> None:
        """Raise for the first thread that leaves the space or is not aligned."""
        outside, misaligned = access.survey(address, active, self.base, self.limit, size)
        if misaligned >= 0:
            raise misaligned_fault(self.name, int(address[misaligned]), size, misaligned)
        if outside >= 0:
            raise LaneFault(
                f"{size} bytes of {self.name} memory at {address[outside]:#x} are out of bounds; "
                f"{self.limit - self.base} bytes from {self.base:#x} on are declared",
                outside,
            )


def misaligned_fault(space: str, address: int, size: int, position: int) -> LaneFault:
    return LaneFault(f"{size} bytes of {space} memory at {address:#x} are not aligned to {size}", position)
