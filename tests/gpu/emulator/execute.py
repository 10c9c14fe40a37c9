"""Run a single instruction on hand-made registers: one block, one warp, 32 lanes."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from cuasmrl.binary.sass.instruction import parse_instruction
from cuasmrl.gpu.emulator.forms import Form
from cuasmrl.gpu.emulator.semantics import step_of
from cuasmrl.gpu.emulator.values import Mask, Value
from cuasmrl.gpu.emulator.warps import Registers, Warps

Number = int | float | Sequence[int] | npt.NDArray[Any]


class FakeConstants:
    def __init__(self, words: Mapping[int, int]) -> None:
        self.words = words

    def word(self, bank: int, offset: int) -> Value:
        assert bank == 0
        return np.full((1, 1, 1), self.words[offset], np.uint32)


class FakeMachine:
    """What an instruction may ask its machine when it touches registers only."""

    def __init__(self, constants: Mapping[int, int]) -> None:
        self.constants = FakeConstants(constants)
        self.shape = (1, 1, 32)


class Lanes:
    """Registers after an instruction, by name: `after["R4"]` are 32 numbers, `after["P0"]` 32 booleans."""

    def __init__(self, registers: Registers) -> None:
        self.registers = registers

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        file, index = _split(name)
        values: list[Any] = getattr(self.registers, _FILES[file])
        return np.array(np.broadcast_to(values[index], (1, 1, 32))[0, 0])

    def one(self, name: str) -> int:
        """The value that all lanes share."""
        values = self[name]
        assert (values == values[0]).all(), values
        return int(values[0])

    def single(self, name: str) -> float:
        return float(np.uint32(self.one(name)).view(np.float32))

    def long(self, name: str) -> int:
        file, index = _split(name)
        return self.one(name) | self.one(f"{file}{index + 1}") << 32

    def double(self, name: str) -> float:
        return float(np.uint64(self.long(name)).view(np.float64))


_FILES = {
    "R": "general",
    "UR": "uniform",
    "P": "predicates",
    "UP": "uniform_predicates",
    "B": "barriers",
}


def execute(
    text: str,
    arch: int = 80,
    constants: Mapping[int, int] | None = None,
    active: Sequence[bool] | None = None,
    **registers: Number,
) -> Lanes:
    """Execute one instruction; a float sets the bits of a float32, a sequence one value per lane.

    `R2=5` sets one register, `R2_long=1 << 40` and `R2_double=0.5` a pair, `P0=True` a predicate.
    """
    state = Registers()
    for name, number in registers.items():
        _set(state, name, number)
    mask: Mask | None = None if active is None else np.array(active, np.bool_).reshape(1, 1, 32)
    machine: Any = FakeMachine(constants or {})
    warps = Warps(machine, state, np.ones((1, 1, 1), np.bool_) if mask is None else mask, mask)
    instruction = parse_instruction(0, bytes(16), text, arch, 255, {})
    with np.errstate(all="ignore"):
        step_of(Form(instruction))(warps)
    return Lanes(state)


def _split(name: str) -> tuple[str, int]:
    match = re.fullmatch(r"(UR|UP|R|P|B)(\d+)", name)
    assert match is not None, name
    return match[1], int(match[2])


def _set(state: Registers, name: str, number: Number) -> None:
    name, _, kind = name.partition("_")
    file, index = _split(name)
    values: list[Any] = getattr(state, _FILES[file])
    if file in ("P", "UP"):
        values[index] = _shaped(np.array(number, np.bool_))
    elif kind in ("long", "double"):
        wide = np.array(number, np.float64 if kind == "double" else np.uint64).view(np.uint64)
        values[index] = _shaped((wide & np.uint64(0xFFFF_FFFF)).astype(np.uint32))
        values[index + 1] = _shaped((wide >> np.uint64(32)).astype(np.uint32))
    else:
        values[index] = _shaped(_bits(number))


def _bits(number: Number) -> npt.NDArray[np.uint32]:
    if isinstance(number, float) or (isinstance(number, np.ndarray) and number.dtype.kind == "f"):
        return np.array(number, np.float32).view(np.uint32)
    return (np.array(number, np.int64) & 0xFFFF_FFFF).astype(np.uint32)


def _shaped(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return values.reshape((1, 1, values.size))
