"""Shared memory that engines beside the warps still read, and which therefore must not be written.

An engine takes orders in groups, one after the other, and a warp waits for all but the last few groups.
Orders are carried out when they are issued; what they read is marked until their group has been waited for,
and whoever writes there before is at fault, even if the result came out right.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from numba import njit

from cuasmrl.gpu.emulator.access import Addresses, Flat
from cuasmrl.gpu.emulator.faults import LaneFault

GRANULE = 16
INSTRUCTION_BITS = 24
"""A mark is the number of the group, from 1 on, above the index of the instruction."""

Numbers = npt.NDArray[np.int64]
Describe = Callable[[int], str]
"""An instruction in words, by its index."""


def mark_of(groups: Numbers, index: int) -> Numbers:
    return (groups + 1 << INSTRUCTION_BITS) | index


class PendingReads:
    """What one queue of an engine reads in each block, by granules of 16 bytes."""

    def __init__(self, blocks: int, block_bytes: int, describe: Describe) -> None:
        self._per_block = block_bytes // GRANULE
        self._marks = np.zeros(blocks * self._per_block, np.int64)
        self._done = np.zeros(blocks, np.int64)
        """Groups of each block that have been waited for."""
        self._newest = np.zeros(blocks, np.int64)
        self._describe = describe

    def begin(self, blocks: Numbers, granules: Numbers, groups: Numbers, index: int) -> None:
        """An instruction of these groups, one for each block, reads the granules."""
        self._marks[blocks[:, None] * self._per_block + granules] = mark_of(groups, index)[:, None]
        self._newest[blocks] = groups + 1

    def finish(self, blocks: Numbers, groups: Numbers) -> None:
        """So many groups of these blocks are done."""
        self._done[blocks] = np.maximum(self._done[blocks], groups)

    @property
    def is_busy(self) -> bool:
        return bool((self._newest > self._done).any())

    def check(self, address: Addresses, active: Flat, threads: int, size: int) -> None:
        """Raise if a thread writes what is still read; `threads` is the number in a block."""
        if not self.is_busy:
            return
        first = first_pending(self._marks, self._done, self._per_block, address, active, threads, size)
        if first >= 0:
            raise self._fault(first // threads, int(address[first]), size, first)

    def check_granules(self, block: int, granules: Numbers, position: int) -> None:
        """The same for whole granules of one block; a thread at `position` writes them."""
        pending = self._marks[block * self._per_block + granules] >> INSTRUCTION_BITS > self._done[block]
        if pending.any():
            raise self._fault(block, int(granules[pending.argmax()]) * GRANULE, GRANULE, position)

    def _fault(self, block: int, address: int, size: int, position: int) -> LaneFault:
        mark = int(self._marks[block * self._per_block + address // GRANULE])
        reader = self._describe(mark & (1 << INSTRUCTION_BITS) - 1)
        return LaneFault(
            f"{size} bytes of shared memory are written at {address:#x}, which {reader} still reads, since "
            "nobody has waited for it",
            position,
        )


@njit(cache=True)
def first_pending(marks, done, per_block, address, active, threads, size):  # type: ignore[no-untyped-def]
    """First active thread whose access touches a granule with a group that is not done; -1 for none."""
    for i in range(address.size):
        if active[i]:
            block = i // threads
            if marks[block * per_block + address[i] // 16] >> 24 > done[block]:
                return i
    return -1
