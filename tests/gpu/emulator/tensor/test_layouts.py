"""Where elements sit: against whole matrices, and one product at a time."""

import numpy as np
import pytest

from cuasmrl.gpu.emulator.tensor import matrix_form, multiply_accumulate
from tests.gpu.emulator.tensor.dense import (
    decode,
    encode,
    from_registers,
    multiply,
    shape_of,
    to_registers,
    type_of,
)

FORMS = [
    ("HMMA.1688.F32", 75), ("HMMA.1688.F16", 80), ("HMMA.16816.F32", 80), ("HMMA.16816.F32", 90),
    ("HMMA.16816.F16", 86), ("HMMA.1688.F32.BF16", 80), ("HMMA.16816.F32.BF16", 89),
    ("HMMA.1684.F32.TF32", 80), ("HMMA.1688.F32.TF32", 90), ("QMMA.16816.F32.E4M3.E5M2", 89),
    ("QMMA.16832.F32.E5M2.E4M3", 120), ("QMMA.16832.F16.E4M3.E4M3", 89), ("IMMA.8816.S8.U8", 75),
    ("IMMA.16816.S8.S8", 80), ("IMMA.16832.U8.S8.SAT", 90), ("IMMA.8832.S4.S4", 75), ("IMMA.16832.U4.S4", 80),
    ("IMMA.16864.S4.U4", 80), ("DMMA.884", 80), ("DMMA.16x8x4", 90), ("DMMA.16x8x8", 90),
    ("DMMA.16x8x16", 90),
]  # fmt: skip


@pytest.mark.parametrize(("mnemonic", "arch"), FORMS)
def test_small_numbers_multiply_as_whole_matrices(mnemonic: str, arch: int) -> None:
    form = matrix_form(mnemonic, arch)
    generator = np.random.default_rng(1)
    # Few enough bits that no rounding can happen anywhere, not even in 13 bits or FP16.
    limit = 2 if "F16" in form.accumulator or form.opcode == "QMMA" else 3
    lows = {name: 0 if type_of(form, name)[0] == "U" else -limit for name in "abc"}
    numbers = {
        n: generator.integers(lows[n], limit + 1, (5, *shape_of(form, n))).astype(float) for n in "abc"
    }
    active = np.array([True, True, False, True, True])
    registers = {n: to_registers(form, n, encode(type_of(form, n), numbers[n])) for n in "abc"}
    d = multiply_accumulate(form, registers["a"], registers["b"], registers["c"], active)
    got = decode(form.accumulator, from_registers(form, d))
    expected = numbers["a"] @ numbers["b"] + numbers["c"]
    np.testing.assert_array_equal(got[active], expected[active])
    assert len(d) == form.d_registers
    assert all(word.flags.c_contiguous and word.shape == (5, 32) for word in d)


@pytest.mark.parametrize(("mnemonic", "arch"), FORMS)
def test_every_single_product_lands_in_its_place(mnemonic: str, arch: int) -> None:
    form = matrix_form(mnemonic, arch)
    triples = [(i, j, k) for i in range(form.m) for j in range(form.n) for k in range(form.k)]
    chosen = triples[:: max(1, len(triples) // 600)] if form.k > 16 else triples
    where = np.array(chosen)
    warps = np.arange(len(where))
    a, b = np.zeros((len(where), form.m, form.k)), np.zeros((len(where), form.k, form.n))
    a[warps, where[:, 0], where[:, 2]] = 1
    b[warps, where[:, 2], where[:, 1]] = 1
    c = np.zeros((len(where), form.m, form.n))
    expected = c.copy()
    expected[warps, where[:, 0], where[:, 1]] = 1
    registers = [
        to_registers(form, n, encode(type_of(form, n), x)) for n, x in zip("abc", (a, b, c), strict=True)
    ]
    d = multiply_accumulate(form, registers[0], registers[1], registers[2], np.ones(len(where), bool))
    np.testing.assert_array_equal(decode(form.accumulator, from_registers(form, d)), expected)


def test_registers_by_hand() -> None:
    """HMMA.16816: lane 5 is group 1, thread 1; its first register of A is row 1, columns 2 and 3."""
    form = matrix_form("HMMA.16816.F32", 80)
    a = [np.zeros((1, 32), np.uint32) for _ in range(4)]
    b = [np.zeros((1, 32), np.uint32) for _ in range(2)]
    c = [np.zeros((1, 32), np.uint32) for _ in range(4)]
    one, two, three = 0x3C00, 0x4000, 0x4200
    a[0][0, 5] = two | three << 16  # A[1, 2] = 2, A[1, 3] = 3
    a[3][0, 5] = one  # A[9, 10] = 1
    b[0][0, 4 * 6 + 1] = one << 16  # B[3, 6] = 1
    b[1][0, 4 * 7 + 1] = two  # B[10, 7] = 2
    d = multiply_accumulate(form, tuple(a), tuple(b), tuple(c), np.ones(1, bool))
    values = np.stack(d)[:, 0].view(np.float32)
    # D[1, 6] = 3 is lane 4 * 1 + 3, first register; D[9, 7] = 2 the same lane, last register.
    expected = np.zeros((4, 32), np.float32)
    expected[0, 7], expected[3, 7] = 3, 2
    np.testing.assert_array_equal(values, expected)


def test_a_wrong_number_of_registers_is_refused() -> None:
    form = matrix_form("HMMA.16816.F32", 80)
    register = np.zeros((1, 32), np.uint32)
    with pytest.raises(ValueError, match="registers"):
        multiply_accumulate(form, (register,) * 4, (register,) * 2, (register,) * 2, np.ones(1, bool))


def test_arguments_stay_as_they_are() -> None:
    form = matrix_form("HMMA.1688.F32", 75)
    registers = [np.full((2, 32), 0x3C003C00, np.uint32) for _ in range(7)]
    multiply_accumulate(form, tuple(registers[:2]), (registers[2],), tuple(registers[3:]), np.ones(2, bool))
    assert all((register == 0x3C003C00).all() for register in registers)


def test_no_warps() -> None:
    form = matrix_form("HMMA.1688.F32", 75)
    register = np.zeros((0, 32), np.uint32)
    d = multiply_accumulate(form, (register,) * 2, (register,), (register,) * 4, np.ones(0, bool))
    assert [x.shape for x in d] == [(0, 32)] * 4


def test_dense_helper_is_its_own_inverse() -> None:
    form = matrix_form("HMMA.16816.F16", 80)
    c = np.arange(128, dtype=np.uint64).reshape(1, 16, 8)
    np.testing.assert_array_equal(from_registers(form, to_registers(form, "c", c)), c)
    zero_a, zero_b = np.zeros((16, 16), np.uint64), np.zeros((16, 8), np.uint64)
    halves = encode("F16", np.arange(128.0).reshape(16, 8))
    np.testing.assert_array_equal(multiply(form, zero_a, zero_b, halves), halves)
