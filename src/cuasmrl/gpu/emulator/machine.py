"""A slab of blocks at work: which threads are where, and who executes next.

All threads that stand at the same instruction execute together; of several groups the one with the lowest
address goes first, so that those behind catch up and groups merge again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from cuasmrl.binary.cubin import WORD_BYTES
from cuasmrl.gpu.emulator.access import Addresses, Flat
from cuasmrl.gpu.emulator.barriers import Barriers, any_lane
from cuasmrl.gpu.emulator.bulk_stores import BulkStores
from cuasmrl.gpu.emulator.constants import Constants
from cuasmrl.gpu.emulator.externals import flush
from cuasmrl.gpu.emulator.faults import AssertionFault, DeviceAssert, Fault, LaneFault
from cuasmrl.gpu.emulator.global_memory import GlobalMemory, GlobalSpace
from cuasmrl.gpu.emulator.local_memory import GenericSpace, LocalMemory
from cuasmrl.gpu.emulator.mbarriers import Mbarriers
from cuasmrl.gpu.emulator.meetings import Collectives, Meeting
from cuasmrl.gpu.emulator.module import CODE, Module
from cuasmrl.gpu.emulator.program import Program, Segment
from cuasmrl.gpu.emulator.recorder import Recorder
from cuasmrl.gpu.emulator.shared_memory import SharedMemory
from cuasmrl.gpu.emulator.spaces import Slab
from cuasmrl.gpu.emulator.special import SpecialRegisters
from cuasmrl.gpu.emulator.tensor_memory import TensorMemory
from cuasmrl.gpu.emulator.undefined import Undefined
from cuasmrl.gpu.emulator.values import FALSE, LANES, TRUE, Mask, Value
from cuasmrl.gpu.emulator.warpgroups import WarpgroupProducts
from cuasmrl.gpu.emulator.warps import Registers, Warps
from cuasmrl.gpu.launches.launch import Launch

_TURNS_BEFORE_ANOTHER_GROUP = 256
"""A group that spins must let those go on it waits for."""
_PATIENCE = 4096
"""Turns without anybody coming, after which lanes at a BSYNC stop waiting.

