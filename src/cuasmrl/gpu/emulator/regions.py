"""Stretches of global memory: the bytes of one buffer at a virtual address.

Allocators give out whole granules (cudaMalloc 256 bytes, torch 512), so the words in which a buffer begins
and ends may be read and exchanged whole, as 16-bit atomics do by a compare-and-swap. What lies around the
buffer in those words reads as zero here and must not change. Everything beyond them is out of bounds.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from cuasmrl.gpu.emulator.access import Window

Bytes: TypeAlias = npt.NDArray[np.uint8]

WORD = 4
_WIDEST_ACCESS = 16


@dataclass(frozen=True, slots=True)
class Region:
    """One stretch of memory that a kernel may touch."""

    base: int
    """Virtual address of the first byte of `data`, aligned for every access."""
    start: int
    """Virtual address of the first byte of the buffer."""
    limit: int
    """Behind its last byte."""
    data: Bytes
    writable: bool
    label: str
    owner: Bytes
    """The bytes of the buffer; `data` is a padded copy where they do not fill whole words."""

    @property
    def is_copy(self) -> bool:
        return self.data is not self.owner

    @property
    def first_word(self) -> int:
        return self.start // WORD * WORD

    def reach(self, size: int) -> tuple[int, int]:
        """Where accesses of a size may lie: those inside of a word need to touch one byte of the buffer."""
        beyond = size - 1 if size <= WORD else 0
        return self.start - beyond, self.limit + beyond

    def window(self, unit: type) -> Window:
        size = np.dtype(unit).itemsize
        return Window(self.data[: self.data.size // size * size].view(unit), self.base, 0, 0)

    def padding_changed(self) -> bool:
        """Was anything written into the words around the buffer?"""
        if not self.is_copy:
            return False
        front, back = self.start - self.base, self.limit - self.base
        return bool(self.data[:front].any() or self.data[back:].any())

    def moved(self, distance: int) -> Region:
        """The same bytes at another address as well."""
        return replace(
            self, base=self.base + distance, start=self.start + distance, limit=self.limit + distance
        )

    def finish(self) -> None:
        """Give the caller what the kernel wrote."""
        if self.is_copy and self.writable:
            self.owner[:] = self.data[self.start - self.base : self.limit - self.base]


def regions_of(host: int, size: int, address: int, writable: bool, label: str) -> Iterator[Region]:
    """The bytes of the host at an address that is aligned as they are.

    Most buffers are one region of host memory. One that is not aligned for wide accesses is copied, and of
    one that ends within a word that word.
    """
    lead = host % _WIDEST_ACCESS
    whole = 0 if lead else size // WORD * WORD
    if whole:
        owner = bytes_at(host, whole)
        yield Region(address, address, address + whole, owner, writable, label, owner)
    if whole < size:
        owner = bytes_at(host + whole, size - whole)
        data = np.zeros(-(-(lead + owner.size) // WORD) * WORD, np.uint8)
        data[lead : lead + owner.size] = owner
        first = address + whole
        yield Region(first - lead, first, first + owner.size, data, writable, label, owner)


def alignment_of(host: int) -> int:
    """Bytes by which an address of the host misses the alignment of the widest access."""
    return host % _WIDEST_ACCESS


def bytes_at(address: int, size: int) -> Bytes:
    if size == 0:
        return np.zeros(0, np.uint8)
    return np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(address))
