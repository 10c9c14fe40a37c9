"""Which matrix instructions there are: shape, types and arithmetic of a mnemonic."""

import csv
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

BITS = {"F64": 64, "F32": 32, "S32": 32, "TF32": 32, "F16": 16, "BF16": 16,
        "E4M3": 8, "E5M2": 8, "S8": 8, "U8": 8, "S4": 4, "U4": 4}  # fmt: skip
_FP8 = ("E4M3", "E5M2")
_INT8 = ("S8", "U8")
_INT4 = ("S4", "U4")

# `16816`, or since sm_90 also `16x8x4`.
_SHAPE = re.compile(r"(8|16)x?(8)x?(4|8|16|32|64)")

# Chips with each form, as ptxas 13 emits it for mma.sync. Where a chip is missing, ptxas builds the PTX
# instruction from others: sm_90 and sm_100 multiply FP8 with HMMA, sm_100 has no DMMA but 8x8x4.
_SINCE_75 = frozenset({75, 80, 86, 89, 90, 100, 103, 120})
_SINCE_80 = _SINCE_75 - {75}
_CHIPS: dict[tuple[str, tuple[int, int, int], str], frozenset[int]] = {
    ("HMMA", (16, 8, 8), "F16"): _SINCE_75,
    ("HMMA", (16, 8, 16), "F16"): _SINCE_80,
    ("HMMA", (16, 8, 8), "BF16"): _SINCE_80,
    ("HMMA", (16, 8, 16), "BF16"): _SINCE_80,
    ("HMMA", (16, 8, 4), "TF32"): _SINCE_80,
    ("HMMA", (16, 8, 8), "TF32"): _SINCE_80,
    ("IMMA", (8, 8, 16), "INT8"): frozenset({75, 80, 86, 89, 90}),
    ("IMMA", (16, 8, 16), "INT8"): _SINCE_80,
    ("IMMA", (16, 8, 32), "INT8"): _SINCE_80,
    ("IMMA", (8, 8, 32), "INT4"): frozenset({75, 80, 86, 89}),
    ("IMMA", (16, 8, 32), "INT4"): frozenset({80, 86, 89}),
    ("IMMA", (16, 8, 64), "INT4"): frozenset({80, 86, 89}),
    ("QMMA", (16, 8, 16), "FP8"): frozenset({89, 120}),
    ("QMMA", (16, 8, 32), "FP8"): frozenset({89, 120}),
    ("DMMA", (8, 8, 4), "F64"): _SINCE_80,
    ("DMMA", (16, 8, 4), "F64"): frozenset({90}),
    ("DMMA", (16, 8, 8), "F64"): frozenset({90}),
    ("DMMA", (16, 8, 16), "F64"): frozenset({90}),
}


@dataclass(frozen=True)
class Accumulation:
    """How a chip adds up floating products; a row of accumulation.csv."""

    block: int
    """Products that are added at once, together with the accumulator."""
    fraction_bits: int
    """Bits kept below the largest exponent when the terms are aligned."""
    rounding: str
    """Of a block's sum: `zero`, `nearest` (even), or `zero to 13 bits` of the fraction."""
    certainty: str
    source: str


@dataclass(frozen=True)
class MatrixForm:
    """D = A B + C of one warp: A is m by k in rows, B is k by n in columns."""

    opcode: str
    m: int
    n: int
    k: int
    a: str
    b: str
    accumulator: str
    saturate: bool
    accumulation: Accumulation | None
    """None where sums are exact (IMMA) or a chain of fused multiply-adds (DMMA)."""

    @property
    def a_registers(self) -> int:
        return self.m * self.k * BITS[self.a] // 1024

    @property
    def b_registers(self) -> int:
        return self.k * self.n * BITS[self.b] // 1024

    @property
    def c_registers(self) -> int:
        return self.m * self.n * BITS[self.accumulator] // 1024

    @property
    def d_registers(self) -> int:
        return self.c_registers


def matrix_form(mnemonic: str, arch: int) -> MatrixForm:
    """The form of `HMMA.16816.F32` and the like on a chip; ValueError if there is no model of it."""
    opcode, *modifiers = mnemonic.split(".")
    shape = _SHAPE.fullmatch(modifiers[0]) if modifiers else None
    if opcode not in ("HMMA", "IMMA", "QMMA", "DMMA") or shape is None:
        raise ValueError(f"{mnemonic} is not a matrix instruction with a model.")
    m, n, k = (int(part) for part in shape.groups())
    family, a, b, accumulator, rest = _types(mnemonic, opcode, modifiers[1:])
    saturate = rest == ["SAT"] and opcode == "IMMA"
    if rest and not saturate:
        raise ValueError(f"{mnemonic} has the modifier .{rest[0]}, which has no model.")
    if arch not in _CHIPS.get((opcode, (m, n, k), family), frozenset()):
        raise ValueError(f"{mnemonic} does not exist on sm_{arch}, or has no model there.")
    accumulation = None
    if opcode in ("HMMA", "QMMA"):
        accumulation = accumulations().get((arch, family, accumulator))
        if accumulation is None:
            raise ValueError(f"{mnemonic} on sm_{arch} has no row in the table of accumulations.")
    return MatrixForm(opcode, m, n, k, a, b, accumulator, saturate, accumulation)


def _types(mnemonic: str, opcode: str, modifiers: list[str]) -> tuple[str, str, str, str, list[str]]:
    """Family of the inputs, types of A, B and accumulator, and the modifiers left over."""
    match opcode, modifiers:
        case "HMMA", ["F32", ("BF16" | "TF32") as inputs, *rest]:
            return inputs, inputs, inputs, "F32", rest
        case "HMMA", [("F16" | "F32") as accumulator, *rest]:
            return "F16", "F16", "F16", accumulator, rest
        case "QMMA", [("F16" | "F32") as accumulator, a, b, *rest] if a in _FP8 and b in _FP8:
            return "FP8", a, b, accumulator, rest
        case "IMMA", [a, b, *rest] if a in _INT8 and b in _INT8:
            return "INT8", a, b, "S32", rest
        case "IMMA", [a, b, *rest] if a in _INT4 and b in _INT4:
            return "INT4", a, b, "S32", rest
        case "DMMA", rest:
            return "F64", "F64", "F64", "F64", list(rest)
    raise ValueError(f"{mnemonic} names types that have no model.")


@cache
def accumulations() -> dict[tuple[int, str, str], Accumulation]:
    """accumulation.csv, by chip, family of the inputs and accumulator."""
    with (Path(__file__).parent / "accumulation.csv").open(newline="") as file:
        return {
            (int(row["arch"]), row["inputs"], row["accumulator"]): Accumulation(
                int(row["block"]), int(row["fraction_bits"]), row["rounding"], row["certainty"], row["source"]
            )
            for row in csv.DictReader(file)
        }
