"""Registers that hold nothing: what was read from shared or tensor memory that nobody had written.

Compilers read such memory where the value does not matter: a guarded store was skipped, and what is read is
overwritten or selected away. So the read is no fault, the use is: as data of a store to global memory, as an
address, as a condition. Nothing is tracked before the first such read, and nothing once all of its registers
have been overwritten. In between, an instruction gives undefined results where a source is undefined.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from cuasmrl.binary.sass import File, Instruction, Kind, Operand, Pipe, Space, file_of, name_of
from cuasmrl.gpu.emulator.addresses import near
from cuasmrl.gpu.emulator.faults import LaneFault
from cuasmrl.gpu.emulator.forms import Form, Step, mask_reader
from cuasmrl.gpu.emulator.semantics.lanes import lanes_read
from cuasmrl.gpu.emulator.semantics.memory import access_size
from cuasmrl.gpu.emulator.values import Mask
from cuasmrl.gpu.emulator.warps import Warps

if TYPE_CHECKING:
    from cuasmrl.gpu.emulator.machine import Machine

_TOGETHER = (Pipe.TENSOR, Pipe.ASYNC)
"""Matrix products: what one lane holds goes into the results of others."""
_SELECTS = ("SEL", "FSEL", "USEL", "UFSEL")


@dataclass(frozen=True, slots=True)
class _Source:
    """Where a value that is not there should have come from."""

    instruction: Instruction
    place: str
    address: int

    def __str__(self) -> str:
        where = f"{self.instruction.text} at {self.instruction.address:#06x}"
        return f"{where} read from {self.place} {self.address:#x}, never written"


class Undefined:
    """The undefined registers of a slab; false if there are none."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._lanes: dict[int, Mask] = {}
        """By register: the threads in which it is undefined."""
        self._sources: dict[int, _Source] = {}

    def __bool__(self) -> bool:
        return bool(self._lanes)

    def begin(
        self,
        instruction: Instruction,
        missing: npt.NDArray[np.bool_],
        address: int,
        place: str = "shared memory at",
    ) -> None:
        """A load has read nothing, in these threads of each of its registers."""
        registers = [d.register for d in instruction.defs if file_of(d.register) is File.R]
        for register, threads in zip(registers, missing, strict=False):
            if threads.any():
                self._lanes[register] = self._of(register) | threads.reshape(self._machine.shape)
                self._sources[register] = _Source(instruction, place, address)

    def execute(self, instruction: Instruction, step: Step, w: Warps) -> None:
        """Execute a step, and follow what is undefined."""
        touched = [u.register for u in instruction.uses if u.register in self._lanes]
        written = [d.register for d in instruction.defs if d.register in self._lanes or touched]
        if not touched and not written:
            step(w)
            return
        guard = instruction.guard
        active = np.broadcast_to(w.active, self._machine.shape)
        undecided = self._union(_guards(instruction)) & active
        if guard is not None and instruction.is_conditional:
            active = active & np.broadcast_to(mask_reader(guard)(w), active.shape)
        if _has_effects(instruction):
            self._refuse_effects(instruction, touched, active, undecided)
            results: dict[int, Mask] = {}
        else:
            results = self._results(instruction, written, w, active)
        source = next((self._sources[r] for r in touched), None)
        stored = self._stored(instruction, active)
        for register in written:
            self._set(register, active | undecided, results.get(register), undecided, source)
        step(w)
        if stored is not None:
            self._forget(instruction, w, stored)

    def check_transfer(self, instruction: Instruction, w: Warps) -> None:
        """Raise if where threads go hangs on a register that is undefined in them."""
        for use in instruction.uses:
            if use.register in self._lanes:
                self._refuse(use.register, np.broadcast_to(w.active, self._machine.shape))

    def forget_dead(self) -> None:
        """Those of threads that are done, or have been overwritten, do not matter."""
        for register, threads in list(self._lanes.items()):
            if not (threads & self._machine.living).any():
                del self._lanes[register], self._sources[register]

    def _of(self, register: int) -> Mask:
        return self._lanes.get(register, np.zeros(self._machine.shape, np.bool_))

    def _union(self, registers: list[int]) -> Mask:
        found: Mask = np.zeros(self._machine.shape, np.bool_)
        for register in registers:
            if register in self._lanes:
                found = found | self._lanes[register]
        return found

    def _set(
        self, register: int, active: Mask, result: Mask | None, undecided: Mask, source: _Source | None
    ) -> None:
        if file_of(register) in (File.UR, File.UP):
            active = np.logical_or.reduce(active, axis=2, keepdims=True)
        lanes: Mask = (self._of(register) & ~active) | undecided
        if result is not None:
            lanes = lanes | (result & active)
        if lanes.any():
            self._lanes[register] = lanes
            self._sources[register] = source or self._sources[register]
        else:
            self._lanes.pop(register, None)
            self._sources.pop(register, None)

    def _results(
        self, instruction: Instruction, written: list[int], w: Warps, active: Mask
    ) -> dict[int, Mask]:
        """Threads in which what an instruction writes is undefined."""
        declaration = instruction.declaration
        guards = _guards(instruction)
        sources = [u.register for u in instruction.uses if u.register not in guards]
        if instruction.opcode in _SELECTS and "64" not in instruction.modifiers:
            return dict.fromkeys(written, self._selected(instruction, w))
        if instruction.opcode == "SHFL":
            return dict.fromkeys(written, self._shuffled(instruction, w))
        if declaration is None or declaration.warp_wide or declaration.pipe in _TOGETHER:
            among = self._union(sources) & active
            return dict.fromkeys(written, np.broadcast_to(among.any(axis=2, keepdims=True), active.shape))
        return {register: _per_warp(register, self._union(sources), active) for register in written}

    def _selected(self, instruction: Instruction, w: Warps) -> Mask:
        form = Form(instruction)
        condition = np.broadcast_to(form.predicate(2)(w), self._machine.shape)
        first, second, choice = (self._union(_registers(form.operand(k))) for k in range(3))
        return np.where(condition, first, second) | choice

    def _shuffled(self, instruction: Instruction, w: Warps) -> Mask:
        form = Form(instruction)
        value, *others = (self._union(_registers(form.operand(k))) for k in range(3))
        return lanes_read(form, w, value) | others[0] | others[1]

    def _refuse_effects(
        self, instruction: Instruction, touched: list[int], active: Mask, undecided: Mask
    ) -> None:
        for register in _guards(instruction):
            if register in self._lanes:
                self._refuse(register, undecided)
        data = _data(instruction) if instruction.opcode == "STS" else ()
        for register in touched:
            if register not in data and register not in _guards(instruction):
                self._refuse(register, active)

    def _refuse(self, register: int, active: Mask) -> None:
        threads = self._lanes[register] & active
        if threads.any():
            raise LaneFault(
                f"uses {name_of(register)}, which {self._sources[register]}",
                int(threads.reshape(-1).argmax()),
            )

    def _stored(self, instruction: Instruction, active: Mask) -> list[Mask] | None:
        """The undefined threads of each word that goes to shared memory; None if all are defined."""
        if instruction.opcode != "STS":
            return None
        stored = [self._of(register) & active for register in _data(instruction)]
        return stored if any(threads.any() for threads in stored) else None

    def _forget(self, instruction: Instruction, w: Warps, stored: list[Mask]) -> None:
        """Shared memory that was overwritten by nothing is as if nobody had written it."""
        form, slab = Form(instruction), self._machine.slab
        address = slab.flat(near(form, 0)(w))
        size, _ = access_size(form)
        for k, threads in enumerate(stored):
            self._machine.shared.forget(address + 4 * k, slab.flat(threads), min(size, 4))


def _per_warp(register: int, threads: Mask, active: Mask) -> Mask:
    if file_of(register) in (File.UR, File.UP):
        return np.broadcast_to((threads & active).any(axis=2, keepdims=True), threads.shape)
    return threads


def _guards(instruction: Instruction) -> list[int]:
    guard = instruction.guard
    return _registers(guard) if guard is not None else []


def _registers(operand: Operand) -> list[int]:
    if operand.kind is not Kind.REGISTER or operand.register is None:
        return []
    return list(operand.register.resources())


def _data(instruction: Instruction) -> tuple[int, ...]:
    """The registers that a store to shared memory writes down, in order."""
    form = Form(instruction)
    size, _ = access_size(form)
    register = instruction.operands[1].register
    return tuple(register.resources(max(1, size // 4))) if register is not None else ()


def _has_effects(instruction: Instruction) -> bool:
    """Does it do more than to write registers? Loads do: a wrong address is a fault."""
    declaration = instruction.declaration
    if declaration is None:
        return False
    touches = declaration.reads or declaration.writes
    return isinstance(touches, Space) or not instruction.defs
