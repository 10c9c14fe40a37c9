"""Shared memory of the blocks of a slab, and what is known about each word of it.

A tag stands beside every word. 0: never written. 1..15: a bit for each byte that was written. From 16 on:
the word is the target of an asynchronous copy, `16 + (group << 5 | warp)`; it may be read once the warp
that issued the copy has waited for that group of copies. With its top bit set: the target of a bulk copy
that tells an mbarrier, `slot << 20 | phase`; it may be read once somebody in the block has seen the end of
that phase.
"""

import numpy as np
import numpy.typing as npt
from numba import njit

from cuasmrl.gpu.emulator import access
from cuasmrl.gpu.emulator.access import Addresses, Flat, Window
from cuasmrl.gpu.emulator.faults import LaneFault
from cuasmrl.gpu.emulator.pending_reads import GRANULE, Numbers, PendingReads
from cuasmrl.gpu.emulator.spaces import Slab, Space, unit_of
from cuasmrl.gpu.emulator.values import Value

_FIRST_COPY = 16
_BULK = 1 << 31
_PHASE_BITS = 20
_MOST_SLOTS = 1 << 31 - _PHASE_BITS


class SharedMemory(Space):
    """`size` bytes for each block."""

    name = "shared"

    def __init__(self, slab: Slab, size: int) -> None:
        self.stride = -(-size // 16) * 16
        super().__init__(slab, np.zeros(slab.shape[0] * self.stride, np.uint8), 0, size)
        self.tags = np.zeros(slab.shape[0] * self.stride // 4, np.uint32)
        warps = slab.shape[0] * slab.shape[1]
        self.committed = np.zeros(warps, np.uint32)
        """Groups of copies each warp has closed so far."""
        self.landed = np.zeros(warps, np.uint32)
        """Of those, the groups it has waited for."""
        self.observed = np.zeros((16, slab.shape[0]), np.int64)
        """By mbarrier (its slot) and block: the phases whose end somebody has seen."""
        self._slots = 0
        self._landing: list[tuple[int, int, int, int]] = []
        """Slot and phase of an mbarrier, and the warp and group of copies that have landed when it ends."""
        self.pending_reads: list[PendingReads] = []
        """What engines beside the warps read, queue by queue."""

    def strides(self, unit_bytes: int) -> tuple[int, int]:
        return self.stride // unit_bytes, 0

    def store(self, address: Addresses, active: Flat, size: int, registers: tuple[Value, ...]) -> None:
        super().store(address, active, size, registers)
        self.mark(address, active, size)

    def windows(self, address: Addresses, active: Flat, size: int, unit: type) -> list[tuple[Window, Flat]]:
        """For atomics: the memory they change, which must hold something already."""
        self.check(address, active, size)
        bad = unready(
            self.tags, self.stride // 4, self.landed, self.observed, address, active, self.slab.threads, size
        )
        if bad >= 0:
            raise self.unready_fault(bad, int(address[bad]), size)
        self._check_pending(address, active, size)
        return [(self.window(unit), active)]

    def _check_pending(self, address: Addresses, active: Flat, size: int) -> None:
        for reads in self.pending_reads:
            reads.check(address, active, self.slab.threads, size)
        if not self._slots:
            return
        late = undelivered(
            self.tags, self.stride // 4, self.observed, address, active, self.slab.threads, size
        )
        if late >= 0:
            raise LaneFault(
                f"{size} bytes of shared memory are written at {address[late]:#x}, the target of a bulk copy "
                "whose mbarrier nobody has waited for",
                late,
            )

    def new_slot(self) -> int:
        """A row of `observed` for another mbarrier."""
        if self._slots == len(self.observed):
            self.observed = np.concatenate([self.observed, np.zeros_like(self.observed)])
        if self._slots == _MOST_SLOTS:
            raise ValueError(f"there are more than {_MOST_SLOTS} mbarriers")
        self._slots += 1
        return self._slots - 1

    def observe(self, slot: int, blocks: Numbers, phases: Numbers) -> None:
        """Somebody in these blocks has seen the end of so many phases."""
        self.observed[slot, blocks] = phases
        warps = self.slab.shape[1]
        for landing in [some for some in self._landing if some[0] == slot]:
            _, phase, warp, group = landing
            if self.observed[slot, warp // warps] > phase:
                self.landed[warp] = max(self.landed[warp], group + 1)
                self._landing.remove(landing)

    def land_with(self, warps: Numbers, slot: int, phases: Numbers) -> None:
        """What these warps have copied so far has landed when this phase of an mbarrier ends."""
        for warp in warps:
            phase = int(phases[warp // self.slab.shape[1]])
            self._landing.append((slot, phase, int(warp), int(self.committed[warp])))

    def receive(
        self, block: int, granules: Numbers, data: npt.NDArray[np.uint8], slot: int, phase: int
    ) -> None:
        """Take granules of a bulk copy: to be read when a phase of an mbarrier has been seen to end."""
        for reads in self.pending_reads:
            reads.check_granules(block, granules, block * self.slab.threads)
        first = block * self.stride // GRANULE
        self.data.reshape(-1, GRANULE)[first + granules] = data.reshape(-1, GRANULE)
        self.tags.reshape(-1, GRANULE // 4)[first + granules] = _BULK | slot << _PHASE_BITS | phase

    def mark(self, address: Addresses, active: Flat, size: int) -> None:
        """These bytes have been written."""
        self._check_pending(address, active, size)
        mark_written(self.tags, self.stride // 4, address, active, self.slab.threads, size)

    def forget(self, address: Addresses, active: Flat, size: int) -> None:
        """These bytes hold nothing again."""
        mark_unwritten(self.tags, self.stride // 4, address, active, self.slab.threads, size)

    def unwritten(self, address: Addresses, active: Flat, size: int) -> npt.NDArray[np.bool_] | None:
        """Threads that read what nobody wrote, for each word they read; None if there are none.

        Raises where a copy is on its way: then what is read depends on the time.
        """
        bad = unready(
            self.tags, self.stride // 4, self.landed, self.observed, address, active, self.slab.threads, size
        )
        if bad < 0:
            return None
        missing = np.zeros((max(1, size // 4), self.slab.size), np.bool_)
        early = holes(
            self.tags,
            self.stride // 4,
            self.landed,
            self.observed,
            address,
            active,
            self.slab.threads,
            size,
            missing,
        )
        if early >= 0:
            raise self.unready_fault(early, int(address[early]), size)
        return missing

    def unwritten_halves(self) -> npt.NDArray[np.uint16]:
        """1 for each half word that nobody wrote."""
        halves = (
            np.stack([self.tags & 3 != 3, self.tags & 12 != 12], axis=1) & (self.tags < _FIRST_COPY)[:, None]
        )
        return halves.reshape(-1).astype(np.uint16)

    def copy(self, address: Addresses, active: Flat, size: int, data: npt.NDArray[np.uint32]) -> None:
        """Take the data of an asynchronous copy; it becomes readable when its warp has waited for it."""
        self.check(address, active, size)
        self._check_pending(address, active, size)
        access.store(self.window(unit_of(size, False)), address, active, self.slab.threads, data)
        mark_copied(self.tags, self.stride // 4, self.committed, address, active, self.slab.threads, size)

    def survey(self, blocks: Numbers, granules: Numbers) -> npt.NDArray[np.bool_]:
        """Which of these blocks read granules of 16 bytes that nobody has written.

        Raises where a copy is on its way.
        """
        warps = self.slab.shape[1]
        early, empty = survey_granules(
            self.tags, self.stride // 4, self.landed, self.observed, blocks, granules, warps
        )
        if early >= 0:
            block, granule = int(blocks[early // granules.size]), int(granules[early % granules.size])
            raise self.unready_fault(block * self.slab.threads, granule * GRANULE, GRANULE)
        return np.asarray(empty)

    def unready_fault(self, position: int, address: int, size: int) -> LaneFault:
        block = position // self.slab.threads
        words = self.tags[block * self.stride // 4 + address // 4 :][: max(1, size // 4)]
        if (words >= _BULK).any():
            why = "the target of a bulk copy whose mbarrier nobody has waited for"
        elif (words >= _FIRST_COPY).any():
            why = "the target of an asynchronous copy that nobody has waited for"
        else:
            why = "never written"
        return LaneFault(f"{size} bytes of shared memory are read at {address:#x}, {why}", position)


@njit(cache=True)
def ready(tag, size, address, landed, observed, block, warps):  # type: ignore[no-untyped-def]
    """May this word be read? Accesses below four bytes look at their bytes only."""
    if tag >= 2147483648:
        return observed[(tag >> 20) & 2047, block] > tag & 1048575
    if tag >= 16:
        copy = tag - 16
        return copy >> 5 < landed[block * warps + (copy & 31)]
    if size >= 4:
        return tag == 15
    need = ((1 << size) - 1) << (address & 3)
    return tag & need == need


@njit(cache=True)
def unready(tags, stride, landed, observed, address, active, threads, size):  # type: ignore[no-untyped-def]
    """First active thread that reads a word before it holds anything; -1 for none."""
    words = max(1, size // 4)
    warps = threads // 32
    for i in range(address.size):
        if active[i]:
            block = i // threads
            at = block * stride + address[i] // 4
            for k in range(words):
                if not ready(tags[at + k], size, address[i], landed, observed, block, warps):
                    return i
    return -1


@njit(cache=True)
def undelivered(tags, stride, observed, address, active, threads, size):  # type: ignore[no-untyped-def]
    """First active thread that touches the target of a bulk copy whose phase nobody has seen end; or -1."""
    words = max(1, size // 4)
    for i in range(address.size):
        if active[i]:
            block = i // threads
            for k in range(words):
                tag = tags[block * stride + address[i] // 4 + k]
                if tag >= 2147483648 and not observed[(tag >> 20) & 2047, block] > tag & 1048575:
                    return i
    return -1


@njit(cache=True)
def holes(tags, stride, landed, observed, address, active, threads, size, missing):  # type: ignore[no-untyped-def]
    """Mark the words that nobody wrote; the first thread that reads the target of a copy, or -1."""
    warps = threads // 32
    for i in range(address.size):
        if active[i]:
            block = i // threads
            at = block * stride + address[i] // 4
            for k in range(missing.shape[0]):
                if not ready(tags[at + k], size, address[i], landed, observed, block, warps):
                    if tags[at + k] >= 16:
                        return i
                    missing[k, i] = True
    return -1


@njit(cache=True)
def survey_granules(tags, stride, landed, observed, blocks, granules, warps):  # type: ignore[no-untyped-def]
    """The first granule that is the target of a copy in flight, or -1; which blocks read unwritten ones."""
    empty = np.zeros(blocks.size, np.bool_)
    for i in range(blocks.size):
        for j in range(granules.size):
            at = blocks[i] * stride + 4 * granules[j]
            for word in range(4):
                if not ready(tags[at + word], 4, 0, landed, observed, blocks[i], warps):
                    if tags[at + word] >= 16:
                        return i * granules.size + j, empty
                    empty[i] = True
    return -1, empty


@njit(cache=True)
def mark_unwritten(tags, stride, address, active, threads, size):  # type: ignore[no-untyped-def]
    for i in range(address.size):
        if active[i]:
            at = (i // threads) * stride + address[i] // 4
            tags[at] = tags[at] & ~(((1 << size) - 1) << (address[i] & 3)) & 15


@njit(cache=True)
def mark_written(tags, stride, address, active, threads, size):  # type: ignore[no-untyped-def]
    words = max(1, size // 4)
    for i in range(address.size):
        if active[i]:
            at = (i // threads) * stride + address[i] // 4
            if size >= 4:
                for k in range(words):
                    tags[at + k] = 15
            else:
                known = tags[at] if tags[at] < 16 else 15
                tags[at] = known | ((1 << size) - 1) << (address[i] & 3)


@njit(cache=True)
def mark_copied(tags, stride, committed, address, active, threads, size):  # type: ignore[no-untyped-def]
    words = max(1, size // 4)
    warps = threads // 32
    for i in range(address.size):
        if active[i]:
            block = i // threads
            warp = (i % threads) // 32
            at = block * stride + address[i] // 4
            for k in range(words):
                tags[at + k] = 16 + (committed[block * warps + warp] << 5 | warp)
