"""A few instructions, written by hand, on a machine whose registers and memory a test can see."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from cuasmrl.gpu.emulator.constants import Constants
from cuasmrl.gpu.emulator.global_memory import GlobalMemory
from cuasmrl.gpu.emulator.machine import Environment, Machine
from cuasmrl.gpu.emulator.module import Module
from cuasmrl.gpu.emulator.program import load_program
from cuasmrl.gpu.launches.launch import Launch
from tests.assembly import listing

PLAIN = "B------:R-:W-:-:S01"


def machine(
    *lines: str,
    warps: int = 4,
    blocks: int = 1,
    shared: int = 4096,
    arch: int = 90,
    arrays: Mapping[str, npt.NDArray[Any]] | None = None,
    written: bool = True,
) -> Machine:
    """Ready to run; control bits in front of an instruction are optional, and EXIT follows.

    Shared memory counts as written unless told otherwise.
    """
    full = [line if line.startswith(("B-", "B0", ".L")) else f"{PLAIN}  {line}" for line in (*lines, "EXIT")]
    launch = Launch((blocks, 1, 1), (32 * warps, 1, 1), 0, ())
    env = Environment(
        launch,
        GlobalMemory(dict(arrays or {})),
        Constants({0: bytes(0x400)}),
        Module({}, (), ()),
        shared,
        0,
        100_000,
        132,
    )
    made = Machine(load_program(listing("\n".join(full), arch, 255)), env, np.arange(blocks))
    if written:
        made.shared.tags[:] = 15
    return made


def zeros(size: int, alignment: int) -> npt.NDArray[np.uint8]:
    """Memory at a multiple of the alignment: what is not aligned for wide accesses is copied for a launch."""
    room = np.zeros(size + alignment - 1, np.uint8)
    skip = -room.ctypes.data % alignment
    return room[skip : skip + size]


def set_uniform(made: Machine, first: int, *words: int) -> None:
    """The same in all warps."""
    for k, word in enumerate(words):
        made.registers.uniform[first + k] = np.full((1, 1, 1), word & 0xFFFF_FFFF, np.uint32)


def set_pair(made: Machine, first: int, *pairs: int) -> None:
    """64-bit numbers in uniform registers."""
    set_uniform(made, first, *(word for pair in pairs for word in (pair & 0xFFFF_FFFF, pair >> 32)))


def general(made: Machine, first: int, count: int) -> npt.NDArray[np.uint32]:
    """Registers (registers, warps of the slab, 32)."""
    values = [np.broadcast_to(v, made.shape) for v in made.registers.general[first : first + count]]
    return np.stack(values).reshape(count, -1, 32)
