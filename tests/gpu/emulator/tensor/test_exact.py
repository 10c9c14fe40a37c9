"""IMMA and DMMA against whole numbers and a chain of fused multiply-adds."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cuasmrl.gpu.emulator.tensor import matrix_form
from tests.gpu.emulator.tensor.dense import BITS, decode, encode, multiply, shape_of, type_of

INTEGERS = [
    ("IMMA.8816.S8.S8", 75), ("IMMA.8816.U8.S8.SAT", 75), ("IMMA.16816.S8.U8", 80), ("IMMA.16832.S8.S8", 86),
    ("IMMA.16832.S8.S8.SAT", 90), ("IMMA.16832.U8.U8.SAT", 100), ("IMMA.16864.S4.S4", 89),
    ("IMMA.16832.U4.S4.SAT", 80), ("IMMA.8832.S4.U4", 75),
]  # fmt: skip


@pytest.mark.parametrize(("mnemonic", "arch"), INTEGERS)
@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), edge=st.booleans())
def test_integers_are_exact_and_wrap_or_saturate(mnemonic: str, arch: int, seed: int, edge: bool) -> None:
    form = matrix_form(mnemonic, arch)
    generator = np.random.default_rng(seed)
    bits = {
        n: generator.integers(0, 2 ** BITS[type_of(form, n)], shape_of(form, n), dtype=np.uint64)
        for n in "abc"
    }
    if edge:
        bits["c"] = generator.choice(np.array([0x7FFFFFFF, 0x80000000], np.uint64), shape_of(form, "c"))
    a, b, c = (decode(type_of(form, n), bits[n]).astype(np.int64) for n in "abc")
    expected = a @ b + c
    if form.saturate:
        expected = expected.clip(-(2**31), 2**31 - 1)
    got = multiply(form, bits["a"], bits["b"], bits["c"])
    np.testing.assert_array_equal(got, expected.view(np.uint64) & np.uint64(0xFFFFFFFF))


def test_saturation_by_hand() -> None:
    ones, c = np.ones((16, 32)), np.full((16, 8), 2**31 - 10)
    a, b, patterns = encode("S8", ones), encode("S8", ones.reshape(32, 16)[:, :8]), encode("S32", c)
    assert (multiply(matrix_form("IMMA.16832.S8.S8", 80), a, b, patterns) == 2**31 + 22).all()
    assert (multiply(matrix_form("IMMA.16832.S8.S8.SAT", 80), a, b, patterns) == 2**31 - 1).all()


@pytest.mark.parametrize(("mnemonic", "arch"), [("DMMA.884", 80), ("DMMA.8x8x4", 120), ("DMMA.16x8x16", 90)])
def test_doubles_are_a_chain_in_the_order_of_k(mnemonic: str, arch: int) -> None:
    form = matrix_form(mnemonic, arch)
    generator = np.random.default_rng(5)
    a, b, c = (
        np.ldexp(generator.uniform(-1, 1, shape_of(form, n)), generator.integers(-30, 30, shape_of(form, n)))
        for n in "abc"
    )
    got = decode("F64", multiply(form, encode("F64", a), encode("F64", b), encode("F64", c)))
    for row in range(form.m):
        for column in range(form.n):
            total = float(c[row, column])
            for k in range(form.k):
                total = float(Fraction(float(a[row, k])) * Fraction(float(b[k, column])) + Fraction(total))
            assert got[row, column] == total


def test_double_specials() -> None:
    form = matrix_form("DMMA.884", 80)
    a, b, c = np.ones((8, 4)), np.ones((4, 8)), np.zeros((8, 8))
    a[0, 0], a[1, 0], c[1, 0] = math.inf, math.inf, -math.inf
    d = multiply(form, encode("F64", a), encode("F64", b), encode("F64", c))
    assert decode("F64", d)[0, 0] == math.inf
    assert d[1, 0] == 0xFFF8000000000000
    assert decode("F64", d)[2, 0] == 4.0
