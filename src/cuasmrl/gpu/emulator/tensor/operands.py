"""Matrix operands in shared memory: where a descriptor says that the elements of A and B lie.

The tables give, for every register and lane of the fragments that tensor cores work on, the place of its
bytes in shared memory (docs/gpu/tensor-cores.md). A row of K is always 32 bytes, so that a register of a
fragment whose operand is stored along K is one word of memory; stored across K it is one element at a time.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt
from numba import njit

GRANULE = 16
"""Bytes that are moved as one: swizzles permute them."""
_ROW_BYTES = 32
_HALF = 2
_SWIZZLES = {0: 0, 2: 128, 4: 64, 6: 32}
_LANE = np.arange(32)


@dataclass(frozen=True)
class Descriptor:
    """An operand in shared memory; offsets in bytes."""

    start: int
    leading: int
    stride: int
    swizzle: int
    """Width of the pattern of granules in bytes: 128, 64, 32, or 0 for none."""


def decode_warpgroup_descriptor(bits: int) -> Descriptor:
    """The 64 bits of a wgmma descriptor (PTX ISA, matrix descriptor); ValueError for what has no model."""
    if bits >> 49 & 7:
        raise ValueError(f"the matrix descriptor {bits:#x} has a base offset, which has no model")
    swizzle = (0, 128, 64, 32)[bits >> 62]
    return Descriptor(_field(bits, 0), _field(bits, 16), _field(bits, 32), swizzle)


def decode_tensor_core_descriptor(bits: int) -> Descriptor:
    """The 64 bits of a tcgen05 descriptor (PTX ISA, shared memory descriptor), as for wgmma.

    Its swizzle has a bit more, and bits 46 to 48 say that it is one of these.
    """
    swizzle = _SWIZZLES.get(bits >> 61)
    if bits >> 46 & 7 != 1 or bits >> 49 & 0xF or swizzle is None:
        raise ValueError(
            f"the matrix descriptor {bits:#x} has a version, base offset, offset mode or swizzle that has no "
            "model"
        )
    return Descriptor(_field(bits, 0), _field(bits, 16), _field(bits, 32), swizzle)


def _field(bits: int, lowest: int) -> int:
    return (bits >> lowest & 0x3FFF) * GRANULE


@dataclass(frozen=True, eq=False)
class Table:
    """Where the registers of an operand's fragments come from."""

    units: npt.NDArray[np.int64]
    """By register, fragment, lane and part: words, or the elements of a word, counted from the first."""

    @property
    def unit_bytes(self) -> int:
        return 4 // int(self.units.shape[3])

    @cached_property
    def granules(self) -> npt.NDArray[np.int64]:
        """Those that are read."""
        return np.unique(self.units * self.unit_bytes // GRANULE)


@lru_cache(maxsize=1 << 12)
def table_of_a(descriptor: Descriptor, across: bool, rows: int, element: int = _HALF) -> Table:
    """Fragments of 16 rows. `across` means stored across K; `element` is the size of one in bytes."""
    register, fragment, lane = np.arange(4), np.arange(rows // 16), _LANE
    row = 16 * fragment[None, :, None] + lane // 4 + 8 * (register % 2)[:, None, None]
    return _table(descriptor, across, row, lane % 4 + 4 * (register // 2)[:, None, None], element)


@lru_cache(maxsize=1 << 12)
def table_of_b(descriptor: Descriptor, across: bool, columns: int, element: int = _HALF) -> Table:
    """Fragments of 8 columns."""
    register, fragment, lane = np.arange(2), np.arange(columns // 8), _LANE
    column = 8 * fragment[None, :, None] + lane // 4 + 0 * register[:, None, None]
    return _table(descriptor, across, column, lane % 4 + 4 * register[:, None, None], element)


def _table(
    descriptor: Descriptor,
    across: bool,
    line: npt.NDArray[np.int64],
    word: npt.NDArray[np.int64],
    element: int,
) -> Table:
    """`line` counts rows of A or columns of B, `word` those of the 32 bytes along K."""
    line, word = np.broadcast_arrays(line, word)
    if not across:
        return Table(_address(descriptor, line, 4 * word)[..., None] // 4)
    together = 4 // element
    k = together * word[..., None] + np.arange(together)
    return Table(_address_across(descriptor, element * line[..., None], k) // element)


def _address(
    d: Descriptor, line: npt.NDArray[np.int64], byte: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    at = d.start + line // 8 * d.stride
    if d.swizzle:
        return swizzled(at + line % 8 * d.swizzle + byte, d.swizzle)
    return at + line % 8 * GRANULE + byte // GRANULE * d.leading + byte % GRANULE


def _address_across(
    d: Descriptor, byte: npt.NDArray[np.int64], k: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    if d.swizzle:
        at = d.start + byte // d.swizzle * d.leading + byte % d.swizzle
        return swizzled(at + k // 8 * d.stride + k % 8 * d.swizzle, d.swizzle)
    at = d.start + byte // GRANULE * d.stride + byte % GRANULE
    return at + k % 8 * GRANULE + k // 8 * d.leading


def swizzled(address: npt.NDArray[np.int64], width: int) -> npt.NDArray[np.int64]:
    """Bits 4 to 6 (128 bytes), 4 and 5 (64) or 4 (32) change with those three places higher."""
    return address ^ (address >> 3 & width - GRANULE)


@njit(cache=True)
def gather(units, firsts, table, fragments, out):  # type: ignore[no-untyped-def]
    """Fragments of an operand for several blocks: those of block i go to `fragments[i]` and on."""
    registers, count, lanes, parts = table.shape
    for i in range(firsts.size):
        for register in range(registers):
            for fragment in range(count):
                for lane in range(lanes):
                    word = np.uint32(0)
                    for part in range(parts):
                        unit = np.uint32(units[firsts[i] + table[register, fragment, lane, part]])
                        word |= unit << np.uint32(32 // parts * part)
                    out[register, fragments[i] + fragment, lane] = word
