"""HMMA and QMMA: exact products, aligned, cut off and added in blocks.

A number is a signed significand and an exponent: value = significand * 2**(exponent - fraction bits).
Products are kept as they come out of the multiplier, not normalised: 1.5 * 1.5 is 2.25 * 2**0.
"""

import numpy as np
from numpy.typing import NDArray

from cuasmrl.gpu.emulator.tensor.compiled import COLUMNS, add_row, compiled, multiply_row
from cuasmrl.gpu.emulator.tensor.forms import BITS, MatrixForm

Words = NDArray[np.uint32]
Integers = NDArray[np.int32]
Doubles = NDArray[np.float64]
Pair = tuple[Integers, Integers]
Format = tuple[int, int, int, int]
Places = tuple[NDArray[np.int64], NDArray[np.int64]]

OUTPUTS = 16 * COLUMNS
# Significands of A have 19 fraction bits, of B 10: a product has 29 and fills 31 bits; C has 30.
A_FRACTION, B_FRACTION, C_FRACTION = 19, 10, 30
# Exponents no number has. Their terms vanish in the alignment, whatever the significand says.
ZERO, INFINITE, NOT_A_NUMBER = -1000, -2000, -3000
# Fraction bits of a sum that is rounded to zero; a sum in FP16 is rounded to nearest.
NEAREST = 0
ROUNDINGS = {"zero": 23, "zero to 13 bits": 13, "nearest": NEAREST}
# Fraction bits, exponent bits, lowest bit in the register, whether the top exponent means Inf and NaN.
FORMATS = {"F16": (10, 5, 0, 1), "BF16": (7, 8, 0, 1), "TF32": (10, 8, 13, 1),
           "E5M2": (2, 5, 0, 1), "E4M3": (3, 4, 0, 0)}  # fmt: skip


@compiled
def cut(significand: np.int32, places: int) -> np.int32:
    """Drop bits from the right of the magnitude; 31 places leave nothing.

    The casts keep numba, which computes with 64 bits, at 32: twice as many to a vector.
    """
    kept = np.int32(np.uint32(abs(significand)) >> min(np.uint32(places), np.uint32(31)))
    return kept if significand >= 0 else np.int32(-kept)


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
    partial: Integers,
) -> None:
    """total * 2**scale = C + the products first..last - 1, for every output; exact in 53 bits.

    The replaceable part: all that is particular to tensor cores is in here. `significands` and `exponents`
    have one row per product and one column per output; `partial` is room for whatever.
    """
    keep = np.int32(29 - fraction_bits)
    for o in range(OUTPUTS):
        scale[o] = c_exponents[o]
    for k in range(first, last, 4):
        e = exponents[k : k + 4]
        for o in range(OUTPUTS):
            scale[o] = max(scale[o], e[0, o], e[1, o], e[2, o], e[3, o])
    for o in range(OUTPUTS):
        total[o] = cut(c_significands[o], scale[o] - c_exponents[o] + keep + np.int32(1))
    # Sixteen products below 4 * 2**25 each still fit 31 bits.
    for chunk in range(first, last, 16):
        for o in range(OUTPUTS):
            partial[o] = 0
        for k in range(chunk, min(chunk + 16, last), 4):
            p, e = significands[k : k + 4], exponents[k : k + 4]
            for o in range(OUTPUTS):
                top = scale[o] + keep
                low = cut(p[0, o], top - e[0, o]) + cut(p[1, o], top - e[1, o])
                high = cut(p[2, o], top - e[2, o]) + cut(p[3, o], top - e[3, o])
                partial[o] += low + high
        for o in range(OUTPUTS):
            total[o] += partial[o]
    for o in range(OUTPUTS):
        scale[o] -= np.int32(fraction_bits)


@compiled
def unpack(
    words: Words, warp: int, bits: int, format: Format, up: int,
    significands: Integers, exponents: Integers,
) -> bool:  # fmt: skip
    """Elements in the order register, position in register, lane; whether one is Inf or NaN."""
    fraction, exponent_bits, lowest, ieee = format
    bias = np.int32((1 << (exponent_bits - 1)) - 1)
    fraction_mask, exponent_mask = np.uint32((1 << fraction) - 1), np.uint32((1 << exponent_bits) - 1)
    one, up32, least = np.int32(1 << fraction), np.int32(up - fraction), np.int32(0)
    per_register = 32 // bits
    for register in range(words.shape[0]):
        for position in range(per_register):
            shift = np.uint32(lowest + bits * position)
            start = (register * per_register + position) * 32
            significand, exponent = significands[start : start + 32], exponents[start : start + 32]
            for lane in range(32):
                x = words[register, warp, lane] >> shift
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
                least = min(least, e)
                s <<= up32
                negative = (x >> np.uint32(fraction + exponent_bits)) & np.uint32(1)
                significand[lane] = -s if negative else s
                exponent[lane] = e
    return bool(least <= INFINITE)


