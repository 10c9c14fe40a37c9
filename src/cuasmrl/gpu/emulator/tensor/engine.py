"""Products of the tensor core beside the warps (tcgen05): which there are, and how they come apart.

Rows of A and of the sums lie in the lanes of tensor memory: of 128 rows each has a lane of its own, of 64
rows sixteen lie in every quarter. The product is made of tiles of 16 by 8, which warp-level instructions
make as well (docs/gpu/tensor-cores.md).
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from cuasmrl.gpu.emulator.tensor import multiply_fragments
from cuasmrl.gpu.emulator.tensor.forms import BITS, MatrixForm, accumulations

_COLUMNS = 8
_TILE_ROWS = 16
_ROW_WORDS = 8
"""K of one instruction, in words of A."""
_SIGNS = {"F16": 0x8000_8000, "BF16": 0x8000_8000, "TF32": 0x8000_0000, "E4M3": 0x8080_8080,
          "E5M2": 0x8080_8080}  # fmt: skip
_TYPES = {"UTCHMMA": {0: "F16", 1: "BF16", 2: "TF32"}, "UTCQMMA": {0: "E4M3", 1: "E5M2"},
          "UTCIMMA": {0: "U8", 1: "S8"}}  # fmt: skip
_SUMS = {"UTCHMMA": {0: "F16", 1: "F32"}, "UTCQMMA": {0: "F16", 1: "F32"}, "UTCIMMA": {2: "S32"}}
_RESERVED = 0b1110_0000_1000_0000_0000_0000_0100_0111
"""Bits of the instruction descriptor that are zero here: sparsity, the shift of narrow products, nothing."""

Words = NDArray[np.uint32]
Numbers = NDArray[np.int64]


@dataclass(frozen=True)
class EngineForm:
    """D = A B + D: A is `rows` by K, B is K by `columns`."""

    rows: int
    columns: int
    a_across: bool
    """Is A stored across K in shared memory?"""
    b_across: bool
    a_sign: int
    """Bits of a word of A that are inverted to negate it, or 0."""
    b_sign: int
    tile: MatrixForm

    @property
    def element(self) -> int:
        """Bytes of an element of A and B."""
        return BITS[self.tile.a] // 8

    @property
    def lanes(self) -> Numbers:
        """The lane of tensor memory that each row lies in, counted from the first."""
        row = np.arange(self.rows)
        return row if self.rows > 64 else 32 * (row // 16) + row % 16


def _go_together(a: str, b: str, accumulator: str) -> bool:
    """Types of 16 and 32 bits are not mixed, and only FP16 and FP8 are added up in FP16."""
    if BITS[a] > 8 and a != b:
        return False
    return accumulator != "F16" or a not in ("BF16", "TF32")


@lru_cache(maxsize=1 << 8)
def engine_form(opcode: str, descriptor: int, arch: int) -> EngineForm:
    """What the 32 bits of an instruction descriptor say (PTX ISA, instruction descriptor).

    Raises ValueError if there is no model of it.
    """
    where = f"the instruction descriptor {descriptor:#x} of {opcode}"
    if descriptor & _RESERVED:
        raise ValueError(f"{where} asks for sparsity or something else that has no model")
    types, sums = _TYPES[opcode], _SUMS[opcode]
    a, b = types.get(descriptor >> 7 & 7), types.get(descriptor >> 10 & 7)
    accumulator = sums.get(descriptor >> 4 & 3)
    if a is None or b is None or accumulator is None or not _go_together(a, b, accumulator):
        raise ValueError(f"{where} names types that have no model")
    rows, columns = 16 * (descriptor >> 24 & 0x1F), 8 * (descriptor >> 17 & 0x3F)
    if rows not in (64, 128) or not 0 < columns <= 256 or (rows == 128 and columns % 16):
        raise ValueError(f"{where} asks for {rows} by {columns}, which has no model")
    saturate = bool(descriptor >> 3 & 1)
    if saturate and opcode != "UTCIMMA":
        raise ValueError(f"{where} saturates, which has no model")
    signs = [_SIGNS.get(kind, 0) if descriptor >> bit & 1 else 0 for kind, bit in ((a, 13), (b, 14))]
    if opcode == "UTCIMMA" and descriptor >> 13 & 3:
        raise ValueError(f"{where} negates integers, which has no model")
    accumulation = None
    if opcode != "UTCIMMA":
        family = "FP8" if opcode == "UTCQMMA" else a
        accumulation = accumulations().get((arch, family, accumulator))
        if accumulation is None:
            raise ValueError(f"{where} has no row for sm_{arch} in the table of accumulations")
    k = 32 * _ROW_WORDS // BITS[a]
    tile = MatrixForm(opcode, _TILE_ROWS, _COLUMNS, k, a, b, accumulator, saturate, accumulation)
    across = bool(descriptor >> 15 & 1), bool(descriptor >> 16 & 1)
    return EngineForm(rows, columns, across[0], across[1], signs[0], signs[1], tile)


def fragments_of_rows(words: Words) -> Words:
    """Fragments (4, products * tiles, 32) of A out of its rows (products, rows, 8 words)."""
    products, rows, _ = words.shape
    # Lane 4 g + t has in register h + 2 q word t + 4 q of row g + 8 h.
    parts = words.reshape(products, rows // _TILE_ROWS, 2, 8, 2, 4).transpose(4, 2, 0, 1, 3, 5)
    return np.ascontiguousarray(parts).reshape(4, -1, 32)


def multiply_add(form: EngineForm, a: Words, b: Words, sums: Words | None) -> Words:
    """The cells (products, rows, columns) of D.

    `a` holds fragments (4, products * row tiles, 32), `b` those of column tiles; without `sums` D begins at
    zero. A cell has one sum, in its lower half if it has 16 bits.
    """
    down, right = form.rows // _TILE_ROWS, form.columns // _COLUMNS
    products = a.shape[1] // down
    shape = (products, down, 2, 8, right, 4, 2)
    half = form.tile.accumulator == "F16"
    before = np.zeros((form.tile.c_registers, products * down * right, 32), np.uint32)
    if sums is not None:
        # Lane 4 g + t has columns 2 t and 2 t + 1 of row g, then of row g + 8.
        parts = sums.reshape(shape).transpose(2, 6, 0, 1, 4, 3, 5)
        if half:
            before[...] = (parts[:, 0] & 0xFFFF | parts[:, 1] << np.uint32(16)).reshape(2, -1, 32)
        else:
            before[...] = parts.reshape(4, -1, 32)
    after = np.empty_like(before)
    tile = np.arange(products * down * right)
    which = tile // right, tile // (down * right) * right + tile % right
    multiply_fragments(form.tile, a, b, before, after, np.ones(tile.size, np.bool_), which)
    if half:
        after = np.stack([after & np.uint32(0xFFFF), after >> np.uint32(16)], axis=1)
    cells = after.reshape(2, 2, products, down, right, 8, 4).transpose(2, 3, 0, 5, 4, 6, 1)
    return np.ascontiguousarray(cells).reshape(products, form.rows, form.columns)
