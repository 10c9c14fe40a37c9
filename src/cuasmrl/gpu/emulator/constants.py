"""Constant banks: launch dimensions and parameters in bank 0, compiler and user constants in the others."""

from dataclasses import dataclass, field

import numpy as np

from cuasmrl.binary.cubin import Kernel
from cuasmrl.errors import CuasmrlError
from cuasmrl.gpu.emulator.faults import UnsupportedError
from cuasmrl.gpu.emulator.module import LOCAL_WINDOW, PARAMETER_WINDOW
from cuasmrl.gpu.emulator.values import Value, constant
from cuasmrl.gpu.launches.launch import Launch


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the driver puts what a kernel has not declared itself; offsets in bank 0.

    Seen in the code that ptxas emits for each ABI: block dimensions where blockDim is read, and so on.
    """

    block: int
    grid: int
    stack: int
    """The top of a thread's local memory, the first value of R1."""
    window: int
    """Eight bytes: the generic address at which local memory begins."""
    descriptor: int
    """Eight bytes that every global access carries along; they do not change the address."""
    parameters: int | None
    """Eight bytes: the generic address of the parameters; None where no code has been seen to ask for it."""

    def known(self) -> set[int]:
        words = {base + 4 * i for base in (self.block, self.grid) for i in range(3)}
        wide = (self.window, self.descriptor, *([] if self.parameters is None else [self.parameters]))
        return words | {self.stack} | {base + 4 * i for base in wide for i in range(2)}


# By the start of the parameter area, which each ABI has in another place.
_LAYOUTS = {
    0x160: Layout(block=0x0, grid=0xC, stack=0x28, window=0x20, descriptor=0x118, parameters=None),
    0x210: Layout(block=0x0, grid=0xC, stack=0x28, window=0x20, descriptor=0x208, parameters=0x198),
    0x380: Layout(block=0x360, grid=0x370, stack=0x37C, window=0x2F8, descriptor=0x358, parameters=0x348),
}


def layout_of(kernel: Kernel) -> Layout:
    """The driver's part of bank 0 for this kernel; without parameters its chip decides."""
    base = kernel.parameter_base or (0x160 if kernel.arch < 90 else 0x210 if kernel.arch < 100 else 0x380)
    if base not in _LAYOUTS:
        raise CuasmrlError(f"Kernel {kernel.name} has its parameters at {base:#x}, a layout not known here.")
    return _LAYOUTS[base]


def check_offset(kernel: Kernel, bank: int, offset: int) -> None:
    """Refuse a read of what only the driver knows: its part of bank 0."""
    if bank == 0 and offset < kernel.parameter_base and offset not in layout_of(kernel).known():
        raise UnsupportedError(f"c[0x0][{offset:#x}] is set by the driver in a way not known here")


@dataclass(slots=True)
class Constants:
    """The banks of one launch."""

    banks: dict[int, bytes]
    _words: dict[tuple[int, int], Value] = field(default_factory=dict)

    def word(self, bank: int, offset: int) -> Value:
        key = (bank, offset)
        if key not in self._words:
            data = self.banks.get(bank, b"")[offset : offset + 4] if offset >= 0 else b""
            if len(data) < 4:
                raise ValueError(f"reads c[{bank:#x}][{offset:#x}], beyond the end of the bank")
            self._words[key] = constant(int.from_bytes(data, "little"))
        return self._words[key]

    def bank(self, number: int) -> np.ndarray:
        return np.frombuffer(self.banks.get(number, b""), np.uint8)


def launch_bank(kernel: Kernel, launch: Launch, stack_top: int, parameters: bytes) -> bytes:
    """Bank 0 of one launch."""
    layout = layout_of(kernel)
    size = max(kernel.parameter_base + len(parameters), 0x380 + 4)
    bank = bytearray(-(-size // 16) * 16)

    def put(offset: int, *numbers: int) -> None:
        for i, number in enumerate(numbers):
            bank[offset + 4 * i : offset + 4 * i + 4] = (number & 0xFFFF_FFFF).to_bytes(4, "little")

    put(layout.block, *launch.block)
    put(layout.grid, *launch.grid)
    put(layout.stack, stack_top)
    put(layout.window, LOCAL_WINDOW & 0xFFFF_FFFF, LOCAL_WINDOW >> 32)
    if layout.parameters is not None:
        address = PARAMETER_WINDOW + kernel.parameter_base
        put(layout.parameters, address & 0xFFFF_FFFF, address >> 32)
    bank[kernel.parameter_base : kernel.parameter_base + len(parameters)] = parameters
    return bytes(bank)