@compiled
def unpack_accumulator(bits: Words, half: bool, significands: Integers, exponents: Integers) -> bool:
    """Zero takes part in the alignment as the smallest FP32 exponent, also if it is an FP16 zero."""
    special = np.int32(0)
    fraction = np.uint32(10) if half else np.uint32(23)
    mask, top = (np.uint32(0x1F), np.int32(15)) if half else (np.uint32(0xFF), np.int32(127))
    one, up = np.int32(1 << np.int64(fraction)), np.int32(C_FRACTION) - np.int32(fraction)
    sign, below = (np.uint32(15), np.uint32(0x3FF)) if half else (np.uint32(31), np.uint32(0x7FFFFF))
    for o in range(OUTPUTS):
        field = np.int32((bits[o] >> fraction) & mask)
        s = np.int32(bits[o] & below) | (one if field > 0 else np.int32(0))
        special |= np.int32(1) if field == np.int32(mask) else np.int32(0)
        significands[o] = -(s << up) if (bits[o] >> sign) & np.uint32(1) else s << up
        exponents[o] = max(field, np.int32(1)) - top if s else np.int32(-126)
    return bool(special != 0)


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
def round_to_nearest_half(
    values: Doubles, power_bits: NDArray[np.int64], power: Doubles, bits: Words
) -> None:
    """FP16, ties to even; from 65520 on it is Inf. `power` shows the memory of `power_bits`."""
    patterns = values.view(np.int64)
    for o in range(OUTPUTS):
        # 2**10 / 2**exponent; below 2**-14, where numbers are subnormal, steps get no smaller.
        field = max((patterns[o] >> np.int64(52)) & np.int64(0x7FF), np.int64(1023 - 14))
        power_bits[o] = np.int64(2046 + 10) - field << np.int64(52)
    for o in range(OUTPUTS):
        steps = np.int64(np.rint(abs(values[o]) * power[o]))
        field = np.int64(2046 + 10) - (power_bits[o] >> np.int64(52))
        code = min((field - np.int64(1023 - 14) << np.int64(10)) + steps, np.int64(0x7C00))
        bits[o] = np.uint32(code) | (np.uint32(0x8000) if values[o] < 0 else np.uint32(0))


@compiled
def a_index(row: int, k: int, per_register: int) -> int:
    """Where `unpack` puts an element of A.

    Lane 4 * group + t holds, in register r, row group + 8 * (r & 1), and there the columns
    per_register * (t + 4 * (r >> 1)) and on, one per position.
    """
    block, column = k // (4 * per_register), k % (4 * per_register)
    register = 2 * block + (row >> 3)
    return (register * per_register + column % per_register) * 32 + 4 * (row & 7) + column // per_register


@compiled
def b_index(k: int, column: int, per_register: int) -> int:
    """As for A, with columns in the place of rows and only eight of them."""
    register, row = k // (4 * per_register), k % (4 * per_register)
    return (register * per_register + row % per_register) * 32 + 4 * column + row // per_register


@compiled
def load_sums(c: Words, warp: int, half: bool, sums: Words) -> None:
    """In the order 8 * row + column. Lane 4 * group + t has columns 2 * t and 2 * t + 1 of row group, then
    of row group + 8: one to a register, or both if they are halves."""
    for register in range(c.shape[0]):
        for lane in range(32):
            word = c[register, warp, lane]
            if half:
                sums[64 * register + 2 * lane] = word & np.uint32(0xFFFF)
                sums[64 * register + 2 * lane + 1] = word >> np.uint32(16)
            else:
                sums[64 * (register >> 1) + 2 * lane + (register & 1)] = word


@compiled
def store_sums(sums: Words, warp: int, half: bool, d: Words) -> None:
    for register in range(d.shape[0]):
        for lane in range(32):
            if half:
                high = sums[64 * register + 2 * lane + 1] << np.uint32(16)
                d[register, warp, lane] = sums[64 * register + 2 * lane] | high
            else:
                d[register, warp, lane] = sums[64 * (register >> 1) + 2 * lane + (register & 1)]


