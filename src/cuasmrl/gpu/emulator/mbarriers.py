"""Barriers in shared memory (mbarrier): what each phase still waits for, and who waits for its end.

A phase ends when no arrivals and no bytes are expected any more. A thread that waits for a phase is parked
until it has ended, so that its first try succeeds: the way it takes through the code is the same whatever the
order in which warps execute, and a wait is one event, never a number of tries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from cuasmrl.gpu.emulator.events import Event
from cuasmrl.gpu.emulator.faults import LaneFault
from cuasmrl.gpu.emulator.values import LANES, Mask

if TYPE_CHECKING:
    from cuasmrl.gpu.emulator.machine import Machine

BYTES = 8
MOST_ARRIVALS = (1 << 20) - 1
_MOST_BYTES = (1 << 22) - 1

Numbers = npt.NDArray[np.int64]


def initial_count(word: int) -> int | None:
    """The arrivals that a barrier waits for, from the word it is initialised with; None if it is none.

    Counts are kept as 2^20 less them: bits 1 to 20 that of every phase, bits 43 to 62 that of this one.
    """
    lacking = word >> 1 & MOST_ARRIVALS
    return (1 << 20) - lacking if word == lacking << 1 | lacking << 43 and lacking else None


@dataclass(eq=False)
class Mbarrier:
    """One address of shared memory in all blocks of a slab."""

    address: int
    slot: int
    """Its row in `SharedMemory.observed`."""
    live: Mask
    expected: Numbers
    """Arrivals that each phase waits for."""
    pending: Numbers
    """Of those, the ones still to come."""
    bytes: Numbers
    """Still to come in this phase; negative if they came before they were announced."""
    phase: Numbers
    """Phases that have ended, counted on when the barrier is initialised anew."""
    first: Numbers
    """The phase it began with."""
    made_by: int = 0
    """The instruction that initialised it."""
    arrivals: dict[int, Numbers] = field(default_factory=dict)
    """By instruction: the last phase of each block in which it arrived or brought bytes; -1 for none."""

    def parity(self) -> Numbers:
        return self.phase - self.first & 1

    def words(self) -> npt.NDArray[np.uint64]:
        """The state as the 64 bits that an arrival answers with, one for each block."""
        parts = (-self.expected & MOST_ARRIVALS, self.bytes & _MOST_BYTES, -self.pending & MOST_ARRIVALS,
                 self.parity())  # fmt: skip
        word = np.zeros(len(self.live), np.uint64)
        for part, lowest in zip(parts, (1, 21, 43, 63), strict=True):
            word |= part.astype(np.uint64) << np.uint64(lowest)
        return word


@dataclass(eq=False)
class Wait:
    """Threads at one instruction, each at a barrier and with the parity of the phase it waits for."""

    threads: Mask
    addresses: Numbers
    parities: npt.NDArray[np.bool_]
    following: int
    passed: Callable[[Mask], None]
    visits: npt.NDArray[np.int32] | None = None
    """In which visit of its path each warp of the slab came here; None if nobody records it."""


class Mbarriers:
    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._barriers: dict[int, Mbarrier] = {}
        self._waits: list[Wait] = []

    def __bool__(self) -> bool:
        """Does anybody wait?"""
        return bool(self._waits)

    # barriers

    def initialise(self, block: int, address: int, arrivals: int, index: int, position: int) -> None:
        barrier = self._barriers.get(address)
        if barrier is None:
            barrier = self._new(address, position)
        if barrier.live[block]:
            raise LaneFault(f"initialises the mbarrier at {address:#x}, which is one already", position)
        barrier.live[block] = True
        barrier.expected[block] = barrier.pending[block] = arrivals
        barrier.bytes[block] = 0
        barrier.first[block] = barrier.phase[block]
        barrier.made_by = index

    def _new(self, address: int, position: int) -> Mbarrier:
        if address % BYTES:
            raise LaneFault(f"an mbarrier at {address:#x} is not aligned to {BYTES}", position)
        if not 0 <= address <= self._machine.shared.limit - BYTES:
            raise LaneFault(
                f"an mbarrier at {address:#x} is out of bounds; {self._machine.shared.limit} bytes of shared "
                "memory are declared",
                position,
            )
        blocks = self._machine.shape[0]
        slot = self._machine.shared.new_slot()
        expected, pending, moved, phase, first = np.zeros((5, blocks), np.int64)
        live = np.zeros(blocks, np.bool_)
        barrier = Mbarrier(address, slot, live, expected, pending, moved, phase, first)
        self._barriers[address] = barrier
        return barrier

    def invalidate(self, block: int, address: int, position: int) -> None:
        self.at(address, np.array([block]), position).live[block] = False

    def at(self, address: int, blocks: Numbers, position: int) -> Mbarrier:
        """The barrier at an address, which must be one in all of these blocks."""
        barrier = self._barriers.get(address)
        if barrier is None or not barrier.live[blocks].all():
            raise LaneFault(f"there is no mbarrier at {address:#x}: nobody has initialised one", position)
        return barrier

    # arrivals

    def count(
        self, address: int, blocks: Numbers, arrivals: Numbers, moved: Numbers, index: int, position: int
    ) -> None:
        """In each of these different blocks so many arrivals, and bytes announced (or, negative, brought)."""
        barrier = self.at(address, blocks, position)
        barrier.arrivals.setdefault(index, np.full(len(barrier.live), -1))[blocks] = barrier.phase[blocks]
        barrier.bytes[blocks] += moved
        left = arrivals.copy()
        while True:
            taken = np.minimum(left, barrier.pending[blocks])
            barrier.pending[blocks] -= taken
            left -= taken
            ended = (barrier.pending[blocks] == 0) & (barrier.bytes[blocks] == 0)
            if not ended.any():
                break
            those = blocks[ended]
            barrier.phase[those] += 1
            barrier.pending[those] = barrier.expected[those]
            self._release()
            if not left.any():
                break
        if left.any():
            block = int(blocks[left.argmax()])
            raise LaneFault(
                f"arrives at the mbarrier at {address:#x} beyond the {barrier.expected[block]} arrivals it "
                f"waits for, while {barrier.bytes[block]} bytes of its phase are still to come",
                position,
            )

    def drop(self, address: int, blocks: Numbers, threads: Numbers, position: int) -> None:
        """From the next phase on so many arrivals less are expected."""
        self.at(address, blocks, position).expected[blocks] -= threads

    # waiting

    def wait(self, wait: Wait) -> None:
        """Park threads until the phases they wait for have ended."""
        self._waits.append(wait)
        self._release()

    def ended(self, wait: Wait) -> Mask:
        """For which of these threads the phase of their parity has ended; they have then seen it."""
        threads, addresses, parities = wait.threads, wait.addresses, wait.parities
        found = np.zeros(threads.shape, np.bool_)
        for address in np.unique(addresses[threads]):
            here = threads & (addresses == address)
            blocks = np.flatnonzero(here.any(axis=(1, 2)))
            barrier = self.at(int(address), blocks, int(here.reshape(-1).argmax()))
            done = here & (barrier.parity()[:, None, None] != parities)
            if done.any():
                found |= done
                seen = np.flatnonzero(done.any(axis=(1, 2)))
                self._machine.shared.observe(barrier.slot, seen, barrier.phase[seen])
                self._note(wait, barrier, done)
                if self._machine.tensor_memory is not None:
                    self._machine.tensor_memory.observe(barrier.slot, seen, barrier.phase[seen])
        return found

    def _note(self, wait: Wait, barrier: Mbarrier, done: Mask) -> None:
        """The phase that these threads have waited for is the last one that has ended."""
        if wait.visits is None or self._machine.recorder is None:
            return
        warps = np.flatnonzero(done.any(axis=2).reshape(-1))
        blocks = warps // self._machine.shape[1]
        fresh = barrier.phase[blocks] == barrier.first[blocks]
        self._machine.recorder.event(
            Event.WAIT, wait.following - 1, warps, barrier.address,
            phases=np.where(fresh, -1, barrier.phase[blocks] - 1), positions=wait.visits[warps],
        )  # fmt: skip

    def _release(self) -> None:
        for wait in list(self._waits):
            done = self.ended(wait)
            if not done.any():
                continue
            wait.threads = wait.threads & ~done
            if not wait.threads.any():
                self._waits.remove(wait)
            wait.passed(done)
            self._machine.go(wait.following, done)

    def rooms(self) -> Iterator[tuple[str, Mask]]:
        """What threads wait for, in words, and which threads."""
        for wait in self._waits:
            position = int(wait.threads.reshape(-1).argmax())
            yield self._reason(wait, position), wait.threads

    def _reason(self, wait: Wait, position: int) -> str:
        block = position // (self._machine.shape[1] * LANES)
        barrier = self._barriers[int(wait.addresses.reshape(-1)[position])]
        phase = int(barrier.phase[block])
        missing = []
        if barrier.pending[block]:
            missing.append(f"{barrier.pending[block]} of {barrier.expected[block]} arrivals")
        if barrier.bytes[block]:
            missing.append(f"{barrier.bytes[block]} bytes")
        where = f"the mbarrier at {barrier.address:#x}, made by {self._named(barrier.made_by)}"
        number = phase - int(barrier.first[block])
        who = self._who(barrier, block, phase)
        return f"phase {number} of {where}: {' and '.join(missing)} are missing; {who}"

    def _who(self, barrier: Mbarrier, block: int, phase: int) -> str:
        """Who has arrived in this phase, and who did in earlier ones only."""
        now = [index for index, last in sorted(barrier.arrivals.items()) if last[block] == phase]
        before = [index for index, last in sorted(barrier.arrivals.items()) if 0 <= last[block] < phase]
        told = []
        if now:
            told.append(f"{', '.join(map(self._named, now))} came in this phase")
        if before:
            told.append(f"{', '.join(map(self._named, before))} came in earlier phases and not in this one")
        return " and ".join(told) or "nobody has ever come to it"

    def _named(self, index: int) -> str:
        return self._machine.program.describe(index)
