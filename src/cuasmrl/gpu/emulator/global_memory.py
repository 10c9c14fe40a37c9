"""Global memory: the caller's arrays and the module's data at virtual addresses, with nothing between them.

A kernel may also come to an address of the host that it found in memory: a tensor of pointers. Such an
address is looked up among the buffers that the caller says are alive, and mapped as it is.
"""

import bisect
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from numpy.lib.array_utils import byte_bounds

from cuasmrl.gpu.emulator import access
from cuasmrl.gpu.emulator.access import Addresses, Flat, Window
from cuasmrl.gpu.emulator.faults import LaneFault
from cuasmrl.gpu.emulator.module import PARAMETER_WINDOW, Data
from cuasmrl.gpu.emulator.regions import Bytes, Region, alignment_of, regions_of
from cuasmrl.gpu.emulator.spaces import Slab, misaligned_fault, unit_of
from cuasmrl.gpu.emulator.values import LANES, Array, Mask, Value

# Allocations of the CUDA driver are aligned to 512 bytes, so the trace sees the sectors a GPU would see.
_ALIGNMENT = 512
_FIRST_ADDRESS = 0x7_0000_0000
_NULL_PAGE = 0x10000

FindBuffer: TypeAlias = Callable[[int], Bytes | None]
"""The living buffer that holds an address of the host."""


