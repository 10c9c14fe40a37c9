"""Products of a warpgroup (wgmma): which there are, and how they come apart into those of one warp.

Each of the four warps owns 16 rows of D. Its share is a row of products of 16 by 8, the same that warp-level
instructions make: eight columns of B and four registers of D (two of halves) at a time.
"""

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cuasmrl.gpu.emulator.tensor import multiply_fragments
from cuasmrl.gpu.emulator.tensor.forms import BITS, MatrixForm, accumulations

ROWS, WARPS = 64, 4
_COLUMNS = 8
_SHAPE = re.compile(r"64x(\d+)x(8|16|32)")
_FP8 = ("E4M3", "E5M2")
_INT8 = ("S8", "U8")
_SIGNS = {"F16": 0x8000_8000, "BF16": 0x8000_8000, "TF32": 0x8000_0000}
_ROW_BITS = 256
"""K of one instruction, in bits of A."""

Words = NDArray[np.uint32]


@dataclass(frozen=True)
class WarpgroupForm:
    """D = A B + C of four warps: A is 64 by K, B is K by `columns`."""

    columns: int
    tile: MatrixForm
    """16 rows of one warp by eight columns."""

    @property
    def tiles(self) -> int:
        return self.columns // _COLUMNS

    @property
    def accumulators(self) -> int:
        """Registers of C and D."""
        return self.tiles * self.tile.c_registers

    @property
    def sign(self) -> int | None:
        """The bits of a register that negate its elements; None where no form does."""
        return _SIGNS.get(self.tile.a)


def warpgroup_form(mnemonic: str, arch: int) -> WarpgroupForm:
    """The form of `HGMMA.64x128x16.F32` and the like; ValueError if there is no model of it."""
    opcode, *modifiers = mnemonic.split(".")
    shape = _SHAPE.fullmatch(modifiers[0]) if modifiers else None
    if shape is None:
        raise ValueError(f"{mnemonic} is not a warpgroup product with a model.")
    columns, k = int(shape[1]), int(shape[2])
    family, a, b, accumulator = _types(mnemonic, opcode, modifiers[1:])
    if k * BITS[a] != _ROW_BITS or columns % _COLUMNS or not 0 < columns <= 256:
        raise ValueError(f"{mnemonic} has a shape without a model.")
    accumulation = None
    if opcode != "IGMMA":
        accumulation = accumulations().get((arch, family, accumulator))
        if accumulation is None:
            raise ValueError(f"{mnemonic} on sm_{arch} has no row in the table of accumulations.")
    saturate = opcode == "IGMMA" and "SAT" in modifiers
    return WarpgroupForm(columns, MatrixForm(opcode, 16, 8, k, a, b, accumulator, saturate, accumulation))


def _types(mnemonic: str, opcode: str, modifiers: list[str]) -> tuple[str, str, str, str]:
    """Family of the inputs, types of A and B, type of the accumulator."""
    match opcode, modifiers:
        case "HGMMA", ["F32", ("BF16" | "TF32") as inputs]:
            return inputs, inputs, inputs, "F32"
        case "HGMMA", [("F16" | "F32") as accumulator]:
            return "F16", "F16", "F16", accumulator
        case "QGMMA", [("F16" | "F32") as accumulator, a, b] if a in _FP8 and b in _FP8:
            return "FP8", a, b, accumulator
        case "IGMMA", [a, b, *rest] if a in _INT8 and b in _INT8 and rest in ([], ["SAT"]):
            return "INT8", a, b, "S32"
    raise ValueError(f"{mnemonic} names types that have no model.")


def multiply_warps(
    form: WarpgroupForm, a: Words, b: Words, c: Words | None, a_of: NDArray[np.int64], b_of: NDArray[np.int64]
) -> Words:
    """The accumulators (registers, warps, 32) of some warps.

    `a` holds fragments (4, any, 32), of which warp i takes `a_of[i]`; `b` has (2, any, 32), of which it takes
    those from `b_of[i]` on. Without `c` the sums begin at zero.
    """
    tile, tiles, warps = form.tile, form.tiles, len(a_of)
    per_tile = tile.c_registers
    # Tiles of a warp behind each other, so that its fragment of A is unpacked once.
    before = np.zeros((per_tile, warps, tiles, 32), np.uint32)
    if c is not None:
        before[...] = c.reshape(tiles, per_tile, warps, 32).transpose(1, 2, 0, 3)
    after = np.empty((per_tile, warps * tiles, 32), np.uint32)
    which = np.repeat(a_of, tiles), (b_of[:, None] + np.arange(tiles)).reshape(-1)
    everybody = np.ones(warps * tiles, np.bool_)
    multiply_fragments(tile, a, b, before.reshape(per_tile, -1, 32), after, everybody, which)
    shaped = after.reshape(per_tile, warps, tiles, 32).transpose(2, 0, 1, 3)
    return np.ascontiguousarray(shaped).reshape(form.accumulators, warps, 32)
