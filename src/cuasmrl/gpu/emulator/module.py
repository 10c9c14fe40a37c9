"""A loaded module: where its code, its `__device__` data and the functions of the driver lie.

A kernel finds their addresses in a constant bank of its own (bank 4), which the loader fills in: relocations
say which symbol belongs to which place. What a kernel writes to `__device__` data is there at the next
launch of the same `Emulator`, as it would be for a module that stays loaded.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from cuasmrl.binary.cubin import Cubin, Kernel
from cuasmrl.binary.cubin.elf import Section, Symbol
from cuasmrl.binary.cubin.relocations import Relocation, relocations_of
from cuasmrl.errors import CuasmrlError

# Far above every address of the host, and therefore of every buffer.
LOCAL_WINDOW = 1 << 56
"""Generic addresses of the stack of a thread begin here."""
CODE = 2 << 56
"""Address of the first instruction of the kernel."""
_EXTERNALS = 3 << 56
PARAMETER_WINDOW = 0x5_0000_0000
"""Generic addresses of constant bank 0, where the parameters of a launch are, begin here."""
_DATA = 0x6_0000_0000
"""Addresses of `__device__` data, below those of buffers."""
_ALIGNMENT = 512
_GRANULE = 16
_WIDTHS = {1: 4, 2: 8, 3: 4, 4: 8}
"""R_CUDA_32, R_CUDA_64, R_CUDA_G32, R_CUDA_G64: plain and generic addresses, which are the same for data."""
_DATA_SECTIONS = (".nv.global.init", ".nv.global")
_BANKS = 18
"""Numbers that ptxas gives to banks are below this."""


class Data(NamedTuple):
    """A section of `__device__` variables in memory."""

    label: str
    address: int
    bytes: npt.NDArray[np.uint8]


@dataclass(frozen=True)
class Module:
    banks: dict[int, bytes]
    """What the cubin itself puts into constant banks 1 and up."""
    data: tuple[Data, ...]
    externals: tuple[str, ...]
    """Functions that the cubin leaves to the driver."""

    def external(self, address: int) -> str | None:
        """The function of the driver at an address."""
        number, rest = divmod(address - _EXTERNALS, 16)
        return self.externals[number] if rest == 0 and 0 <= number < len(self.externals) else None


def load_module(cubin: Cubin, kernel: Kernel) -> Module:
    """Place the data of a cubin, and fill in the addresses that a kernel of it asks for."""
    return _Loader(cubin, kernel).module()


class _Loader:
    def __init__(self, cubin: Cubin, kernel: Kernel) -> None:
        self.cubin = cubin
        self.kernel = kernel
        self.externals: list[str] = []
        self.places: dict[int, int] = {}
        """Address of each section of data."""

    def module(self) -> Module:
        sections = [s for s in self.cubin.sections if s.name in _DATA_SECTIONS and s.size]
        address = _DATA
        for section in sections:
            self.places[section.index] = address
            address += -(-section.size // _ALIGNMENT) * _ALIGNMENT + _ALIGNMENT
        data = tuple(
            Data(s.name, self.places[s.index], np.frombuffer(self._filled(s), np.uint8)) for s in sections
        )
        return Module(self._banks(), data, tuple(self.externals))

    def _banks(self) -> dict[int, bytes]:
        banks = {}
        for number in range(1, _BANKS):
            for name in (f".nv.constant{number}.{self.kernel.name}", f".nv.constant{number}"):
                section = self.cubin.section(name)
                if section is not None and section.size:
                    banks[number] = bytes(self._filled(section))
                    break
        return banks

    def _filled(self, section: Section) -> bytearray:
        """The bytes of a section with the addresses in their places, to the end of its last granule."""
        content = bytearray(self.cubin.bytes_of(section) if section.in_file else bytes(section.size))
        content += bytes(-len(content) % _GRANULE)
        for relocation in relocations_of(self.cubin, section):
            self._fill(content, section, relocation)
        return content

    def _fill(self, content: bytearray, section: Section, relocation: Relocation) -> None:
        width = _WIDTHS.get(relocation.type)
        if width is None:
            raise CuasmrlError(
                f"Kernel {self.kernel.name}: section {section.name} has a relocation of type "
                f"{relocation.type}, which the emulator does not know."
            )
        at = slice(relocation.offset, relocation.offset + width)
        addend = relocation.addend
        if addend is None:
            addend = int.from_bytes(content[at], "little")
        address = self._address(relocation.symbol) + addend
        content[at] = (address & (1 << 8 * width) - 1).to_bytes(width, "little")

    def _address(self, symbol: Symbol) -> int:
        if symbol.section in self.places:
            return self.places[symbol.section] + symbol.value
        if symbol.section == self.kernel.text.index:
            return CODE + symbol.value
        # A function of the driver, or one of another kernel's code: an error only if it is called.
        if symbol.name not in self.externals:
            self.externals.append(symbol.name)
        return _EXTERNALS + 16 * self.externals.index(symbol.name)
