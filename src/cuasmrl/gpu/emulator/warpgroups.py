"""Products of warpgroups in flight: which registers and which shared memory nobody may touch yet.

A product is carried out when it is issued, but its accumulators count as undelivered, and its operands as
being read, until a WARPGROUP.DEPBAR covers its group (PTX ISA, asynchronous warpgroup level matrix
instructions). Whoever reads or writes an accumulator before that, writes a register of A, or overwrites a
tile, is at fault. So is a product whose registers were written after the last WARPGROUP.ARRIVE of their warp.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from cuasmrl.binary.sass import File, Instruction, file_of
from cuasmrl.gpu.emulator.faults import LaneFault
from cuasmrl.gpu.emulator.pending_reads import INSTRUCTION_BITS, PendingReads, mark_of
from cuasmrl.gpu.emulator.tensor.warpgroup import WARPS
from cuasmrl.gpu.emulator.values import LANES, Mask
from cuasmrl.gpu.emulator.warps import Warps

if TYPE_CHECKING:
    from cuasmrl.gpu.emulator.machine import Machine

PRODUCTS = ("HGMMA", "IGMMA", "QGMMA", "BGMMA")
_REGISTERS = 256

Numbers = npt.NDArray[np.int64]


def general(accesses: tuple[int, ...]) -> frozenset[int]:
    return frozenset(register for register in accesses if file_of(register) is File.R)


def read_by(instruction: Instruction) -> frozenset[int]:
    return general(tuple(use.register for use in instruction.uses))


def written_by(instruction: Instruction) -> frozenset[int]:
    return general(tuple(definition.register for definition in instruction.defs))


def products_of(w: Warps) -> WarpgroupProducts:
    products = w.machine.products
    assert products is not None, "the program has products"
    return products


class WarpgroupProducts:
    """The products that the warps of a slab have issued."""

    def __init__(self, machine: Machine) -> None:
        blocks, warps, _ = machine.shape
        self._machine = machine
        self._warps = warps
        self._committed = np.zeros(blocks * warps, np.int64)
        """Groups each warp has closed."""
        self._waited = np.zeros(blocks * warps, np.int64)
        self._issued = np.zeros(blocks * warps, np.int64)
        """Products each warp has issued."""
        self._accumulators = np.zeros((_REGISTERS, blocks * warps), np.int64)
        """By register and warp: the last product that accumulates into it."""
        self._fragments = np.zeros((_REGISTERS, blocks * warps), np.int64)
        """The same for registers of A."""
        self._busy: set[int] = set()
        """Registers in flight in some warp."""
        self._fresh: dict[int, dict[int, tuple[Mask, Instruction]]] = {}
        """Registers written after the last ARRIVE: by whom, in which threads."""
        shared = machine.shared
        self._tiles = [PendingReads(blocks, shared.stride, self._describe) for _ in range(-(-warps // WARPS))]
        shared.pending_reads += self._tiles

    # what other instructions do

    def watch(
        self, instruction: Instruction, reads: frozenset[int], writes: frozenset[int], w: Warps
    ) -> None:
        """An instruction that is no product touches registers that some product works on."""
        if not self._busy.isdisjoint(reads) or not self._busy.isdisjoint(writes):
            self._check(reads, self._accumulators, "reads", "has not delivered", w)
            self._check(writes, self._accumulators, "writes", "still accumulates into", w)
            self._check(writes, self._fragments, "writes", "still reads", w)
        for register in writes:
            self._fresh.setdefault(register, {})[id(w.active)] = w.active, instruction

    def _check(self, registers: frozenset[int], marks: Numbers, verb: str, why: str, w: Warps) -> None:
        for register in sorted(self._busy & registers):
            flying = (marks[register] >> INSTRUCTION_BITS > self._waited) & self._machine.warps_of(w)
            if flying.any():
                warp = int(flying.argmax())
                product = self._describe(int(marks[register, warp]) & (1 << INSTRUCTION_BITS) - 1)
                raise LaneFault(
                    f"{verb} R{register}, which {product} {why}, since no WARPGROUP.DEPBAR has waited for it",
                    warp * LANES,
                )

    # what products do

    def arrive(self, w: Warps) -> None:
        """Registers written so far may be used by the products that follow."""
        here = np.logical_or.reduce(np.broadcast_to(w.active, self._machine.shape), axis=2, keepdims=True)
        everybody = bool(here.all())
        for register, writers in list(self._fresh.items()):
            kept = {}
            if not everybody:
                for key, (threads, instruction) in writers.items():
                    left = threads & ~here
                    if left.any():
                        kept[key] = left, instruction
            if kept:
                self._fresh[register] = kept
            else:
                del self._fresh[register]

    def issue(
        self, instruction: Instruction, accumulators: range, fragments: range, w: Warps, closes: bool
    ) -> Numbers:
        """Check and note a product; the warps of the slab that execute it."""
        warps = np.flatnonzero(self._machine.warps_of(w))
        self._check_whole(w, warps)
        self._check_order(instruction, accumulators, fragments, w, warps)
        marks = mark_of(self._committed[warps], instruction.index)
        for registers, table in ((accumulators, self._accumulators), (fragments, self._fragments)):
            table[registers.start : registers.stop, warps] = marks
            self._busy.update(registers)
        self._issued[warps] += 1
        self._committed[warps] += closes
        return warps

    def read_tiles(self, warps: Numbers, granules: Numbers, index: int, closes: bool) -> None:
        """A product that these warps have issued reads the granules."""
        groups = self._committed[warps] - closes
        for number, tiles in enumerate(self._tiles):
            own = warps % self._warps // WARPS == number
            if own.any():
                tiles.begin(warps[own] // self._warps, granules, groups[own], index)

    def wait(self, w: Warps, in_flight: int) -> None:
        """All but the last `in_flight` groups of these warps are done."""
        warps = np.flatnonzero(self._machine.warps_of(w))
        self._waited[warps] = np.maximum(self._waited[warps], self._committed[warps] - in_flight)
        blocks = np.unique(warps // self._warps)
        waited = self._waited.reshape(-1, self._warps)[blocks]
        for number, tiles in enumerate(self._tiles):
            tiles.finish(blocks, waited[:, WARPS * number : WARPS * (number + 1)].min(axis=1))
        busy = list(self._busy)
        newest = np.maximum(self._accumulators[busy], self._fragments[busy]) >> INSTRUCTION_BITS
        flying = np.flatnonzero(np.any(newest > self._waited, axis=1))
        self._busy = {busy[k] for k in flying}

    def finish(self) -> None:
        """Raise if some warps of a warpgroup have issued fewer products than the others."""
        blocks = self._issued.reshape(-1, self._warps)
        for first in range(0, self._warps, WARPS):
            issued = blocks[:, first : first + WARPS]
            uneven = issued.min(axis=1) != issued.max(axis=1)
            if uneven.any():
                block = int(uneven.argmax())
                lacking = first + int(issued[block].argmin())
                raise LaneFault(
                    f"warp {lacking} of the block has issued {issued[block].min()} warpgroup products, "
                    f"others of its warpgroup {issued[block].max()}: they belong to all four warps",
                    (block * self._warps + lacking) * LANES,
                )

    def _check_whole(self, w: Warps, warps: Numbers) -> None:
        lanes = np.broadcast_to(w.active, self._machine.shape).reshape(-1, LANES)[warps]
        partial = ~np.logical_and.reduce(lanes, axis=1)
        if partial.any():
            raise LaneFault("needs all lanes of a warp", int(warps[partial.argmax()]) * LANES)
        if self._warps % WARPS:
            raise LaneFault(
                f"needs warpgroups of {WARPS} warps, and the block has {self._warps}", int(warps[0]) * LANES
            )

    def _check_order(
        self, instruction: Instruction, accumulators: range, fragments: range, w: Warps, warps: Numbers
    ) -> None:
        registers = frozenset((*accumulators, *fragments))
        for register in sorted(registers & self._fresh.keys()):
            for threads, writer in self._fresh[register].values():
                late = np.broadcast_to(threads & w.active, self._machine.shape)
                if late.any():
                    raise LaneFault(
                        f"works on R{register}, which {writer.text} at {writer.address:#06x} wrote behind "
                        "the last WARPGROUP.ARRIVE",
                        int(late.reshape(-1).argmax()),
                    )
        if self._busy.isdisjoint(registers):
            return
        self._check(frozenset(fragments), self._accumulators, "takes A from", "has not delivered", w)
        self._check(frozenset(accumulators), self._fragments, "accumulates into", "still reads", w)
        self._check_shape(accumulators, w)

    def _check_shape(self, accumulators: range, w: Warps) -> None:
        """Products follow each other on the same accumulators, and on no others that overlap."""
        marks = self._accumulators[accumulators.start : accumulators.stop]
        flying = marks >> INSTRUCTION_BITS > self._waited
        here = self._machine.warps_of(w)
        instructions = self._machine.program.listing.instructions
        for index in np.unique(marks[flying & here] & (1 << INSTRUCTION_BITS) - 1):
            if written_by(instructions[index]) != frozenset(accumulators):
                same = flying & here & (marks & (1 << INSTRUCTION_BITS) - 1 == index)
                register, warp = np.unravel_index(int(same.argmax()), same.shape)
                product = self._describe(int(index))
                raise LaneFault(
                    f"accumulates into R{accumulators.start + int(register)}, which {product}, of another "
                    "shape, has not delivered, since no WARPGROUP.DEPBAR has waited for it",
                    int(warp) * LANES,
                )

    def _describe(self, index: int) -> str:
        return self._machine.program.describe(index)
