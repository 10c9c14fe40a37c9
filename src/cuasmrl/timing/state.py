"""The state of an SM between two cycles."""

from typing import NamedTuple

import numpy as np

from cuasmrl.timing.code import Int
from cuasmrl.timing.columns import FAR, SUB_CORES, Core, Sm, Warp
from cuasmrl.timing.compiled import compiled
from cuasmrl.timing.machine import L1_WAYS, Machine
from cuasmrl.timing.waits import CONSTANT_LINES

_REGISTERS = 256
# Numba wants plain numbers for shapes.
_WARP_WIDTH, _CORE_WIDTH, _SM_WIDTH = int(Warp.WIDTH), int(Core.WIDTH), int(Sm.WIDTH)


class State(NamedTuple):
    warps: Int
    """Rows as in `Warp`; warp w belongs to sub-core w modulo 4."""
    results: Int
    """When the registers of each warp hold the results of tensor products, in sixteenths."""
    cores: Int
    sm: Int
    lines: Int
    """When the lines of each L0 instruction cache arrive, and below which lines they are."""
    held: Int
    constants: Int
    """When the lines of each constant cache arrive; FAR if nobody has asked."""
    tags: Int
    stamps: Int
    arrived: Int
    """Warps of each resident block that wait at its barrier."""
    alive: Int
    block_end: Int


@compiled
def empty_state(machine: Machine, resident: int, per_block: int, blocks: int) -> State:
    """Nothing has been launched, all caches are cold."""
    warps = np.zeros((resident * per_block, _WARP_WIDTH), np.int64)
    warps[:, Warp.READY] = FAR
    cores = np.zeros((SUB_CORES, _CORE_WIDTH), np.int64)
    cores[:, Core.LAST_ISSUE] = -1
    cores[:, Core.LAST_WARP] = -1
    cores[:, Core.LAST_TENSOR] = -1
    cores[:, Core.ACCEPTED] = -FAR
    cores[:, Core.CACHED : Core.QUEUE] = -1
    sm = np.zeros(_SM_WIDTH, np.int64)
    sm[Sm.ACCEPTED] = -FAR
    return State(
        warps,
        np.zeros((resident * per_block, _REGISTERS), np.int64),
        cores,
        sm,
        np.zeros((SUB_CORES, machine.l0_lines), np.int64),
        np.full((SUB_CORES, machine.l0_lines), -1, np.int64),
        np.full((SUB_CORES, CONSTANT_LINES), FAR, np.int64),
        np.full((machine.l1_sets, L1_WAYS, 2), -1, np.int64),
        np.zeros((machine.l1_sets, L1_WAYS), np.int64),
        np.zeros(resident, np.int64),
        np.zeros(resident, np.int64),
        np.zeros(blocks, np.int64),
    )
