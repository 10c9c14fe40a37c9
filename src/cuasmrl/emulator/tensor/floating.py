"""HMMA and QMMA: exact products, aligned, cut off and added in blocks.

A number is a signed significand and an exponent: value = significand * 2**(exponent - fraction bits).
Products are kept as they come out of the multiplier, not normalised: 1.5 * 1.5 is 2.25 * 2**0.
"""

import numpy as np
from numpy.typing import NDArray

from cuasmrl.emulator.tensor.compiled import COLUMNS, add_row, compiled, multiply_row
from cuasmrl.emulator.tensor.forms import BITS, MatrixForm

Words = NDArray[np.uint32]
Integers = NDArray[np.int32]
Doubles = NDArray[np.float64]

OUTPUTS = 16 * COLUMNS
# Significands of A have 19 fraction bits, of B 10: a product has 29 and fills 31 bits; C has 30.
A_FRACTION, B_FRACTION, C_FRACTION = 19, 10, 30
# Exponents no number has. Their terms vanish in the alignment, whatever the significand says.
ZERO, INFINITE, NOT_A_NUMBER = -1000, -2000, -3000
ROUNDINGS = {"zero": 0, "zero to 13 bits": 1, "nearest": 2}
# Fraction bits, exponent bits, lowest bit in the register, whether the top exponent means Inf and NaN.
FORMATS = {"F16": (10, 5, 0, True), "BF16": (7, 8, 0, True), "TF32": (10, 8, 13, True),
           "E5M2": (2, 5, 0, True), "E4M3": (3, 4, 0, False)}  # fmt: skip


@compiled
def fused_sum(
    significands: Integers,
    exponents: Integers,
    first: int,
    last: int,
    c_significands: Integers,
    c_exponents: Integers,
    fraction_bits: int,
    total: Doubles,
    scale: Integers,
) -> None:
    """total * 2**scale = C + the products first..last - 1, for every output; exact in 53 bits.

    The replaceable part: all that is particular to tensor cores is in here. `significands` and `exponents`
    have one row per product and one column per output.
    """
    keep = np.int32(29 - fraction_bits)
    partial = np.empty(OUTPUTS, np.int32)
    for o in range(OUTPUTS):
        scale[o] = c_exponents[o]
    for k in range(first, last, 4):
        e0, e1, e2, e3 = exponents[k], exponents[k + 1], exponents[k + 2], exponents[k + 3]
        for o in range(OUTPUTS):
            scale[o] = max(scale[o], max(max(e0[o], e1[o]), max(e2[o], e3[o])))
    for o in range(OUTPUTS):
        c = c_significands[o]
        kept = abs(c) >> min(scale[o] - c_exponents[o] + keep + np.int32(1), np.int32(31))
        total[o] = kept if c >= 0 else -kept
    # Sixteen products below 4 * 2**25 each still fit 31 bits.
    for chunk in range(first, last, 16):
        for o in range(OUTPUTS):
            partial[o] = 0
        for k in range(chunk, min(chunk + 16, last), 2):
            p0, p1, e0, e1 = significands[k], significands[k + 1], exponents[k], exponents[k + 1]
            for o in range(OUTPUTS):
                top = scale[o] + keep
                kept0 = abs(p0[o]) >> min(top - e0[o], np.int32(31))
                kept1 = abs(p1[o]) >> min(top - e1[o], np.int32(31))
                partial[o] += (kept0 if p0[o] >= 0 else -kept0) + (kept1 if p1[o] >= 0 else -kept1)
        for o in range(OUTPUTS):
            total[o] += partial[o]
    for o in range(OUTPUTS):
        scale[o] -= np.int32(fraction_bits)


@compiled
def unpack(
    words: Words, bits: int, format: tuple[int, int, int, bool], up: int, significands: Integers, exponents: Integers
) -> bool:
    """Elements in the order register, position in register, lane; whether one is Inf or NaN."""
    fraction, exponent_bits, lowest, ieee = format
    bias = np.int32((1 << (exponent_bits - 1)) - 1)
    fraction_mask, exponent_mask = np.uint32((1 << fraction) - 1), np.uint32((1 << exponent_bits) - 1)
    one, up32, special = np.int32(1 << fraction), np.int32(up - fraction), False
    per_register = 32 // bits
    for register in range(words.shape[0]):
        for position in range(per_register):
            shift = np.uint32(lowest + bits * position)
            start = (register * per_register + position) * 32
            significand, exponent = significands[start : start + 32], exponents[start : start + 32]
            for lane in range(32):
                x = words[register, lane] >> shift
                low = np.int32(x & fraction_mask)
                field = np.int32((x >> np.uint32(fraction)) & exponent_mask)
                s = low | (one if field > 0 else np.int32(0))
                e = max(field, np.int32(1)) - bias
                if s == 0:
                    e = np.int32(ZERO)
                if field == np.int32(exponent_mask):
                    if ieee:
                        e = np.int32(INFINITE) if low == 0 else np.int32(NOT_A_NUMBER)
                    elif low == np.int32(fraction_mask):
                        e = np.int32(NOT_A_NUMBER)
                special |= e <= INFINITE
                s <<= up32
                negative = (x >> np.uint32(fraction + exponent_bits)) & np.uint32(1)
                significand[lane] = -s if negative else s
                exponent[lane] = e
    return special


