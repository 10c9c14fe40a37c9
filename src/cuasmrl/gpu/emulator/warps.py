"""The threads that execute one instruction together, and the registers they see."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from cuasmrl.gpu.emulator.values import FALSE, ZERO, Mask, Value

if TYPE_CHECKING:
    from cuasmrl.gpu.emulator.machine import Machine


@dataclass(slots=True)
class Registers:
    """The register files of a slab; RZ, PT and their uniform twins are never stored."""

    general: list[Value] = field(default_factory=lambda: [ZERO] * 256)
    uniform: list[Value] = field(default_factory=lambda: [ZERO] * 128)
    predicates: list[Mask] = field(default_factory=lambda: [FALSE] * 7)
    uniform_predicates: list[Mask] = field(default_factory=lambda: [FALSE] * 7)
    barriers: list[Value] = field(default_factory=lambda: [ZERO] * 16)
    """B0..B15: a bit for each lane that will meet at a BSYNC.

    Every lane keeps what it noted itself, so that lanes that have parted may use one register for two
    regions at a time, in whatever order they execute.
    """


class Warps:
    """A set of threads at one program counter.

    `active` are the threads that execute. `written` is where results go: None means everywhere, because
    no living thread is anywhere else and what dead threads hold does not matter.
    """

    __slots__ = ("active", "machine", "registers", "written")

    def __init__(self, machine: Machine, registers: Registers, active: Mask, written: Mask | None) -> None:
        self.machine = machine
        self.registers = registers
        self.active = active
        self.written = written

    def where(self, condition: Mask) -> Warps | None:
        """Those threads for which the condition holds; None if there are none."""
        if condition.size == 1:
            return self if condition.item() else None
        active = self.active & condition
        if not active.any():
            return None
        if condition.all():
            return self
        return Warps(self.machine, self.registers, active, active)

    def set(self, index: int, value: Value) -> None:
        general = self.registers.general
        general[index] = value if self.written is None else np.where(self.written, value, general[index])

    def set_uniform(self, index: int, value: Value) -> None:
        uniform = self.registers.uniform
        written = self.written_warps()
        uniform[index] = value if written is None else np.where(written, value, uniform[index])

    def set_predicate(self, index: int, value: Mask) -> None:
        predicates = self.registers.predicates
        predicates[index] = (
            value if self.written is None else np.where(self.written, value, predicates[index])
        )

    def set_uniform_predicate(self, index: int, value: Mask) -> None:
        predicates = self.registers.uniform_predicates
        written = self.written_warps()
        predicates[index] = value if written is None else np.where(written, value, predicates[index])

    def set_barrier(self, index: int, lanes: Value) -> None:
        barriers = self.registers.barriers
        barriers[index] = lanes if self.written is None else np.where(self.written, lanes, barriers[index])

    def written_warps(self) -> Mask | None:
        """`written` for uniform registers, which a warp has once: where any of its lanes executes."""
        if self.written is None or self.written.shape[2] == 1:
            return self.written
        return np.logical_or.reduce(self.written, axis=2, keepdims=True)

    def constant(self, bank: int, offset: int) -> Value:
        """A word of a constant bank."""
        return self.machine.constants.word(bank, offset)