@compiled
def special_sums(
    a: Pair, b: Pair, span: tuple[int, int, int], half: bool, before: Words, bits: Words
) -> None:
    """Put Inf and NaN where a term of the block is one: Inf - Inf, 0 * Inf and NaN give the one NaN."""
    first, last, per_register = span
    infinite = np.uint32(0x7C00) if half else np.uint32(0x7F800000)
    sign = np.uint32(0x8000) if half else np.uint32(0x80000000)
    for o in range(OUTPUTS):
        size = before[o] & (sign - np.uint32(1))
        nan, minus, plus = size > infinite, before[o] == sign | infinite, before[o] == infinite
        for k in range(first, last):
            x, y = a_index(o // COLUMNS, k, per_register), b_index(k, o % COLUMNS, per_register)
            low, high = min(a[1][x], b[1][y]), max(a[1][x], b[1][y])
            nan |= low == NOT_A_NUMBER or (low == INFINITE and high == ZERO)
            if low == INFINITE:
                minus |= (a[0][x] < 0) != (b[0][y] < 0)
                plus |= (a[0][x] < 0) == (b[0][y] < 0)
        if nan or (plus and minus):
            bits[o] = sign - np.uint32(1)
        elif plus or minus:
            bits[o] = infinite | (sign if minus else np.uint32(0))


@compiled
def run(
    a: Words, b: Words, c: Words, d: Words, active: NDArray[np.bool_], which: Places,
    a_format: Format, b_format: Format, way: tuple[int, int, int, int, int],
) -> None:  # fmt: skip
    """`which` names the fragments of A and B that belong to each of C; neighbours may share them."""
    k, bits, block, fraction_bits, rounding = way
    per_register, half = 32 // bits, rounding == NEAREST
    a_s, a_e = np.empty(16 * k, np.int32), np.empty(16 * k, np.int32)
    b_s, b_e = np.empty(COLUMNS * k, np.int32), np.empty(COLUMNS * k, np.int32)
    rows_s, rows_e = np.empty(COLUMNS * k, np.int32), np.empty(COLUMNS * k, np.int32)
    flat_s, flat_e = np.empty(k * OUTPUTS, np.int32), np.empty(k * OUTPUTS, np.int32)
    significands, exponents = flat_s.reshape(k, OUTPUTS), flat_e.reshape(k, OUTPUTS)
    c_s, c_e = np.empty(OUTPUTS, np.int32), np.empty(OUTPUTS, np.int32)
    scale, partial, total = np.empty(OUTPUTS, np.int32), np.empty(OUTPUTS, np.int32), np.empty(OUTPUTS)
    power_bits = np.empty(OUTPUTS, np.int64)
    power = power_bits.view(np.float64)
    sums, before = np.empty(OUTPUTS, np.uint32), np.empty(OUTPUTS, np.uint32)
    a_at, b_at = np.empty(k, np.int64), np.empty(k, np.int64)
    for q in range(k):
        a_at[q], b_at[q] = a_index(0, q, per_register), b_index(q, 0, per_register)
    a_known, b_known, a_special, b_special = -1, -1, False, False
    for warp in range(active.shape[0]):
        if not active[warp]:
            d[:, warp] = 0
            continue
        if which[0][warp] != a_known:
            a_known = which[0][warp]
            a_special = unpack(a, a_known, bits, a_format, A_FRACTION, a_s, a_e)
        if which[1][warp] != b_known:
            b_known = which[1][warp]
            b_special = unpack(b, b_known, bits, b_format, B_FRACTION, b_s, b_e)
            # Not in one loop with the products: a vector read right behind narrow writes waits for them.
            for q in range(k):
                for column in range(COLUMNS):
                    rows_s[q * COLUMNS + column] = b_s[b_at[q] + 4 * column]
                    rows_e[q * COLUMNS + column] = b_e[b_at[q] + 4 * column]
        special = a_special or b_special
        load_sums(c, warp, half, sums)
        for q in range(k):
            for row in range(16):
                x = a_at[q] + 32 * per_register * (row >> 3) + 4 * (row & 7)
                multiply_row(a_s[x], rows_s, q * COLUMNS, flat_s, q * OUTPUTS + row * COLUMNS)
                add_row(a_e[x], rows_e, q * COLUMNS, flat_e, q * OUTPUTS + row * COLUMNS)
        for first in range(0, k, block):
            last = min(first + block, k)
            patch = unpack_accumulator(sums, half, c_s, c_e) or special
            before[:] = sums
            fused_sum(significands, exponents, first, last, c_s, c_e, fraction_bits, total, scale, partial)
            for o in range(OUTPUTS):
                power_bits[o] = np.int64(scale[o] + np.int32(1023)) << np.int64(52)
            for o in range(OUTPUTS):
                total[o] *= power[o]
            if half:
                round_to_nearest_half(total, power_bits, power, sums)
            else:
                round_to_zero(total, sums, rounding)
            if patch:
                special_sums((a_s, a_e), (b_s, b_e), (first, last, per_register), half, before, sums)
        store_sums(sums, warp, half, d)


def multiply(
    form: MatrixForm, a: Words, b: Words, c: Words, d: Words, active: NDArray[np.bool_], which: Places
) -> None:
    how = form.accumulation
    assert how is not None
    way = form.k, BITS[form.a], how.block, how.fraction_bits, ROUNDINGS[how.rounding]
    run(a, b, c, d, active, which, FORMATS[form.a], FORMATS[form.b], way)
