"""Whole matrices to registers and back, element by element, and a slow model of the sums in fractions."""

import math
from collections.abc import Sequence
from fractions import Fraction

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from cuasmrl.gpu.emulator.tensor import MatrixForm, multiply_accumulate

Bits = NDArray[np.uint64]
BITS = {"F64": 64, "F32": 32, "S32": 32, "TF32": 32, "F16": 16, "BF16": 16, "E4M3": 8, "E5M2": 8,
        "S8": 8, "U8": 8, "S4": 4, "U4": 4}  # fmt: skip
LOWEST_EXPONENT = {"F32": -126, "TF32": -126, "BF16": -126, "F16": -14, "E5M2": -14, "E4M3": -6}


def place_in_a(form: MatrixForm, lane: int, i: int) -> tuple[int, int]:
    """Row and column of a lane's i-th element of A; PTX ISA, matrix fragments for mma."""
    group, t = lane >> 2, lane % 4
    run = max(1, 32 // BITS[form.a])
    if form.m == 8:
        return group, run * t + i
    chunk, within = divmod(i, run)
    row = group if chunk % 2 == 0 else group + 8
    return row, run * t + within + 4 * run * (chunk // 2)


def place_in_b(form: MatrixForm, lane: int, i: int) -> tuple[int, int]:
    group, t = lane >> 2, lane % 4
    run = max(1, 32 // BITS[form.b])
    chunk, within = divmod(i, run)
    return run * t + within + 4 * run * chunk, group


def place_in_c(form: MatrixForm, lane: int, i: int) -> tuple[int, int]:
    group, t = lane >> 2, lane % 4
    return (group if i < 2 else group + 8), 2 * t + (i & 1)


PLACES = {"a": place_in_a, "b": place_in_b, "c": place_in_c}


def shape_of(form: MatrixForm, name: str) -> tuple[int, int]:
    return {"a": (form.m, form.k), "b": (form.k, form.n), "c": (form.m, form.n)}[name]


def type_of(form: MatrixForm, name: str) -> str:
    return {"a": form.a, "b": form.b, "c": form.accumulator}[name]


def to_registers(form: MatrixForm, name: str, matrices: Bits) -> tuple[NDArray[np.uint32], ...]:
    """Bit patterns (warps, rows, columns) as registers."""
    rows, columns = shape_of(form, name)
    bits = BITS[type_of(form, name)]
    assert matrices.shape[1:] == (rows, columns)
    registers = np.zeros((rows * columns * bits // 1024, len(matrices), 32), np.uint32)
    for lane in range(32):
        for i in range(rows * columns // 32):
            row, column = PLACES[name](form, lane, i)
            register, shift = divmod(i * bits, 32)
            values = matrices[:, row, column]
            registers[register, :, lane] |= (values << np.uint64(shift)).astype(np.uint32)
            if bits == 64:
                registers[register + 1, :, lane] = (values >> np.uint64(32)).astype(np.uint32)
    return tuple(registers)


def from_registers(form: MatrixForm, registers: Sequence[NDArray[np.uint32]]) -> Bits:
    bits = BITS[form.accumulator]
    matrices = np.zeros((len(registers[0]), form.m, form.n), np.uint64)
    for lane in range(32):
        for i in range(form.m * form.n // 32):
            row, column = place_in_c(form, lane, i)
            register, shift = divmod(i * bits, 32)
            word = registers[register][:, lane].astype(np.uint64)
            if bits == 64:
                word |= registers[register + 1][:, lane].astype(np.uint64) << np.uint64(32)
            matrices[:, row, column] = (word >> np.uint64(shift)) & np.uint64(2**bits - 1)
    return matrices


FLOATS = {"F32": np.float32, "TF32": np.float32, "F16": np.float16, "BF16": ml_dtypes.bfloat16,
          "E4M3": ml_dtypes.float8_e4m3fn, "E5M2": ml_dtypes.float8_e5m2}  # fmt: skip
WORDS = {8: np.uint8, 16: np.uint16, 32: np.uint32}


def encode(kind: str, values: object) -> Bits:
    """Bit patterns of numbers that the type holds."""
    bits = BITS[kind]
    if kind == "F64":
        return np.asarray(values, np.float64).view(np.uint64)
    if kind in FLOATS:
        return np.asarray(np.asarray(values).astype(FLOATS[kind]).view(WORDS[bits]), np.uint64)
    return np.asarray(values).astype(np.int64).view(np.uint64) & np.uint64(2**bits - 1)


def decode(kind: str, patterns: Bits) -> NDArray[np.float64]:
    bits = BITS[kind]
    if kind == "F64":
        return patterns.view(np.float64)
    if kind in FLOATS:
        kept = patterns >> np.uint64(13) << np.uint64(13) if kind == "TF32" else patterns
        with np.errstate(invalid="ignore"):
            return np.asarray(kept.astype(WORDS[bits]).view(FLOATS[kind]), np.float64)
    signed = patterns.astype(np.int64)
    if kind[0] == "S":
        signed[signed >= 2 ** (bits - 1)] -= 2**bits
    return signed.astype(np.float64)


def multiply(form: MatrixForm, a: Bits, b: Bits, c: Bits) -> Bits:
    """D of one warp, from and to whole matrices of bit patterns."""
    registers = [
        to_registers(form, name, matrix[None]) for name, matrix in zip("abc", (a, b, c), strict=True)
    ]
    result = multiply_accumulate(form, registers[0], registers[1], registers[2], np.ones(1, bool))
    return from_registers(form, result).reshape(form.m, form.n)


def slow_sum(form: MatrixForm, a: Sequence[float], b: Sequence[float], c: float) -> float:
    """One output for finite inputs, with fractions and the words of the published models."""
    how = form.accumulation
    assert how is not None
    for start in range(0, form.k, how.block):
        terms = [_parts(c, form.accumulator)]
        for x, y in zip(a[start : start + how.block], b[start : start + how.block], strict=True):
            (s, e), (t, f) = _parts(x, form.a), _parts(y, form.b)
            terms.append((s * t, e + f))
        top = max([-126, *(e for s, e in terms if s)])
        unit = Fraction(2) ** (top - how.fraction_bits)
        total = sum(math.trunc(s * Fraction(2) ** e / unit) for s, e in terms) * unit
        c = _round(total, how.rounding)
        if math.isinf(c):
            return c
    return c


def _parts(x: float, kind: str) -> tuple[Fraction, int]:
    """Significand, below 1 only if subnormal, and exponent."""
    exponent = max(math.frexp(x)[1] - 1, LOWEST_EXPONENT[kind])
    return Fraction(x) / Fraction(2) ** exponent, exponent


def _round(x: Fraction, rounding: str) -> float:
    fraction, lowest, limit = {"zero": (23, -126, 128), "zero to 13 bits": (13, -126, 128)}.get(
        rounding, (10, -14, 16)
    )
    exponent = lowest
    while abs(x) >= Fraction(2) ** (exponent + 1):
        exponent += 1
    unit = Fraction(2) ** (exponent - fraction)
    steps = round(x / unit) if rounding == "nearest" else math.trunc(x / unit)
    result = steps * unit
    return math.copysign(math.inf, x) if abs(result) >= 2**limit else float(result)
