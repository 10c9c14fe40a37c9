"""Groups of bulk stores: which of them each warp has closed, and which it has waited for."""

from __future__ import annotations

import numpy as np

from cuasmrl.gpu.emulator.pending_reads import Describe, Numbers, PendingReads
from cuasmrl.gpu.emulator.shared_memory import SharedMemory


class BulkStores:
    """Every warp has a queue of its own."""

    def __init__(self, shape: tuple[int, int, int], shared: SharedMemory, describe: Describe) -> None:
        self._blocks, self._warps, _ = shape
        self._shared = shared
        self._describe = describe
        self._closed = np.zeros(self._blocks * self._warps, np.int64)
        self._queues: dict[int, PendingReads] = {}
        """By the number of a warp in its block."""

    def begin(self, warp: int, granules: Numbers, index: int) -> None:
        """A warp of the slab orders a store that reads these granules."""
        block, number = divmod(warp, self._warps)
        if number not in self._queues:
            self._queues[number] = PendingReads(self._blocks, self._shared.stride, self._describe)
            self._shared.pending_reads.append(self._queues[number])
        self._queues[number].begin(np.array([block]), granules, self._closed[[warp]], index)

    def close(self, warps: Numbers) -> None:
        self._closed[warps] += 1

    def wait(self, warps: Numbers, in_flight: int) -> None:
        """All but the last `in_flight` groups of these warps are done."""
        for number, queue in self._queues.items():
            own = warps[warps % self._warps == number]
            if own.size:
                queue.finish(own // self._warps, self._closed[own] - in_flight)
