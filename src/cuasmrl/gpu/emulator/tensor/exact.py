"""IMMA, with exact sums, and DMMA, a chain of fused multiply-adds."""

import numpy as np
from numpy.typing import NDArray

from cuasmrl.gpu.emulator.tensor.compiled import COLUMNS, compiled, fused_multiply_add, multiply_add_row
from cuasmrl.gpu.emulator.tensor.forms import BITS, MatrixForm

Words = NDArray[np.uint32]
Places = tuple[NDArray[np.int64], NDArray[np.int64]]


@compiled
def unpack(words: Words, warp: int, bits: int, signed: bool, elements: NDArray[np.int32]) -> None:
    """Elements in the order register, position in register, lane."""
    per_register, rest = 32 // bits, np.int32(32 - bits)
    for register in range(words.shape[0]):
        for position in range(per_register):
            start = (register * per_register + position) * 32
            row, up = elements[start : start + 32], np.uint32(32 - bits * (position + 1))
            for lane in range(32):
                top = np.uint32(words[register, warp, lane] << up)
                row[lane] = np.int32(top) >> rest if signed else np.int32(top >> np.uint32(rest))


@compiled
def run_integers(
    a: Words, b: Words, c: Words, d: Words, active: NDArray[np.bool_], which: Places, shape: tuple[int, int],
    bits: int, signs: tuple[bool, bool], saturate: bool,
) -> None:  # fmt: skip
    """Lane 4 * group + t holds, in register r of A, row group + 8 * h and from column per * (t + 4 * g) on
    one element per position, where r = g * halves + h; B likewise with columns for rows and no halves."""
    m, k = shape
    a_signed, b_signed = signs
    per, halves = 32 // bits, m // 8
    a_elements, b_elements = np.empty(m * k, np.int32), np.empty(COLUMNS * k, np.int32)
    rows, sums = np.empty(COLUMNS * k, np.int32), np.empty(m * COLUMNS, np.int32)
    a_at, b_at = np.empty(k, np.int64), np.empty(k, np.int64)
    for q in range(k):
        group, t, position = q // (4 * per), q % (4 * per) // per, q % per
        a_at[q] = (group * halves * per + position) * 32 + t
        b_at[q] = (group * per + position) * 32 + t
    for warp in range(active.shape[0]):
        if not active[warp]:
            d[:, warp] = 0
            continue
        unpack(a, which[0][warp], bits, a_signed, a_elements)
        unpack(b, which[1][warp], bits, b_signed, b_elements)
        sums[:] = 0
        for q in range(k):
            for column in range(COLUMNS):
                rows[q * COLUMNS + column] = b_elements[b_at[q] + 4 * column]
        for q in range(k):
            for i in range(m):
                x = a_at[q] + 32 * per * (i >> 3) + 4 * (i & 7)
                multiply_add_row(a_elements[x], rows, q * COLUMNS, sums, i * COLUMNS)
        for register in range(d.shape[0]):
            for lane in range(32):
                total = np.int64(np.int32(c[register, warp, lane]))
                total += np.int64(sums[64 * (register >> 1) + 2 * lane + (register & 1)])
                if saturate:
                    total = min(max(total, np.int64(-(2**31))), np.int64(2**31 - 1))
                d[register, warp, lane] = np.uint32(total & np.int64(0xFFFFFFFF))


@compiled
def run_doubles(
    a: Words, b: Words, c: Words, d: Words, active: NDArray[np.bool_], which: Places, shape: tuple[int, int]
) -> None:
    """A double is two registers, the low half first; lanes as for integers, with one element per pair."""
    m, k = shape
    halves = m // 8
    pattern = np.empty(1, np.uint64)
    value = pattern.view(np.float64)
    a_elements, b_elements = np.empty(m * k), np.empty(COLUMNS * k)
    for warp in range(active.shape[0]):
        if not active[warp]:
            d[:, warp] = 0
            continue
        for words, at, elements in ((a, which[0][warp], a_elements), (b, which[1][warp], b_elements)):
            for pair in range(words.shape[0] // 2):
                for lane in range(32):
                    high = np.uint64(words[2 * pair + 1, at, lane]) << np.uint64(32)
                    pattern[0] = high | np.uint64(words[2 * pair, at, lane])
                    elements[pair * 32 + lane] = value[0]
        for pair in range(d.shape[0] // 2):
            for lane in range(32):
                half, column = pair >> 1, 2 * (lane & 3) + (pair & 1)
                high = np.uint64(c[2 * pair + 1, warp, lane]) << np.uint64(32)
                pattern[0] = high | np.uint64(c[2 * pair, warp, lane])
                total = value[0]
                for q in range(k):
                    x = a_elements[((q >> 2) * halves + half) * 32 + (lane & 28) + (q & 3)]
                    y = b_elements[(q >> 2) * 32 + 4 * column + (q & 3)]
                    total = fused_multiply_add(x, y, total)
                value[0] = total
                if np.isnan(total):
                    pattern[0] = np.uint64(0xFFF8000000000000)
                d[2 * pair, warp, lane] = np.uint32(pattern[0] & np.uint64(0xFFFFFFFF))
                d[2 * pair + 1, warp, lane] = np.uint32(pattern[0] >> np.uint64(32))


def multiply(
    form: MatrixForm, a: Words, b: Words, c: Words, d: Words, active: NDArray[np.bool_], which: Places
) -> None:
    if form.opcode == "DMMA":
        run_doubles(a, b, c, d, active, which, (form.m, form.k))
        return
    signs = form.a[0] == "S", form.b[0] == "S"
    run_integers(a, b, c, d, active, which, (form.m, form.k), BITS[form.a], signs, form.saturate)
