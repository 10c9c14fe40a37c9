"""Calls, returns and jumps to addresses in registers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cuasmrl.binary.cubin import WORD_BYTES
from cuasmrl.binary.sass import File, Kind, Operand
from cuasmrl.gpu.emulator.control import Transfer, branch, chosen, condition_of, transfers
from cuasmrl.gpu.emulator.externals import call_external
from cuasmrl.gpu.emulator.faults import UnsupportedError
from cuasmrl.gpu.emulator.forms import Form, Step
from cuasmrl.gpu.emulator.module import CODE
from cuasmrl.gpu.emulator.semantics.registry import executes
from cuasmrl.gpu.emulator.values import join
from cuasmrl.gpu.emulator.warps import Warps

if TYPE_CHECKING:
    from cuasmrl.gpu.emulator.machine import Machine


@transfers("CALL")
def call(form: Form) -> Transfer:
    """A jump: with .NOINC the caller has put the return address into registers itself."""
    if not form.has("NOINC"):
        raise UnsupportedError("is a call through the hardware's return stack")
    if form.has("ABS"):
        return _jump_to_register(form, -CODE, 0)
    if not form.has("REL"):
        raise UnsupportedError("is a call that is neither relative nor absolute")
    return branch(form)


@transfers("RET", "BRX")
def indirect(form: Form) -> Transfer:
    """Jump to a base plus a register pair, which each thread may have different."""
    form.ignore("REL", "NODEC")
    position = _register_position(form)
    if form.has("ABS"):
        return _jump_to_register(form, form.immediate(position + 1) - CODE, position)
    return _jump_to_register(form, _base(form, form.operand(position + 1)), position)


def _register_position(form: Form) -> int:
    return next((k for k, o in enumerate(form.sources) if o.kind is Kind.REGISTER and not o.is_predicate), 0)


def _jump_to_register(form: Form, base: int, position: int) -> Transfer:
    """To the code, or out of it: to a function of the driver."""
    condition, following = condition_of(form), form.instruction.index + 1
    operand = form.operand(position)
    pair, register = form.registers(position, 2), operand.register
    if register is None or register.file is not File.R:
        raise UnsupportedError(f"jumps to {operand.text}")

    def transfer(machine: Machine, w: Warps) -> None:
        taken = chosen(machine, w, condition, following)
        if taken is None:
            return
        addresses = np.broadcast_to(join(*pair(w)), machine.shape)
        members = np.broadcast_to(taken, machine.shape)
        for address in np.unique(addresses[members]):
            those = members & (addresses == address)
            external = machine.env.module.external(int(address))
            if external is not None:
                call_external(machine, external, those)
            else:
                machine.go((int(address) + base) // WORD_BYTES, those)

    return transfer


def _base(form: Form, operand: Operand) -> int:
    if operand.kind is Kind.IMMEDIATE and isinstance(operand.value, int):
        return form.instruction.address + WORD_BYTES + operand.value
    if operand.label is not None and operand.label in form.labels:
        return form.labels[operand.label]
    raise UnsupportedError(f"jumps relative to {operand.text}")


@executes("LEPC")
def load_counter(form: Form) -> Step:
    """The address of a label, or of this instruction itself."""
    address = form.instruction.address
    if form.sources:
        form.operand(0)
        if form.instruction.target is None:
            raise UnsupportedError("takes the address of a place that is not in the kernel")
        address = form.instruction.target
    number = np.full((1, 1, 1), CODE + address, np.uint64)
    write = form.result_long()
    return lambda w: write(w, number)
