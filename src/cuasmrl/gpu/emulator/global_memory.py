"""Global memory: the caller's arrays at virtual addresses, with nothing between them."""

import bisect
import ctypes
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.lib.array_utils import byte_bounds

from cuasmrl.gpu.emulator import access
from cuasmrl.gpu.emulator.access import Addresses, Flat, Window
from cuasmrl.gpu.emulator.faults import LaneFault
from cuasmrl.gpu.emulator.spaces import Slab, misaligned_fault, unit_of
from cuasmrl.gpu.emulator.values import Value

# Allocations of the CUDA driver are aligned to 512 bytes, so the trace sees the sectors a GPU would see.
_ALIGNMENT = 512
_FIRST_ADDRESS = 0x7_0000_0000
_NULL_PAGE = 0x10000
_WIDEST_ACCESS = 16


@dataclass(slots=True)
class Region:
    """One stretch of memory that a kernel may touch."""

    base: int
    """Virtual address of the first byte of `data`, aligned for every access."""
    start: int
    """Virtual address of the first byte of the caller."""
    data: npt.NDArray[np.uint8]
    writable: bool
    label: str
    owner: npt.NDArray[np.uint8]
    """The caller's bytes; `data` is a copy of them where they are not aligned."""

    @property
    def limit(self) -> int:
        return self.base + self.data.size

    def window(self, unit: type) -> Window:
        size = np.dtype(unit).itemsize
        return Window(self.data[: self.data.size // size * size].view(unit), self.base, 0, 0)

    def finish(self) -> None:
        """Give the caller what the kernel wrote."""
        if self.data is not self.owner and self.writable:
            self.owner[:] = self.data[self.start - self.base :]


class GlobalSpace:
    """Global memory as the threads of one slab see it."""

    def __init__(self, slab: Slab, memory: "GlobalMemory") -> None:
        self.slab = slab
        self.memory = memory

    def load(self, address: Addresses, active: Flat, size: int, signed: bool = False) -> list[Value]:
        out = np.zeros((max(1, size // 4), self.slab.size), np.uint32)
        for region, those in self.memory.parts(address, active, size, "read"):
            access.load(region.window(unit_of(size, signed)), address, those, self.slab.threads, out)
        return [row.reshape(self.slab.shape) for row in out]

    def store(self, address: Addresses, active: Flat, size: int, registers: tuple[Value, ...]) -> None:
        data = np.stack([self.slab.flat(register) for register in registers])
        for region, those in self.memory.parts(address, active, size, "written"):
            access.store(region.window(unit_of(size, False)), address, those, self.slab.threads, data)

    def windows(self, address: Addresses, active: Flat, size: int, unit: type) -> list[tuple[Window, Flat]]:
        """For atomics: the memory they change, region by region."""
        parts = self.memory.parts(address, active, size, "written")
        return [(region.window(unit), those) for region, those in parts]


class GlobalMemory:
    """The arrays of one launch. Every access must lie inside one of them."""

    def __init__(self, arrays: dict[str, npt.NDArray[Any]]) -> None:
        self.regions = _place(arrays)
        self._starts = [region.start for region in self.regions]

    def address_of(self, array: npt.NDArray[Any]) -> int:
        """The virtual address of an array's first element."""
        host = array.ctypes.data
        for region in self.regions:
            first = region.owner.ctypes.data
            if first <= host <= first + region.owner.size:
                return region.start + host - first
        raise KeyError("the array is not mapped")

    def region_at(self, address: int) -> Region | None:
        k = bisect.bisect_right(self._starts, address) - 1
        return self.regions[k] if k >= 0 and address < self.regions[k].limit else None

    def parts(self, address: Addresses, active: Flat, size: int, verb: str) -> list[tuple[Region, Flat]]:
        """Which threads touch which region; raises before anything is touched if one touches none."""
        found: list[tuple[Region, Flat]] = []
        first = int(active.argmax())
        while active[first]:
            region = self.region_at(int(address[first]))
            if region is None:
                raise _unmapped(int(address[first]), size, verb, self, first)
            if verb != "read" and not region.writable:
                raise LaneFault(f"{region.label} is read-only but {verb} at {address[first]:#x}", first)
            outside, misaligned = access.survey(address, active, region.start, region.limit, size)
            if misaligned >= 0:
                raise misaligned_fault("global", int(address[misaligned]), size, misaligned)
            if outside < 0:
                return [*found, (region, active)]
            those = access.inside(address, active, region.start, region.limit, size)
            if not those[first]:
                raise _unmapped(int(address[first]), size, verb, self, first)
            found.append((region, those))
            active = active & ~those
            first = int(active.argmax())
        return found

    def finish(self) -> None:
        for region in self.regions:
            region.finish()


def _unmapped(address: int, size: int, verb: str, memory: GlobalMemory, position: int) -> LaneFault:
    shown = f"{address & 0xFFFF_FFFF_FFFF_FFFF:#x}"
    if -_NULL_PAGE <= address < _NULL_PAGE:
        return LaneFault(f"{size} bytes are {verb} at {shown} through a null pointer", position)
    nearest = min(
        memory.regions,
        key=lambda region: min(abs(address - region.start), abs(address - region.limit)),
        default=None,
    )
    hint = "no buffer was passed"
    if nearest is not None and address < nearest.start:
        hint = f"{nearest.start - address} bytes before {nearest.label}"
    elif nearest is not None:
        hint = f"{address + size - nearest.limit} bytes past the end of {nearest.label}"
    return LaneFault(f"{size} bytes of global memory are {verb} at {shown}, out of bounds: {hint}", position)


def _place(arrays: dict[str, npt.NDArray[Any]]) -> list[Region]:
    """Give every array an address; arrays that share bytes share a region."""
    spans = sorted((*byte_bounds(array), label, array.flags.writeable) for label, array in arrays.items())
    merged: list[list[Any]] = []
    for start, end, label, writable in spans:
        if merged and start < merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], end)
            merged[-1][2] += f" and {label}"
            merged[-1][3] |= writable
        else:
            merged.append([start, end, label, writable])
    # In the order of the arguments, so that addresses do not depend on where the host put them.
    names = list(arrays)
    merged.sort(key=lambda span: names.index(span[2].split(" and ")[0]))
    regions, address = [], _FIRST_ADDRESS
    for start, end, label, writable in merged:
        owner = _bytes_at(start, end - start)
        # What the compiler was told about a pointer's alignment must hold at its virtual address too.
        lead = start % _WIDEST_ACCESS
        data = np.concatenate([np.zeros(lead, np.uint8), owner]) if lead else owner
        regions.append(Region(address, address + lead, data, writable, label, owner))
        address = -(-(address + data.size + _ALIGNMENT) // _ALIGNMENT) * _ALIGNMENT
    return regions


def _bytes_at(address: int, size: int) -> npt.NDArray[np.uint8]:
    if size == 0:
        return np.zeros(0, np.uint8)
    return np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(address))
