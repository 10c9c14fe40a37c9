"""Lanes of a warp that wait for each other: at a BSYNC, at a WARPSYNC, or wherever a collective is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from cuasmrl.gpu.emulator.semantics.lanes import over_lanes, packed
from cuasmrl.gpu.emulator.values import FALSE, ZERO, Mask, Value


@dataclass(slots=True)
class Meeting:
    """Lanes at one instruction. Each waits for those in its own mask, which others need not share."""

    threads: Mask
    masks: Callable[[], Value]
    """Read again whenever somebody comes or leaves: a BREAK takes lanes out of them."""
    exclusive: bool = False
    """Lanes with different masks go on one mask after the other."""
    forget: Callable[[Mask], None] | None = None
    """Takes lanes out of the masks when they go on alone; None if they must not."""
    since: int = 0
    """The turn in which somebody came last."""

    def complete(self, living: Mask) -> Mask:
        """Those for whom nobody is missing."""
        missing = self.masks() & packed(living) & ~packed(self.threads)
        return self.threads if not missing.any() else self.threads & (missing == 0)

    def first_mask(self, threads: Mask) -> Mask:
        """Of these, in each warp, only the lanes whose mask is that of the lowest one."""
        masks, full = np.broadcast_arrays(over_lanes(self.masks()), over_lanes(threads))
        lowest = full.argmax(axis=2)[:, :, None]
        same: Mask = masks == np.take_along_axis(masks, lowest, axis=2)
        return full & same


class Collectives:
    """WARPSYNC.COLLECTIVE: lanes from several places of the code execute the next instructions together.

    The compiler has put the operands into the same registers in all of those places, so it does not matter
    whose instructions are taken; at ENDCOLLECTIVE each lane returns to its own place.
    """

    def __init__(self) -> None:
        self.threads: Mask = FALSE
        self._masks: Value = ZERO
        self._entries: Value = ZERO
        self._returns: Value = ZERO

    def enter(self, threads: Mask, masks: Value, entry: int, leave_to: int) -> None:
        self.threads = self.threads | threads
        self._masks = np.where(threads, masks, self._masks)
        self._entries = np.where(threads, np.uint32(entry), self._entries)
        self._returns = np.where(threads, np.uint32(leave_to), self._returns)

    def release(self, living: Mask) -> list[tuple[int, Mask]]:
        """Those for whom nobody is missing, and where they go on."""
        here = packed(self.threads)
        ready = self.threads & ((self._masks & packed(living) & ~here) == 0)
        if not ready.any():
            return []
        self.threads = self.threads & ~ready
        group = np.broadcast_to(self._masks & here, ready.shape)
        lowest = np.log2(np.maximum(group & (~group + np.uint32(1)), 1)).astype(np.intp)
        entries = np.take_along_axis(np.broadcast_to(self._entries, ready.shape), lowest, axis=2)
        return split(ready, entries)

    def returns(self, threads: Mask) -> list[tuple[int, Mask]]:
        """Where the threads at an ENDCOLLECTIVE go."""
        full = np.broadcast_shapes(threads.shape, self._returns.shape)
        return split(np.broadcast_to(threads, full), np.broadcast_to(self._returns, full))


def split(threads: Mask, targets: Value) -> list[tuple[int, Mask]]:
    """Threads by the instruction they go to."""
    return [(int(target), threads & (targets == target)) for target in np.unique(targets[threads])]