@compiled
def unpack_accumulator(bits: Words, half: bool, significands: Integers, exponents: Integers) -> bool:
    """Zero takes part in the alignment as the smallest FP32 exponent, also if it is an FP16 zero."""
    special = False
    fraction = np.uint32(10) if half else np.uint32(23)
    mask, top = (np.uint32(0x1F), np.int32(15)) if half else (np.uint32(0xFF), np.int32(127))
    one, up = np.int32(1 << np.int64(fraction)), np.int32(C_FRACTION) - np.int32(fraction)
    sign, below = (np.uint32(15), np.uint32(0x3FF)) if half else (np.uint32(31), np.uint32(0x7FFFFF))
    for o in range(OUTPUTS):
        field = np.int32((bits[o] >> fraction) & mask)
        s = np.int32(bits[o] & below) | (one if field > 0 else np.int32(0))
        special |= field == np.int32(mask)
        significands[o] = -(s << up) if (bits[o] >> sign) & np.uint32(1) else s << up
        exponents[o] = max(field, np.int32(1)) - top if s else np.int32(-126)
    return special


@compiled
def round_to_zero(values: Doubles, bits: Words, fraction_bits: int) -> None:
    """FP32 that is not larger in magnitude; from 2**128 on it is Inf."""
    floats = bits.view(np.float32)
    mask = np.uint32(0xFFFFFFFF << (23 - fraction_bits) & 0xFFFFFFFF)
    for o in range(OUTPUTS):
        floats[o] = np.float32(values[o])
    for o in range(OUTPUTS):
        size = abs(values[o])
        away = abs(np.float64(floats[o])) > size and size < 2.0**128
        bits[o] = (bits[o] - np.uint32(1 if away else 0)) & mask


@compiled
def round_to_nearest_half(values: Doubles, bits: Words) -> None:
    """FP16, ties to even; from 65520 on it is Inf."""
    for o in range(OUTPUTS):
        size = abs(values[o])
        sign = np.uint32(0x8000) if values[o] < 0 else np.uint32(0)
        if size >= 65520.0:
            bits[o] = sign | np.uint32(0x7C00)
            continue
        step, base = 2.0**-24, np.uint32(0)
        while size >= 2048 * step:
            step, base = 2 * step, base + np.uint32(1024)
        bits[o] = sign | (base + np.uint32(np.rint(size / step)))


