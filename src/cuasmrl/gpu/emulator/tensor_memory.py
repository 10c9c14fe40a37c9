"""Tensor memory of the blocks of a slab: its cells, who owns them, and what engines still do with them.

A block has 128 lanes of 512 cells of 32 bits. The tensor core writes and reads them beside the warps, in the
order in which a warp gives its orders; that the orders of a warp up to a UTCBAR are done is known when
somebody in the block has seen the end of the phase that the UTCBAR came to (PTX ISA, tcgen05.commit). Orders
are carried out when they are given, and stay marked until then. Stores of warps are marked until the warp has
waited for them, which compiled code does with FENCE.VIEW.ASYNC.T. Marks belong to 16 lanes of a column,
since nothing touches fewer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from cuasmrl.gpu.emulator.faults import LaneFault
from cuasmrl.gpu.emulator.pending_reads import INSTRUCTION_BITS, Numbers, PendingReads
from cuasmrl.gpu.emulator.values import LANES
from cuasmrl.gpu.emulator.warps import Warps

if TYPE_CHECKING:
    from cuasmrl.gpu.emulator.machine import Machine

TENSOR_MEMORY = frozenset(
    ("LDTM", "STTM", "UTCATOMSWS", "UTCBAR", "UTCCP", "UTCHMMA", "UTCIMMA", "UTCQMMA", "UTCOMMA")
)
"""Opcodes that work on it."""
ROWS, COLUMNS = 128, 512
HALF = 16
"""Lanes that have a mark together."""
UNIT = 32
"""Columns that are allocated together."""
_UNITS = COLUMNS // UNIT
_WARP_BITS = 6
_INDEX_MASK = (1 << INSTRUCTION_BITS) - 1
_UNAWAITED = "since nobody has waited for the mbarrier of a UTCBAR behind it"
_BOOKS = range(0x40, 0x60)
"""Reserved shared memory in which compiled code keeps books on what it has allocated; it begins as zero."""


@dataclass(frozen=True, eq=False)
class Region:
    """What some warps of the slab touch, each in its own block: halves of lanes, and columns."""

    warps: Numbers
    blocks: Numbers
    halves: Numbers
    """By warp."""
    columns: Numbers
    """By warp."""

    @property
    def place(self) -> tuple[Numbers, Numbers, Numbers]:
        return self.blocks[:, None, None], self.halves[:, :, None], self.columns[:, None, :]


def tensor_memory_of(w: Warps) -> TensorMemory:
    memory = w.machine.tensor_memory
    assert memory is not None, "the program uses tensor memory"
    return memory


class TensorMemory:
    def __init__(self, machine: Machine) -> None:
        blocks, warps, _ = machine.shape
        self._machine = machine
        self._warps = warps
        self.cells = np.zeros((blocks, ROWS, COLUMNS), np.uint32)
        self.written = np.zeros((blocks, ROWS // HALF, COLUMNS), np.bool_)
        self._owners = np.zeros((blocks, _UNITS), np.int64)
        """By unit: 1 + the instruction that allocated it; 0 if it is free."""
        self._freed = np.zeros((blocks, _UNITS), np.int64)
        """By unit: 1 + the instruction that freed it last."""
        marks = (blocks, ROWS // HALF, COLUMNS)
        self._results = np.zeros(marks, np.int64)
        """The last order that writes here."""
        self._extents = np.zeros(marks, np.int64)
        """All that this order writes."""
        self._operands = np.zeros(marks, np.int64)
        """The last order that reads here."""
        self._stores = np.zeros(marks, np.int64)
        """The last store of a warp."""
        self._given = np.zeros(blocks * warps, np.int64)
        """Orders that each warp has given, and those of them that are known to be done."""
        self._done = np.zeros(blocks * warps, np.int64)
        self._fences = np.zeros(blocks * warps, np.int64)
        """Times each warp has waited for its stores."""
        self._commits: dict[int, list[tuple[int, int, int]]] = {}
        """By mbarrier (its slot): a phase, a warp, and its orders that are done when the phase ends."""
        self._tiles: dict[int, PendingReads] = {}
        """Shared memory that orders read, by the number of the warp in its block."""
        shared = machine.shared
        shared.tags.reshape(blocks, -1)[:, _BOOKS.start // 4 : _BOOKS.stop // 4] = 15

    # allocation

    def allocate(self, block: int, units: int, index: int, position: int) -> int | None:
        """The first of so many free units in a row, at a multiple of their number; None if there are none."""
        if units not in (1, 2, 4, 8, 16):
            raise LaneFault(
                f"allocates {UNIT * units} columns of tensor memory, which is no power of 2 from {UNIT} to "
                f"{COLUMNS}",
                position,
            )
        free = (self._owners[block] == 0).reshape(-1, units).all(axis=1)
        if not free.any():
            return None
        first = int(free.argmax()) * units
        self._owners[block, first : first + units] = index + 1
        self.written[block, :, UNIT * first : UNIT * (first + units)] = False
        return first

    def free(self, block: int, kept: int, index: int, position: int) -> None:
        """Give back the units whose bit is not set in `kept`."""
        units = np.array([unit for unit in range(_UNITS) if not kept >> unit & 1], np.int64)
        free = units[self._owners[block, units] == 0]
        if free.size:
            raise LaneFault(f"frees tensor memory {self._unallocated(block, int(free[0]))}", position)
        columns = (UNIT * units[:, None] + np.arange(UNIT)).reshape(1, -1)
        here = np.array([block])
        region = Region(here * self._warps, here, np.arange(ROWS // HALF)[None, :], columns)
        self._check(region, self._results, "frees", "still writes")
        self._check(region, self._operands, "frees", "still reads")
        self._owners[block, units] = 0
        self._freed[block, units] = index + 1

    def finish(self) -> None:
        """Raise if a block has kept tensor memory."""
        kept = np.flatnonzero(self._owners.reshape(-1))
        if kept.size:
            block, unit = divmod(int(kept[0]), _UNITS)
            owner = self._named(int(self._owners[block, unit]) - 1)
            raise LaneFault(
                f"has never freed the tensor memory that {owner} allocated from column {UNIT * unit:#x} on",
                block * self._warps * LANES,
            )

    def region(self, warps: Numbers, halves: Numbers, first: Numbers, columns: int) -> Region:
        """Columns from `first` on, one number for each warp; raises where they are not allocated."""
        past = first + columns > COLUMNS
        if past.any():
            at = int(past.argmax())
            column = int(first[at])
            raise LaneFault(
                f"touches tensor memory from column {column:#x} to {column + columns:#x}, and there are "
                f"{COLUMNS}",
                int(warps[at]) * LANES,
            )
        region = Region(warps, warps // self._warps, halves, first[:, None] + np.arange(columns))
        owned = self._owners[region.blocks[:, None], region.columns // UNIT] > 0
        if not owned.all():
            at, column = np.argwhere(~owned)[0]
            unit = int(region.columns[at, column]) // UNIT
            raise LaneFault(
                f"touches column {int(region.columns[at, column]):#x} of tensor memory, "
                f"{self._unallocated(int(region.blocks[at]), unit)}",
                int(warps[at]) * LANES,
            )
        return region

    def _unallocated(self, block: int, unit: int) -> str:
        freed = int(self._freed[block, unit])
        return f"which {self._named(freed - 1)} has freed" if freed else "which nobody has allocated"

    # warps

    def read(self, region: Region) -> None:
        """Warps read what must have been delivered."""
        self._check(region, self._results, "reads", "has not delivered")
        self._check_stores(region, "reads")

    def write(self, region: Region, index: int) -> None:
        """Warps store; they have to wait before anybody reads."""
        self._check(region, self._results, "writes", "still writes")
        self._check(region, self._operands, "writes", "still reads")
        self._stores[region.place] = self._mark(region.warps, self._fences[region.warps], index)
        self._results[region.place] = 0
        self.written[region.place] = True

    def fence(self, w: Warps) -> None:
        """The stores of these warps have been waited for."""
        self._fences[self._machine.warps_of(w)] += 1

    # orders to the tensor core

    def order(self, warps: Numbers) -> None:
        """These warps, each in a block of its own, give one more order."""
        self._given[warps] += 1

    def take(self, region: Region, index: int, after: frozenset[int] = frozenset()) -> None:
        """The last order of these warps reads; results of the instructions in `after` come in time."""
        self._check(region, self._results, "takes an operand from", "has not delivered", after)
        self._check_stores(region, "takes an operand from")
        self._operands[region.place] = self._mark(region.warps, self._given[region.warps] - 1, index)

    def deliver(self, region: Region, index: int, extent: Numbers, reads: bool) -> None:
        """The last order of these warps writes; orders of one warp that write the same come in order."""
        marks = self._results[region.place]
        flying = self._flying(region, marks)
        own = (marks >> INSTRUCTION_BITS) % (1 << _WARP_BITS) == (region.warps % self._warps)[:, None, None]
        same = own & (self._extents[region.place] == extent[:, None, None])
        if (flying & ~same).any():
            self._raise(region, marks, flying & ~same, "writes", "of another shape or warp, still writes")
        self._check_stores(region, "adds to" if reads else "writes")
        self._check_operands(region)
        self._results[region.place] = self._mark(region.warps, self._given[region.warps] - 1, index)
        self._extents[region.place] = extent[:, None, None]
        self._stores[region.place] = 0

    def read_tiles(self, warps: Numbers, granules: Numbers, index: int) -> None:
        """The last order of these warps reads shared memory, which must not change before it is done."""
        shared = self._machine.shared
        for number in np.unique(warps % self._warps):
            if int(number) not in self._tiles:
                tiles = PendingReads(self._machine.shape[0], shared.stride, self._named)
                self._tiles[int(number)] = tiles
                shared.pending_reads.append(tiles)
            own = warps[warps % self._warps == number]
            self._tiles[int(number)].begin(own // self._warps, granules, self._given[own] - 1, index)

    def commit(self, warp: int, slot: int, phase: int) -> None:
        """All that a warp has ordered so far is done when a phase of an mbarrier ends."""
        self._commits.setdefault(slot, []).append((phase, warp, int(self._given[warp])))

    def observe(self, slot: int, blocks: Numbers, phases: Numbers) -> None:
        """Somebody in these blocks has seen the end of so many phases."""
        waiting = self._commits.get(slot)
        if not waiting:
            return
        seen = dict(zip(blocks.tolist(), phases.tolist(), strict=True))
        left = []
        for phase, warp, orders in waiting:
            block, number = divmod(warp, self._warps)
            if seen.get(block, 0) <= phase:
                left.append((phase, warp, orders))
                continue
            self._done[warp] = max(self._done[warp], orders)
            if number in self._tiles:
                self._tiles[number].finish(np.array([block]), self._done[[warp]])
        self._commits[slot] = left

    # marks

    def _mark(self, warps: Numbers, numbers: Numbers, index: int) -> Numbers:
        marks = (numbers + 1 << _WARP_BITS | warps % self._warps) << INSTRUCTION_BITS | index
        return np.asarray(marks[:, None, None])

    def _flying(self, region: Region, marks: Numbers, done: Numbers | None = None) -> npt.NDArray[np.bool_]:
        numbers = marks >> INSTRUCTION_BITS + _WARP_BITS
        writers = marks >> INSTRUCTION_BITS & (1 << _WARP_BITS) - 1
        known = self._done if done is None else done
        return np.asarray(numbers > known[region.blocks[:, None, None] * self._warps + writers])

    def _check(
        self, region: Region, table: Numbers, verb: str, why: str, after: frozenset[int] = frozenset()
    ) -> None:
        if (self._given == self._done).all():
            return
        marks = table[region.place]
        flying = self._flying(region, marks)
        if after:
            flying &= ~np.isin(marks & _INDEX_MASK, list(after))
        if flying.any():
            self._raise(region, marks, flying, verb, why)

    def _check_operands(self, region: Region) -> None:
        """What an order of another warp still reads must not be overwritten; orders of one come in order."""
        marks = self._operands[region.place]
        own = (marks >> INSTRUCTION_BITS) % (1 << _WARP_BITS) == (region.warps % self._warps)[:, None, None]
        flying = self._flying(region, marks) & ~own
        if flying.any():
            self._raise(region, marks, flying, "writes", "of another warp, still reads")

    def _check_stores(self, region: Region, verb: str) -> None:
        marks = self._stores[region.place]
        flying = self._flying(region, marks, self._fences)
        if flying.any():
            self._raise(region, marks, flying, verb, "has not delivered",
                        "since its warp has not waited for it with FENCE.VIEW.ASYNC.T")  # fmt: skip

    def _raise(
        self,
        region: Region,
        marks: Numbers,
        flying: npt.NDArray[np.bool_],
        verb: str,
        why: str,
        lacking: str = _UNAWAITED,
    ) -> None:
        at, half, column = np.argwhere(flying)[0]
        culprit = self._named(int(marks[at, half, column]) & _INDEX_MASK)
        raise LaneFault(
            f"{verb} column {int(region.columns[at, column]):#x} of tensor memory, which {culprit}"
            f"{',' if ',' in why else ''} {why}, {lacking}",
            int(region.warps[at]) * LANES,
        )

    def _named(self, index: int) -> str:
        return self._machine.program.describe(index)