A thread that holds a lock may wait there for those that spin for it. Threads of one warp make progress
independently of each other (CUDA C++ Programming Guide, "Independent Thread Scheduling"), so hardware must
let it go on too; only .RELIABLE barriers and WARPSYNC are waited for without end.
"""


@dataclass(frozen=True)
class Environment:
    """What all slabs of a launch have in common."""

    launch: Launch
    memory: GlobalMemory
    constants: Constants
    module: Module
    shared_bytes: int
    local_bytes: int
    budget: int
    """Instructions that the slowest warp of a slab may execute."""
    sms: int
    """SMs of the chip."""


class Machine:
    def __init__(
        self,
        program: Program,
        env: Environment,
        blocks: np.ndarray,
        recorder: Recorder | None = None,
        began: int = 0,
    ) -> None:
        """`began` is the time at which the slab begins, counted in instructions."""
        threads = env.launch.threads
        warps = -(-threads // LANES)
        self.program = program
        self.env = env
        self.blocks = blocks
        """Linear indices of the blocks of this slab."""
        self.slab = Slab(len(blocks), warps)
        self.shape = self.slab.shape
        self.constants = env.constants
        self.registers = Registers()
        self.memory = GlobalSpace(self.slab, env.memory)
        self.shared = SharedMemory(self.slab, env.shared_bytes)
        self.local = LocalMemory(self.slab, env.local_bytes)
        self.generic = GenericSpace(self.memory, self.local)
        self.special = SpecialRegisters(env.launch, blocks, warps, env.sms)
        self.recorder = recorder
        self.undefined = Undefined(self)
        self.products = WarpgroupProducts(self) if program.has_products else None
        self.tensor_memory = TensorMemory(self) if program.has_tensor_memory else None
        self.printed: list[tuple[int, str]] = []
        """Warp of the slab, and what one of its threads has printed."""
        self.living: Mask = TRUE
        if threads % LANES:
            self.living = (np.arange(warps * LANES) < threads).reshape(1, warps, LANES)
        self.barriers = Barriers(self.shape, self.go, lambda: self.living)
        self._began = began
        self._segment_end = 0
        self.instructions = 0
        """Executed for the whole slab; the slowest warp has executed at most so many."""
        self.warp_instructions = 0
        self.lane_instructions = 0
        self._ready: dict[int, Mask] = {0: self.living}
        self._parked: dict[int, Meeting] = {}
        self.collectives = Collectives()
        self.mbarriers = Mbarriers(self)
        self.bulk_stores = BulkStores(self.shape, self.shared, program.describe)
        self._turn = 0
        self._patience = _PATIENCE

    # what instructions ask for

    def warps_of(self, w: Warps) -> Flat:
        """Which warps of the slab execute, flat."""
        if w.active.size == 1:
            return np.ones(self.shape[0] * self.shape[1], np.bool_)
        return np.broadcast_to(w.active, self.shape).any(axis=2).reshape(-1)

    def note_access(self, index: int, address: Addresses, active: Flat, size: int) -> None:
        if self.recorder is not None:
            self.recorder.access(index, address, active, size)

    def note_copy(
        self, index: int, source: Addresses, reading: Flat, target: Addresses, active: Flat, size: int
    ) -> None:
        if self.recorder is not None:
            self.recorder.copy(index, source, reading, target, active, size)

    def time(self, index: int) -> int:
        """Instructions that were executed before this one."""
        return self._began + self.instructions - (self._segment_end - index)

    # where threads go

    def go(self, index: int, threads: Mask) -> None:
        """These threads go on at an instruction."""
        there = self._ready.get(index)
        self._ready[index] = threads if there is None else there | threads

    def return_to(self, address: int, threads: Mask) -> None:
        """These threads go on at an address of the code."""
        self.go((address - CODE) // WORD_BYTES, threads)

    def leave(self, threads: Mask) -> None:
        """These threads are done."""
        if threads is self.living:
            self.living = FALSE
        else:
            self.living = self.living & ~threads
        self.release()

    def meet(self, index: int, meeting: Meeting) -> None:
        """Wait until all living lanes of each lane's mask are here, then go on at an instruction."""
        parked = self._parked.get(index)
        if parked is not None:
            meeting.threads = meeting.threads | parked.threads
        meeting.since = self._turn
        self._parked[index] = meeting
        self._release_parked([index])

    def collect(self, index: int, threads: Mask, masks: Value, leave_to: int) -> None:
        """Wait for all living lanes of a mask at whichever collective they come to."""
        self.collectives.enter(np.broadcast_to(threads, self.shape), masks, index, leave_to)
        self._release_collectives()

    def release(self) -> None:
        """Somebody has left: see who need not wait any longer."""
        self._release_parked(list(self._parked))
        self._release_collectives()
        self.barriers.release()

    def _release_collectives(self) -> None:
        for index, threads in self.collectives.release(self.living):
            self.go(index, threads)

    def _release_parked(self, indices: Iterable[int]) -> None:
        for index in indices:
            meeting = self._parked[index]
            released = meeting.complete(self.living)
            if meeting.exclusive:
                busy = self._ready.get(index, FALSE)
                released = meeting.first_mask(released) & ~any_lane(busy)
            if not released.any():
                continue
            if released is meeting.threads:
                del self._parked[index]
            else:
                meeting.threads = meeting.threads & ~released
                if not meeting.threads.any():
                    del self._parked[index]
            self.go(index, released)

    # the loop

    def run(self) -> None:
        if self.recorder is not None:
            self.recorder.begin(self.slab)
        try:
            with np.errstate(all="ignore"):
                while self._ready:
                    self._execute(self._next())
        finally:
            flush(self.printed)
        if rooms := self._rooms():
            raise self._deadlock(rooms)
        self._finish()
        if self.recorder is not None:
            self.recorder.end()

    def _finish(self) -> None:
        """Everybody is done: see what they have left behind."""
        try:
            if self.products is not None:
                self.products.finish()
            if self.tensor_memory is not None:
                self.tensor_memory.finish()
        except LaneFault as fault:
            raise Fault(fault.reason, self._name, None, *self.who(fault.position)) from None

    def _next(self) -> int:
        self._turn += 1
        if self._turn % _TURNS_BEFORE_ANOTHER_GROUP == 0:
            self._part()
            # Dictionaries keep the order of insertion: the first one has waited longest.
            return next(iter(self._ready))
        first = min(self._ready)
        if first in self.program.polling and len(self._ready) > 1:
            # Who holds a lock goes before those who try to get it.
            return min(self._ready.keys() - self.program.polling, default=first)
        return first

    def _part(self) -> None:
        """Let those go on alone who wait at a convergence that may never come about."""
        for index, meeting in list(self._parked.items()):
            if meeting.forget is not None and self._turn - meeting.since > self._patience:
                # Where one lock is, others follow.
                self._patience = max(_TURNS_BEFORE_ANOTHER_GROUP, self._patience // 2)
                del self._parked[index]
                meeting.forget(meeting.threads)
                self.go(index, meeting.threads)

    def _execute(self, start: int) -> None:
        active = self._ready.pop(start)
        segment = self.program.segments.get(start)
        if segment is None:
            raise Fault(f"control goes to {WORD_BYTES * start:#x}, where no block begins", self._name)
        alone = not self._ready and not self._waiting
        w = Warps(self, self.registers, active, None if alone else active)
        self._count(segment, active)
        if self.recorder is not None:
            self.recorder.enter(segment, active)
        at = segment.end - 1
        try:
            steps = iter(segment.steps)
            if not self.undefined:
                for at, step in steps:  # noqa: B007  (the handler needs to know where it stopped)
                    step(w)
                    if self.undefined:
                        break
            for at, step in steps:
                self.undefined.execute(self.program.listing.instructions[at], step, w)
            at = segment.end - 1
            if self.undefined:
                if segment.transfers:
                    self.undefined.check_transfer(self.program.listing.instructions[at], w)
                self.undefined.forget_dead()
            segment.transfer(self, w)
            if start in self._parked:
                # One of several exclusive groups was here; now it is the turn of the next.
                self._release_parked([start])
        except LaneFault as fault:
            raise self._located(fault, at) from None
        except ValueError as error:
            raise Fault(str(error), self._name, self.program.listing.instructions[at]) from error

    @property
    def _waiting(self) -> bool:
        return (
            bool(self._parked or self.mbarriers)
            or self.barriers.waiting_anywhere
            or bool(self.collectives.threads.any())
        )

    def _count(self, segment: Segment, active: Mask) -> None:
        self.instructions += len(segment)
        self._segment_end = segment.end
        share = self.slab.size // active.size if active.ndim == 3 else 1
        lanes = int(np.count_nonzero(active)) * share
        warps = np.broadcast_to(active, (*active.shape[:2], LANES)).any(axis=2)
        self.warp_instructions += (
            len(segment) * int(np.count_nonzero(warps)) * (self.shape[0] * self.shape[1] // warps.size)
        )
        self.lane_instructions += len(segment) * lanes
        if self.instructions > self.env.budget:
            raise Fault(
                f"does not end within {self.env.budget:,} instructions; raise the budget if it should",
                self._name,
                self.program.listing.instructions[segment.start],
                *self.who(int(self.slab.flat(active).argmax())),
            )

    # errors

    @property
    def _name(self) -> str:
        return self.program.listing.kernel.name

    def who(self, position: int) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
        """Block and thread index of a thread of the slab."""
        launch = self.env.launch
        block = int(self.blocks[position // self.slab.threads])
        thread = position % self.slab.threads
        return _unravel(block, launch.grid), _unravel(thread, launch.block)

    def _located(self, fault: LaneFault, index: int) -> Fault:
        instruction = self.program.listing.instructions[index]
        kind = DeviceAssert if isinstance(fault, AssertionFault) else Fault
        return kind(fault.reason, self._name, instruction, *self.who(fault.position))

    def _rooms(self) -> list[tuple[str, Mask]]:
        """Where threads wait, and which."""
        rooms = list(self.mbarriers.rooms())
        rooms += [(f"barrier {name}", threads) for name, threads in self.barriers.waiting().items()]
        # Those who wait without end first: others may only wait for them.
        parked = sorted(self._parked.items(), key=lambda item: item[1].forget is not None)
        rooms += [(f"the convergence before {WORD_BYTES * i:#x}", m.threads) for i, m in parked]
        rooms += [("a collective", self.collectives.threads)] if self.collectives.threads.any() else []
        return rooms

    def _deadlock(self, rooms: list[tuple[str, Mask]]) -> Fault:
        what, threads = rooms[0]
        position = int(self.slab.flat(threads).argmax())
        block = position // self.slab.threads
        waiting, living = (
            int(np.count_nonzero(np.broadcast_to(some, self.shape)[block])) for some in (threads, self.living)
        )
        others = f"; others wait at {', '.join(name for name, _ in rooms[1:])}" if rooms[1:] else ""
        return Fault(
            f"waits for ever at {what}: {waiting} of {living} living threads of the block are there{others}",
            self._name,
            None,
            *self.who(position),
        )


def _unravel(index: int, shape: tuple[int, int, int]) -> tuple[int, int, int]:
    x, y, _ = shape
    return index % x, index // x % y, index // (x * y)
