"""Barriers of a block: who waits where, and when they may go on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from cuasmrl.emulator.values import FALSE, LANES, Mask


@dataclass(slots=True)
class _Waiting:
    """What one barrier number of all blocks has seen since it last opened."""

    rooms: dict[int, Mask] = field(default_factory=dict)
    """Threads that wait, by the instruction at which they go on."""
    arrived: Mask = field(default_factory=lambda: FALSE)
    expected: int | None = None
    """Threads that must arrive; None for all living ones of the block."""
    votes: Mask = field(default_factory=lambda: FALSE)
    reduction: str = ""


class Barriers:
    """The barriers of a slab. `go` sends released threads on; `living` tells who is still there."""

    def __init__(
        self, shape: tuple[int, int, int], go: Callable[[int, Mask], None], living: Callable[[], Mask]
    ) -> None:
        self.shape = shape
        self.result: npt.NDArray[np.uint32] = np.zeros((shape[0], 1, 1), np.uint32)
        """What the last BAR.RED of each block gave."""
        self._go = go
        self._living = living
        self._waiting: dict[int, _Waiting] = {}

    def arrive(
        self,
        name: int,
        following: int,
        threads: Mask,
        expected: int | None,
        waits: bool = True,
        vote: Mask | None = None,
        reduction: str = "",
    ) -> None:
        state = self._waiting.setdefault(name, _Waiting())
        state.arrived = state.arrived | threads
        state.expected = expected
        if vote is not None:
            state.votes = state.votes | (threads & vote)
            state.reduction = reduction
        if waits:
            state.rooms[following] = state.rooms.get(following, FALSE) | threads
        else:
            self._go(following, threads)
        self.release()

    def release(self) -> None:
        """Let the blocks go on in which everybody has arrived."""
        for name, state in list(self._waiting.items()):
            done = self._complete(state)
            if not done.any():
                continue
            if state.reduction:
                self._reduce(state, done)
            if done.all():
                del self._waiting[name]
                for following, threads in state.rooms.items():
                    self._go(following, threads)
                continue
            for following, threads in list(state.rooms.items()):
                leaving = threads & done
                if leaving.any():
                    self._go(following, leaving)
                    state.rooms[following] = threads & ~done
            state.arrived = state.arrived & ~done
            state.votes = state.votes & ~done

    @property
    def waiting_anywhere(self) -> bool:
        return bool(self._waiting)

    def waiting(self) -> dict[int, Mask]:
        """Barrier number and the threads that wait at it."""
        found = {}
        for name, state in self._waiting.items():
            threads = np.zeros(self.shape, np.bool_)
            for room in state.rooms.values():
                threads |= room
            if threads.any():
                found[name] = threads
        return found

    def _complete(self, state: _Waiting) -> Mask:
        """Per block: has everybody arrived whom the barrier waits for?"""
        if state.expected is None:
            missing = self._living() & ~state.arrived
            anybody = _any_thread(np.broadcast_to(state.arrived, self.shape))
            if not missing.any():
                return anybody
            return ~_any_thread(np.broadcast_to(missing, self.shape)) & anybody
        warps = np.logical_or.reduce(np.broadcast_to(state.arrived, self.shape), axis=2, keepdims=True)
        enough: Mask = warps.sum(axis=1, keepdims=True) * LANES >= state.expected
        return enough

    def _reduce(self, state: _Waiting, done: Mask) -> None:
        voters = np.broadcast_to(state.arrived, self.shape)
        votes = np.broadcast_to(state.votes, self.shape).sum(axis=(1, 2), keepdims=True)
        if state.reduction == "AND":
            votes = votes == voters.sum(axis=(1, 2), keepdims=True)
        elif state.reduction == "OR":
            votes = votes > 0
        self.result = np.where(done, votes, self.result).astype(np.uint32)


def _any_thread(threads: Mask) -> Mask:
    """Per block: is there any?"""
    return np.logical_or.reduce(threads, axis=(1, 2), keepdims=True)
