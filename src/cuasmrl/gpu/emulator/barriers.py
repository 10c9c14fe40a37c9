"""Barriers of a block: who waits where, and when they may go on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from cuasmrl.gpu.emulator.values import FALSE, LANES, Mask

_ALL = -1
"""All living threads of a block are expected."""


@dataclass(slots=True)
class _Waiting:
    """What one barrier number of all blocks has seen since it last opened."""

    rooms: dict[int, Mask] = field(default_factory=dict)
    """Threads that wait, by the instruction at which they go on."""
    arrived: Mask = field(default_factory=lambda: FALSE)
    expected: npt.NDArray[np.int64] = field(default_factory=lambda: np.full((1, 1, 1), _ALL))
    """Threads that must arrive in each block."""
    votes: Mask = field(default_factory=lambda: FALSE)
    reduction: str = ""


class Barriers:
    """The barriers of a slab. `go` sends released threads on; `living` tells who is still there."""

    def __init__(
        self, shape: tuple[int, int, int], go: Callable[[int, Mask], None], living: Callable[[], Mask]
    ) -> None:
        self.shape = shape
        self.result: npt.NDArray[np.uint32] = np.zeros((*shape[:2], 1), np.uint32)
        """What the last BAR.RED of each warp gave: warps may be at barriers of different numbers."""
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
        count = _ALL if expected is None else expected
        if (state.expected != count).any():
            here = _any_thread(np.broadcast_to(threads, self.shape))
            state.expected = np.where(here, count, state.expected)
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
                leaving, staying = threads & done, threads & ~done
                if leaving.any():
                    self._go(following, leaving)
                if staying.any():
                    state.rooms[following] = staying
                else:
                    # An empty room must not send nobody on when the other blocks are done.
                    del state.rooms[following]
            state.arrived = state.arrived & ~done
            state.votes = state.votes & ~done

    @property
    def waiting_anywhere(self) -> bool:
        return bool(self._waiting)

    def waiting(self) -> dict[int, Mask]:
        """Barrier number and the threads that wait at it."""
        found = {}
        for name, state in sorted(self._waiting.items()):
            threads = np.zeros(self.shape, np.bool_)
            for room in state.rooms.values():
                threads |= room
            if threads.any():
                found[name] = threads
        return found

    def _complete(self, state: _Waiting) -> Mask:
        """Per block: has everybody arrived whom the barrier waits for?"""
        arrived = np.broadcast_to(state.arrived, self.shape)
        missing = np.broadcast_to(self._living() & ~state.arrived, self.shape)
        everybody = ~_any_thread(missing) & _any_thread(arrived)
        counted = state.expected != _ALL
        if not counted.any():
            return everybody
        # A barrier counts warps: the compiler has brought their lanes together.
        enough = any_lane(arrived).sum(axis=1, keepdims=True) * LANES >= state.expected
        return np.where(counted, enough, everybody)

    def _reduce(self, state: _Waiting, done: Mask) -> None:
        voters = np.broadcast_to(state.arrived, self.shape)
        votes = np.broadcast_to(state.votes, self.shape).sum(axis=(1, 2), keepdims=True)
        if state.reduction == "AND":
            votes = votes == voters.sum(axis=(1, 2), keepdims=True)
        elif state.reduction == "OR":
            votes = votes > 0
        self.result = np.where(done & any_lane(voters), votes, self.result).astype(np.uint32)


def _any_thread(threads: Mask) -> Mask:
    """Per block: is there any?"""
    return np.logical_or.reduce(threads, axis=(1, 2), keepdims=True)


def any_lane(threads: Mask) -> Mask:
    """Per warp: is there any?"""
    return np.logical_or.reduce(threads, axis=2, keepdims=True)
