"""Waiting for a phase of an mbarrier: SYNCS.PHASECHK."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cuasmrl.gpu.emulator.addresses import near
from cuasmrl.gpu.emulator.control import Transfer, chosen, condition_of, transfers
from cuasmrl.gpu.emulator.faults import UnsupportedError
from cuasmrl.gpu.emulator.forms import Form
from cuasmrl.gpu.emulator.mbarriers import Wait
from cuasmrl.gpu.emulator.values import LANES, Mask
from cuasmrl.gpu.emulator.warps import Warps

if TYPE_CHECKING:
    from cuasmrl.gpu.emulator.machine import Machine

_PARITY = np.uint32(0x8000_0000)


@transfers("SYNCS.PHASECHK")
def check_phase(form: Form) -> Transfer:
    """Has the phase ended whose parity is in the top bit of the register?

    With .TRYWAIT hardware suspends the thread for a time of its own choice: here until the phase has ended.
    """
    form.choose("PHASECHK")
    form.choose("TRANS64")
    waits = form.has("TRYWAIT")
    address, parity = near(form, 0), form.integer(1)
    write = form.result_predicate(0)
    if write is None:
        raise UnsupportedError("has no result")
    condition, following = condition_of(form), form.instruction.index + 1

    def transfer(machine: Machine, w: Warps) -> None:
        taken = chosen(machine, w, condition, following)
        if taken is None:
            return
        threads = np.broadcast_to(taken, machine.shape)
        addresses = np.broadcast_to(address(w), machine.shape)
        parities = np.broadcast_to(parity(w) & _PARITY != 0, machine.shape)

        def passed(some: Mask) -> None:
            write(Warps(machine, w.registers, some, some), some)

        recorder = machine.recorder
        visits = None if recorder is None else recorder.positions(np.arange(machine.slab.size // LANES))
        wait = Wait(threads, addresses, parities, following, passed, visits)
        if waits:
            machine.mbarriers.wait(wait)
        else:
            ended = machine.mbarriers.ended(wait)
            write(Warps(machine, w.registers, threads, threads), ended)
            machine.go(following, threads)

    return transfer
