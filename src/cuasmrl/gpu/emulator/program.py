"""A kernel made ready to execute: segments of steps, or a refusal that lists what is not supported."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

from cuasmrl.binary.sass import Instruction, Kind, Listing
from cuasmrl.errors import CuasmrlError
from cuasmrl.gpu.emulator import calls, phases  # noqa: F401  (declare transfers of their own)
from cuasmrl.gpu.emulator.constants import check_offset
from cuasmrl.gpu.emulator.control import Transfer, fall_through, is_transfer, transfer_of
from cuasmrl.gpu.emulator.faults import UnsupportedError
from cuasmrl.gpu.emulator.forms import Form, ReadMask, Step, mask_reader
from cuasmrl.gpu.emulator.semantics import step_of
from cuasmrl.gpu.emulator.semantics.bulk import finish_stores
from cuasmrl.gpu.emulator.semantics.copies import land
from cuasmrl.gpu.emulator.tensor_memory import TENSOR_MEMORY
from cuasmrl.gpu.emulator.warpgroups import PRODUCTS, products_of, read_by, written_by
from cuasmrl.gpu.emulator.warps import Warps
from cuasmrl.schedule import control_flow

if TYPE_CHECKING:
    from cuasmrl.gpu.emulator.machine import Machine

_NAMED_IN_A_REFUSAL = 12


@dataclass(frozen=True, slots=True)
class Segment:
    """Instructions that a group of threads executes without looking around."""

    start: int
    end: int
    steps: tuple[tuple[int, Step], ...]
    """Index of the instruction, and what it does; those without effect are left out."""
    transfer: Transfer
    transfers: bool
    """Is the last instruction one that decides where threads go?"""
    block: int
    """Number of the basic block these instructions belong to."""
    begins_block: bool

    def __len__(self) -> int:
        return self.end - self.start


@dataclass(frozen=True)
class Program:
    listing: Listing
    segments: dict[int, Segment]
    """By the index of their first instruction."""
    polling: frozenset[int]
    """Segments that look whether somebody else has changed memory: those of a spin lock."""
    has_products: bool
    """Are there products of warpgroups?"""
    has_tensor_memory: bool

    def describe(self, index: int) -> str:
        """An instruction in words."""
        return str(self.listing.instructions[index])


def load_program(listing: Listing) -> Program:
    """Bind every instruction to its semantics; raises with a list of those that have none."""
    builder = _Builder(listing)
    segments = builder.segments()
    if builder.refused:
        kernel = listing.kernel
        named = [f"{i.text} at {i.address:#06x} ({why})" for i, why in builder.refused[:_NAMED_IN_A_REFUSAL]]
        more = len(builder.refused) - len(named)
        raise CuasmrlError(
            f"Kernel {kernel.name} for sm_{kernel.arch} cannot be emulated; {len(builder.refused)} of its "
            f"instructions are not supported: {'; '.join(named)}{f'; and {more} more' if more else ''}."
        )
    polling = {
        start for start, s in segments.items() if any(map(_polls, listing.instructions[start : s.end]))
    }
    has_tensor_memory = any(i.opcode in TENSOR_MEMORY for i in listing.instructions)
    return Program(listing, segments, frozenset(polling), builder.has_products, has_tensor_memory)


def _polls(instruction: Instruction) -> bool:
    modifiers = instruction.modifiers
    if instruction.opcode in ("ATOM", "ATOMG", "ATOMS"):
        return "CAS" in modifiers or "CAST" in modifiers
    if instruction.opcode == "UTCATOMSWS":
        return "FIND_AND_SET" in modifiers
    if instruction.opcode == "SYNCS":
        return "PHASECHK" in modifiers and "TRYWAIT" not in modifiers
    return instruction.opcode in ("LD", "LDG") and "STRONG" in modifiers


def _scoreboards(instruction: Instruction) -> tuple[int, ...]:
    """Those that a DEPBAR without a count names: `{5,4,3}`."""
    sets = [operand.text for operand in instruction.operands if operand.kind is Kind.BARRIER_SET]
    return tuple(int(digit) for text in sets for digit in text if digit.isdigit())


class _Builder:
    def __init__(self, listing: Listing) -> None:
        self.listing = listing
        self.instructions = listing.instructions
        self.labels = {name: offset for offset, name in listing.kernel.entry_points}
        self.refused: list[tuple[Instruction, str]] = []
        self.copy_scoreboards = {
            i.control.write_barrier
            for i in self.instructions
            if i.opcode == "LDGDEPBAR" and i.control.write_barrier is not None
        }
        self.store_scoreboards = {
            i.control.read_barrier
            for i in self.instructions
            if i.opcode == "UTMACMDFLUSH" and i.control.read_barrier is not None
        }

        products = [i for i in self.instructions if i.opcode in PRODUCTS]
        self.has_products = any(i.opcode == "WARPGROUP" for i in self.instructions) or bool(products)
        self.product_registers = frozenset[int]().union(*(read_by(i) | written_by(i) for i in products))

    def segments(self) -> dict[int, Segment]:
        blocks = [block.start for block in control_flow(self.listing)]
        starts = sorted(
            {
                *blocks,
                *(i.index + 1 for i in self.instructions[:-1] if is_transfer(i)),
            }
        )
        ends = [*starts[1:], len(self.instructions)]
        return {start: self._segment(start, end, blocks) for start, end in zip(starts, ends, strict=True)}

    def _segment(self, start: int, end: int, blocks: list[int]) -> Segment:
        *inner, last = self.instructions[start:end]
        transfer = fall_through(end)
        if is_transfer(last) and not last.never_executes:
            transfer = self._transfer(last, end)
        elif not is_transfer(last):
            inner.append(last)
        steps = [(i.index, step) for i in inner if (step := self._step(i)) is not None]
        block = bisect_right(blocks, start) - 1
        return Segment(start, end, tuple(steps), transfer, is_transfer(last), block, blocks[block] == start)

    def _transfer(self, instruction: Instruction, end: int) -> Transfer:
        try:
            transfer = transfer_of(Form(instruction, self.labels))
        except UnsupportedError as error:
            self.refused.append((instruction, str(error)))
            return fall_through(end)
        for first in (self._watches(instruction), self._waits_for_copies(instruction)):
            transfer = transfer if first is None else after(first, transfer)
        return transfer

    def _step(self, instruction: Instruction) -> Step | None:
        waits = self._waits_for_copies(instruction)
        if instruction.never_executes or instruction.opcode in ("NOP", "YIELD"):
            return waits
        if instruction.opcode == "DEPBAR":
            return self._waits_for_groups(instruction, waits)
        try:
            for operand in instruction.operands:
                if operand.kind is Kind.CONSTANT and operand.bank is not None and operand.register is None:
                    check_offset(self.listing.kernel, operand.bank, operand.offset)
            step = step_of(Form(instruction, self.labels))
            watches = self._watches(instruction)
            step = step if watches is None else in_order(watches, step)
            if instruction.guard is not None and instruction.is_conditional:
                step = guarded(mask_reader(instruction.guard), step)
        except UnsupportedError as error:
            self.refused.append((instruction, str(error)))
            return None
        return step if waits is None else in_order(waits, step)

    def _watches(self, instruction: Instruction) -> Step | None:
        """Whoever touches a register that products work on may find one in flight."""
        if self.product_registers.isdisjoint((*read_by(instruction), *written_by(instruction))):
            return None
        if instruction.opcode in PRODUCTS:
            return None
        reads, writes = (
            registers & self.product_registers
            for registers in (read_by(instruction), written_by(instruction))
        )
        return lambda w: products_of(w).watch(instruction, reads, writes, w)

    def _waits_for_copies(self, instruction: Instruction) -> Step | None:
        """An instruction that waits for the scoreboard of copies or bulk stores waits for all of them."""
        boards = tuple(board for board in range(6) if instruction.control.wait_mask >> board & 1)
        return self._waits_for_boards(boards, 0)

    def _waits_for_groups(self, instruction: Instruction, waits: Step | None) -> Step | None:
        """DEPBAR: at most so many groups on one scoreboard, none on others."""
        board, count, also = instruction.depbar or (None, 0, _scoreboards(instruction))
        steps = [waits, self._waits_for_boards(also, 0)]
        if board is not None:
            steps.append(self._waits_for_boards((board,), count))
        found = [step for step in steps if step is not None]
        return reduce(in_order, found) if found else None

    def _waits_for_boards(self, boards: tuple[int, ...], in_flight: int) -> Step | None:
        """Other results than groups are there at once."""
        copies, stores = (
            not known.isdisjoint(boards) for known in (self.copy_scoreboards, self.store_scoreboards)
        )
        if copies and stores:
            return in_order(lambda w: land(w, in_flight), lambda w: finish_stores(w, in_flight))
        if copies:
            return lambda w: land(w, in_flight)
        return (lambda w: finish_stores(w, in_flight)) if stores else None


def guarded(condition: ReadMask, step: Step) -> Step:
    """Execute a step only where the guard holds."""

    def run(w: Warps) -> None:
        chosen = w.where(condition(w))
        if chosen is not None:
            step(chosen)

    return run


def in_order(first: Step, second: Step) -> Step:
    def run(w: Warps) -> None:
        first(w)
        second(w)

    return run


def after(first: Step, transfer: Transfer) -> Transfer:
    def run(machine: Machine, w: Warps) -> None:
        first(w)
        transfer(machine, w)

    return run