def nothing_else(address: int) -> Bytes | None:
    """Only what is passed may be touched."""
    return None


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
        self.check_padding(address, active, size)

    def load_by_block(self, address: Addresses, active: Mask, size: int, signed: bool) -> list[Value]:
        """A load whose address is the same in all threads of a block: made once for each block."""
        blocks = max(address.shape[0], active.shape[0])
        reading = np.broadcast_to(active.any(axis=(1, 2)), (blocks,))
        flat = np.array(np.broadcast_to(address, (blocks, 1, 1))).reshape(-1)
        out = np.zeros((max(1, size // 4), blocks), np.uint32)
        try:
            for region, those in self.memory.parts(flat, reading, size, "read"):
                access.load(region.window(unit_of(size, signed)), flat, those, 1, out)
        except LaneFault as fault:
            first = int(np.broadcast_to(active, self.slab.shape)[fault.position].argmax())
            raise LaneFault(fault.reason, fault.position * self.slab.threads + first) from None
        return [row.reshape(blocks, 1, 1) for row in out]

    def store_by_few(self, address: Addresses, active: Mask, size: int, registers: tuple[Value, ...]) -> None:
        """A store by the same few threads of every block."""
        warps, lanes = np.nonzero(active[0])

        def flat(value: Array) -> Array:
            return np.ascontiguousarray(np.broadcast_to(value, self.slab.shape)[:, warps, lanes]).reshape(-1)

        at, data = flat(address), np.stack([flat(register) for register in registers])
        everyone = np.ones(at.size, np.bool_)
        try:
            for region, those in self.memory.parts(at, everyone, size, "written"):
                access.store(region.window(unit_of(size, False)), at, those, 1, data)
            self.check_padding(at, everyone, size)
        except LaneFault as fault:
            block, which = divmod(fault.position, warps.size)
            thread = int(warps[which] * LANES + lanes[which])
            raise LaneFault(fault.reason, block * self.slab.threads + thread) from None

    def windows(self, address: Addresses, active: Flat, size: int, unit: type) -> list[tuple[Window, Flat]]:
        """For atomics: the memory they change, region by region; `check_padding` comes afterwards."""
        parts = self.memory.parts(address, active, size, "written")
        return [(region.window(unit), those) for region, those in parts]

    def check_padding(self, address: Addresses, active: Flat, size: int) -> None:
        """Raise if a write has changed what lies beside a buffer in its first or last word."""
        for region in self.memory.copies:
            if region.padding_changed():
                beside = active & ((address < region.start) | (address + size > region.limit))
                beside &= (address + size > region.base) & (address < region.base + region.data.size)
                position = int(beside.argmax())
                raise _unmapped(int(address[position]), size, "written", region, position)


class GlobalMemory:
    """The memory of one launch. Every access must lie inside one of its regions."""

    def __init__(
        self,
        arrays: dict[str, npt.NDArray[Any]],
        data: Sequence[Data] = (),
        find: FindBuffer = nothing_else,
    ) -> None:
        """`data` is that of the module; `find` knows buffers by addresses that a kernel finds in memory."""
        self.regions = _place(arrays)
        self.regions += [
            Region(d.address, d.address, d.address + d.bytes.size, d.bytes, True, d.label, d.bytes)
            for d in data
        ]
        self._find = find
        self._kept: list[Bytes] = []
        """What was found must not go away meanwhile."""
        self._sort()

    def show_parameters(self, bank: Bytes) -> None:
        """Make constant bank 0 readable at its address: maps of tensors are passed in it."""
        end = PARAMETER_WINDOW + bank.size
        self.regions.append(
            Region(PARAMETER_WINDOW, PARAMETER_WINDOW, end, bank, False, "the parameters", bank)
        )
        self._sort()

    def _sort(self) -> None:
        self.regions.sort(key=lambda region: region.start)
        self._starts = [region.first_word for region in self.regions]
        self.copies = [region for region in self.regions if region.is_copy]

    def address_of(self, array: npt.NDArray[Any]) -> int:
        """The virtual address of an array's first element."""
        host = array.ctypes.data
        for region in self.regions:
            first = region.owner.ctypes.data
            if first <= host < first + region.owner.size:
                return region.start + host - first
        raise KeyError("the array is not mapped")

    def region_at(self, address: int) -> Region | None:
        region = self._mapped_at(address)
        if region is not None:
            return region
        buffer = self._find(address)
        if buffer is None:
            return None
        self._map(buffer)
        return self._mapped_at(address)

    def _mapped_at(self, address: int) -> Region | None:
        k = bisect.bisect_right(self._starts, address) - 1
        if k < 0:
            return None
        region = self.regions[k]
        return region if address < region.base + region.data.size else None

    def _map(self, buffer: Bytes) -> None:
        """Make a buffer of the host accessible at its own address."""
        start, end = byte_bounds(buffer)
        self._kept.append(buffer)
        known = [r for r in self.regions if _overlap(r.owner, start, end)]
        if any(region.is_copy for region in known):
            # Its words are copies already; a second copy would not see what is written to the first.
            self.regions += [region.moved(region.owner.ctypes.data - region.start) for region in known]
        else:
            self.regions += regions_of(start, end - start, start, buffer.flags.writeable, "a buffer")
        self._sort()

    def parts(self, address: Addresses, active: Flat, size: int, verb: str) -> list[tuple[Region, Flat]]:
        """Which threads touch which region; raises before anything is touched if one touches none."""
        found: list[tuple[Region, Flat]] = []
        first = int(active.argmax())
        while active[first]:
            region = self.region_at(int(address[first]))
            if region is None:
                raise _unmapped(int(address[first]), size, verb, self._nearest(int(address[first])), first)
            if verb != "read" and not region.writable:
                raise LaneFault(f"{region.label} is read-only but {verb} at {address[first]:#x}", first)
            low, high = region.reach(size)
            outside, misaligned = access.survey(address, active, low, high, size)
            if misaligned >= 0:
                raise misaligned_fault("global", int(address[misaligned]), size, misaligned)
            if outside < 0:
                return [*found, (region, active)]
            those = access.inside(address, active, low, high, size)
            if not those[first]:
                raise _unmapped(int(address[first]), size, verb, region, first)
            found.append((region, those))
            active = active & ~those
            first = int(active.argmax())
        return found

    def read(self, address: int, size: int, position: int) -> Bytes:
        """Some bytes, which may belong to several regions; a thread at `position` asks for them."""
        found = np.empty(size, np.uint8)
        for region, at, done in self._stretches(address, size, "read", position):
            found[done] = region.data[at]
        return found

    def write(self, address: int, data: Bytes, position: int) -> None:
        for region, at, done in self._stretches(address, data.size, "written", position):
            if not region.writable:
                raise LaneFault(f"{region.label} is read-only but written at {address:#x}", position)
            region.data[at] = data[done]

    def _stretches(
        self, address: int, size: int, verb: str, position: int
    ) -> Iterator[tuple[Region, slice, slice]]:
        """The regions that hold these bytes: where in the region, and which of the bytes."""
        done = 0
        while done < size:
            at = address + done
            region = self.region_at(at)
            if region is None or not region.start <= at < region.limit:
                raise _unmapped(at, size - done, verb, region or self._nearest(at), position)
            count = min(size - done, region.limit - at)
            first = at - region.base
            yield region, slice(first, first + count), slice(done, done + count)
            done += count

    def _nearest(self, address: int) -> Region | None:
        return min(
            self.regions,
            key=lambda region: min(abs(address - region.start), abs(address - region.limit)),
            default=None,
        )

    def finish(self) -> None:
        for region in self.copies:
            region.finish()


def _overlap(owner: Bytes, start: int, end: int) -> bool:
    first: int = owner.ctypes.data
    return first < end and start < first + owner.size


def _unmapped(address: int, size: int, verb: str, nearest: Region | None, position: int) -> LaneFault:
    shown = f"{address & 0xFFFF_FFFF_FFFF_FFFF:#x}"
    if -_NULL_PAGE <= address < _NULL_PAGE:
        return LaneFault(f"{size} bytes are {verb} at {shown} through a null pointer", position)
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
    regions: list[Region] = []
    address = _FIRST_ADDRESS
    for start, end, label, writable in merged:
        # What the compiler was told about a pointer's alignment must hold at its virtual address too.
        lead = alignment_of(start)
        regions += regions_of(start, end - start, address + lead, writable, label)
        address = -(-(address + lead + end - start + _ALIGNMENT) // _ALIGNMENT) * _ALIGNMENT
    return regions