@compiled
def special_sums(
    a: tuple[Integers, Integers], b: tuple[Integers, Integers], k: int, per_register: int, first: int, last: int,
    half: bool, before: Words, bits: Words,
) -> None:  # fmt: skip
    """Put Inf and NaN where a term of the block is one: Inf - Inf, 0 * Inf and NaN give the one NaN."""
    for o in range(OUTPUTS):
        c_top = np.uint32(0x7C00) if half else np.uint32(0x7F800000)
        size = before[o] & np.uint32(0x7FFF if half else 0x7FFFFFFF)
        plus = minus = nan = False
        if size == c_top:
            minus = before[o] != size
            plus = not minus
        nan = size > c_top
        for q in range(first, last):
            x, y = a_index(o // COLUMNS, q, per_register), b_index(q, o % COLUMNS, per_register)
            worst = min(a[1][x], b[1][y])
            if worst > INFINITE:
                continue
            if worst == NOT_A_NUMBER or a[1][x] == ZERO or b[1][y] == ZERO:
                nan = True
            elif (a[0][x] < 0) != (b[0][y] < 0):
                minus = True
            else:
                plus = True
        if nan or (plus and minus):
            bits[o] = np.uint32(0x7FFF) if half else np.uint32(0x7FFFFFFF)
        elif plus:
            bits[o] = c_top
        elif minus:
            bits[o] = c_top | (np.uint32(0x8000) if half else np.uint32(0x80000000))


@compiled
def a_index(row: int, k: int, per_register: int) -> int:
    """Lane 4 * group + t holds, in register r, row group + 8 * (r & 1) and from column
    per_register * (t + 4 * (r >> 1)) on one element per position."""
    group, column = k // (4 * per_register), k % (4 * per_register)
    register = 2 * group + (row >> 3)
    return (register * per_register + column % per_register) * 32 + 4 * (row & 7) + column // per_register


@compiled
def b_index(k: int, column: int, per_register: int) -> int:
    """As A, with columns in the place of rows and a single group of eight."""
    register, row = k // (4 * per_register), k % (4 * per_register)
    return (register * per_register + row % per_register) * 32 + 4 * column + row // per_register


@compiled
def run(
    a: Words, b: Words, c: Words, d: Words, active: NDArray[np.bool_], k: int, bits: int,
    a_format: tuple[int, int, int, bool], b_format: tuple[int, int, int, bool],
    block: int, fraction_bits: int, rounding: int, half: bool,
) -> None:  # fmt: skip
    per_register = 32 // bits
    a_s, a_e = np.empty(16 * k, np.int32), np.empty(16 * k, np.int32)
    b_s, b_e = np.empty(COLUMNS * k, np.int32), np.empty(COLUMNS * k, np.int32)
    row_s, row_e = np.empty(COLUMNS, np.int32), np.empty(COLUMNS, np.int32)
    flat_s, flat_e = np.empty(k * OUTPUTS, np.int32), np.empty(k * OUTPUTS, np.int32)
    significands, exponents = flat_s.reshape(k, OUTPUTS), flat_e.reshape(k, OUTPUTS)
    c_s, c_e = np.empty(OUTPUTS, np.int32), np.empty(OUTPUTS, np.int32)
    scale, total = np.empty(OUTPUTS, np.int32), np.empty(OUTPUTS)
    power_bits = np.empty(OUTPUTS, np.int64)
    power = power_bits.view(np.float64)
    sums, before = np.empty(OUTPUTS, np.uint32), np.empty(OUTPUTS, np.uint32)
    for warp in range(active.shape[0]):
        if not active[warp]:
            continue
        special = unpack(a[:, warp], bits, a_format, A_FRACTION, a_s, a_e)
        special |= unpack(b[:, warp], bits, b_format, B_FRACTION, b_s, b_e)
        # Output 8 * row + column: lane 4 * group + t has row group + 8 * (r >> 1), columns 2 * t and on.
        for register in range(c.shape[0]):
            for lane in range(32):
                word = c[register, warp, lane]
                if half:
                    sums[64 * register + 2 * lane] = word & np.uint32(0xFFFF)
                    sums[64 * register + 2 * lane + 1] = word >> np.uint32(16)
                else:
                    sums[64 * (register >> 1) + 2 * lane + (register & 1)] = word
        for q in range(k):
            x, y = a_index(0, q, per_register), b_index(q, 0, per_register)
            for column in range(COLUMNS):
                row_s[column], row_e[column] = b_s[y + 4 * column], b_e[y + 4 * column]
            for row in range(16):
                z = x + 32 * per_register * (row >> 3) + 4 * (row & 7)
                multiply_row(a_s[z], row_s, 0, flat_s, q * OUTPUTS + row * COLUMNS)
                add_row(a_e[z], row_e, 0, flat_e, q * OUTPUTS + row * COLUMNS)
        for first in range(0, k, block):
            last = min(first + block, k)
            patch = unpack_accumulator(sums, half, c_s, c_e) or special
            before[:] = sums
            fused_sum(significands, exponents, first, last, c_s, c_e, fraction_bits, total, scale)
            for o in range(OUTPUTS):
                power_bits[o] = np.int64(scale[o] + np.int32(1023)) << np.int64(52)
            for o in range(OUTPUTS):
                total[o] *= power[o]
            if rounding == 2:
                round_to_nearest_half(total, sums)
            else:
                round_to_zero(total, sums, 13 if rounding == 1 else 23)
            if patch:
                special_sums((a_s, a_e), (b_s, b_e), k, per_register, first, last, half, before, sums)
        for register in range(d.shape[0]):
            for lane in range(32):
                if half:
                    low, high = sums[64 * register + 2 * lane], sums[64 * register + 2 * lane + 1]
                    d[register, warp, lane] = low | (high << np.uint32(16))
                else:
                    d[register, warp, lane] = sums[64 * (register >> 1) + 2 * lane + (register & 1)]


def multiply(form: MatrixForm, a: Words, b: Words, c: Words, d: Words, active: NDArray[np.bool_]) -> None:
    how = form.accumulation
    assert how is not None
    run(
        a, b, c, d, active, form.k, BITS[form.a], FORMATS[form.a], FORMATS[form.b],
        how.block, how.fraction_bits, ROUNDINGS[how.rounding], form.accumulator == "F16",
    )  # fmt: skip
