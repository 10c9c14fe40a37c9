"""Rounding of floating sums: cases that tell one chip from another, special values, and a slow model."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from cuasmrl.gpu.emulator.tensor import MatrixForm, matrix_form
from tests.gpu.emulator.tensor.dense import BITS, decode, encode, multiply, slow_sum


def dot(form: MatrixForm, a: list[float], b: list[float], c: float) -> float:
    """The output in row 3, column 5; zeros fill what is not given."""
    matrix_a, matrix_b, matrix_c = np.zeros((16, form.k)), np.zeros((form.k, 8)), np.zeros((16, 8))
    matrix_a[3, : len(a)], matrix_b[: len(b), 5], matrix_c[3, 5] = a, b, c
    d = multiply(form, encode(form.a, matrix_a), encode(form.b, matrix_b), encode(form.accumulator, matrix_c))
    return float(decode(form.accumulator, d)[3, 5])


def tiny(n: int, exponent: int) -> tuple[list[float], list[float]]:
    """n products 2**exponent."""
    half = exponent // 2
    return [2.0**half] * n, [2.0 ** (exponent - half)] * n


@pytest.mark.parametrize("arch", [75, 80, 86, 89, 90, 100, 120])
def test_sums_are_cut_not_rounded(arch: int) -> None:
    form = matrix_form("HMMA.1688.F32", arch)
    # Three quarters of a last place above 1 round to nearest upwards, but are cut off.
    assert dot(form, [1.0, *tiny(3, -25)[0]], [1.0, *tiny(3, -25)[1]], 0.0) == 1.0
    assert dot(form, [2.0**-12, 2.0**-13], [2.0**-12, 2.0**-12], 1.0) == 1.0
    assert dot(form, [-(2.0**-12), -(2.0**-13)], [2.0**-12, 2.0**-12], -1.0) == -1.0


@pytest.mark.parametrize(
    ("arch", "fraction_bits"), [(75, 24), (80, 24), (86, 24), (89, 24), (90, 25), (100, 25), (120, 25)]
)
def test_bits_kept_below_the_largest_term(arch: int, fraction_bits: int) -> None:
    form = matrix_form("HMMA.1688.F32", arch)
    # 1 - 1 leaves what was kept of a small product.
    for exponent in (-23, -24, -25, -26):
        kept = 2.0**exponent if -exponent <= fraction_bits else 0.0
        a, b = tiny(1, exponent)
        assert dot(form, [1.0, *a], [1.0, *b], -1.0) == kept
        assert dot(form, [1.0, -1.0, *a], [1.0, 1.0, *b], 0.0) == kept
    # Small terms that would reach the last place together are lost one by one.
    a, b = tiny(7, -fraction_bits - 1)
    assert dot(form, [1.0, *a], [1.0, *b], -1.0) == 0.0
    a, b = tiny(4, -fraction_bits)
    assert dot(form, a, b, 1.0) == 1.0 + math.floor(2.0 ** (25 - fraction_bits)) * 2.0**-23


def test_products_are_not_normalised_before_the_alignment() -> None:
    """1.5 * 1.5 = 2.25 counts as exponent 0, so 2**-24 is kept, which below an exponent of 1 it would not."""
    form = matrix_form("HMMA.1688.F32", 80)
    a, b = tiny(1, -24)
    assert dot(form, [1.5, *a], [1.5, *b], -2.25) == 0.0
    assert dot(form, [1.5, -1.5, *a], [1.5, 1.5, *b], 0.0) == 2.0**-24


@pytest.mark.parametrize(("arch", "blocks"), [(80, 2), (86, 2), (89, 2), (90, 1), (100, 1), (120, 1)])
def test_blocks_follow_each_other_from_low_k_to_high(arch: int, blocks: int) -> None:
    form = matrix_form("HMMA.16816.F32", arch)
    # A large number and its opposite swallow a small one only within one block.
    a, b = [1.0] * 16, [0.0] * 16
    b[0], b[8], b[9] = 2.0**15, -(2.0**15), 2.0**-14
    a[0], a[8] = 2.0**14, 2.0**14
    # The first block leaves 2**29; in both models the small term meets it and is lost.
    assert dot(form, a, b, 0.0) == 0.0
    # Now the opposites meet in the first block, and the small term is alone in the second.
    b[8], b[1], a[1] = 0.0, -(2.0**15), 2.0**14
    assert dot(form, a, b, 0.0) == (2.0**-14 if blocks == 2 else 0.0)
    # The other way round the small term comes first, and is lost when the large ones arrive.
    b[9], b[2] = 0.0, 2.0**-14
    assert dot(form, a, b, 0.0) == 0.0


@pytest.mark.parametrize(("arch", "blocks"), [(80, 2), (90, 1)])
def test_halves_are_rounded_to_nearest_even_after_every_block(arch: int, blocks: int) -> None:
    form = matrix_form("HMMA.16816.F16", arch)
    step = 2.0**-10
    assert dot(form, [1.0, 1.0], [1.0, step / 2], 0.0) == 1.0
    assert dot(form, [1.0, 1.0], [1.0 + step, step / 2], 0.0) == 1.0 + 2 * step
    assert dot(form, [1.0, 1.0, 2.0**-10], [1.0, step / 2, 2.0**-13], 0.0) == 1.0 + step
    a, b = [1.0] * 16, [0.0] * 16
    b[0], b[1], b[8] = 1.0, step / 2, step / 2
    assert dot(form, a, b, 0.0) == (1.0 if blocks == 2 else 1.0 + step)
    assert dot(form, [256.0], [255.875], 0.0) == 65504.0
    assert dot(form, [256.0], [255.9375 - 0.0], 8.0) == math.inf
    assert dot(form, [-(2.0**-12)], [2.0**-12], 0.0) == -(2.0**-24)


def test_fp8_on_ada_keeps_thirteen_bits() -> None:
    ada, blackwell = (matrix_form("QMMA.16832.F32.E4M3.E4M3", arch) for arch in (89, 120))
    assert dot(ada, [1.0, 2.0**-6], [1.0, 2.0**-7], 0.0) == 1.0 + 2.0**-13
    assert dot(ada, [1.0, 2.0**-7], [1.0, 2.0**-7], 0.0) == 1.0
    assert dot(blackwell, [1.0, 2.0**-9], [1.0, 2.0**-9], 0.0) == 1.0 + 2.0**-18
    # The accumulator is cut as well, even where nothing is added to it.
    assert dot(ada, [0.0], [0.0], 1.0 + 2.0**-14) == 1.0
    assert dot(blackwell, [0.0], [0.0], 1.0 + 2.0**-23) == 1.0 + 2.0**-23


def test_all_products_at_their_largest_do_not_overflow_the_sum() -> None:
    for mnemonic, arch, largest in (
        ("HMMA.16816.F32", 90, 65504.0),
        ("QMMA.16832.F32.E4M3.E4M3", 120, 448.0),
        ("QMMA.16832.F32.E5M2.E5M2", 120, 57344.0),
    ):
        form = matrix_form(mnemonic, arch)
        row = [largest] * form.k
        c = float(np.float32(largest * largest))
        assert dot(form, row, row, c) == slow_sum(form, row, row, c)
        assert dot(form, [-x for x in row], row, -c) == -slow_sum(form, row, row, c)


def test_subnormal_numbers_count() -> None:
    form = matrix_form("HMMA.1688.F32", 75)
    assert dot(form, [2.0**-24], [2.0**-24], 0.0) == 2.0**-48
    assert dot(form, [0.0], [0.0], 2.0**-149) == 2.0**-149
    wide = matrix_form("HMMA.1688.F32.BF16", 80)
    assert dot(wide, [2.0**-133], [1.0], 0.0) == 2.0**-133
    assert dot(wide, [2.0**-100], [2.0**-49], 0.0) == 2.0**-149
    assert dot(wide, [2.0**-100], [2.0**-51], 0.0) == 0.0


def test_overflow_is_infinite_and_stays() -> None:
    form = matrix_form("HMMA.16816.F32.BF16", 80)
    large = 2.0**127
    assert dot(form, [large, large], [1.0, 1.0], 0.0) == math.inf
    assert dot(form, [large, -large], [2.0, 2.0], 1.0) == 0.0
    below = float(np.float32(3.4028234663852886e38))
    assert dot(form, [2.0**103 / 4], [2.0], below) == below
    a, b = [0.0] * 16, [1.0] * 16
    a[0] = a[1] = large
    a[8] = a[9] = -large
    assert dot(form, a, b, 0.0) == math.inf
    assert dot(matrix_form("HMMA.16816.F32.BF16", 90), a, b, 0.0) == 0.0


@pytest.mark.parametrize(
    ("mnemonic", "nan"),
    [("HMMA.16816.F32", 0x7FFFFFFF), ("HMMA.16816.F16", 0x7FFF), ("HMMA.1688.F32.TF32", 0x7FFFFFFF),
     ("QMMA.16832.F32.E5M2.E4M3", 0x7FFFFFFF)],
)  # fmt: skip
def test_infinity_and_nan(mnemonic: str, nan: int) -> None:
    form = matrix_form(mnemonic, 89)
    inf = math.inf
    for a, b, c, expected in [
        ([inf], [1.0], 0.0, inf), ([-inf], [1.0], 5.0, -inf), ([inf], [-2.0], 0.0, -inf),
        ([0.0], [1.0], -inf, -inf),
        ([inf, inf], [1.0, -1.0], 0.0, None), ([inf], [1.0], -inf, None), ([inf], [0.0], 1.0, None),
        ([math.nan], [1.0], 0.0, None), ([math.nan], [0.0], 0.0, None), ([1.0], [math.nan], 0.0, None),
        ([1.0], [1.0], math.nan, None), ([1.0], [1.0], -math.nan, None),
    ]:  # fmt: skip
        matrix_a, matrix_b, matrix_c = np.ones((16, form.k)), np.ones((form.k, 8)), np.ones((16, 8))
        matrix_a[3, -len(a) :], matrix_b[-len(b) :, 5], matrix_c[3, 5] = a, b, c
        # Elsewhere the special value meets ones: a row or column of it, and finite numbers around.
        d = multiply(
            form, encode(form.a, matrix_a), encode(form.b, matrix_b), encode(form.accumulator, matrix_c)
        )
        got = decode(form.accumulator, d)
        if expected is None:
            assert d[3, 5] == nan
        else:
            assert got[3, 5] == expected
        assert got[2, 4] == form.k + 1


def test_e4m3_has_no_infinity() -> None:
    form = matrix_form("QMMA.16832.F32.E4M3.E4M3", 120)
    assert dot(form, [448.0], [1.0], 0.0) == 448.0
    a, zero = np.zeros((16, 32), np.uint64), np.zeros((16, 8), np.uint64)
    a[0, 0], a[1, 0], a[2, 0] = 0x7F, 0xFF, 0x7E
    d = multiply(form, a, encode("E4M3", np.ones((32, 8))), zero)
    assert [int(x) for x in d[:3, 0]] == [0x7FFFFFFF, 0x7FFFFFFF, 0x43E00000]


def test_tf32_ignores_the_low_bits_of_the_register() -> None:
    form = matrix_form("HMMA.1688.F32.TF32", 80)
    assert dot(form, [1.0 + 2.0**-11 + 2.0**-23], [1.0], 0.0) == 1.0
    assert dot(form, [1.0 + 2.0**-10], [1.0], 0.0) == 1.0 + 2.0**-10


SLOW = [
    ("HMMA.1688.F32", 75), ("HMMA.16816.F32", 80), ("HMMA.16816.F16", 86), ("HMMA.16816.F32.BF16", 80),
    ("HMMA.1688.F32.TF32", 80), ("HMMA.1684.F32.TF32", 90), ("HMMA.16816.F32", 90), ("HMMA.16816.F16", 100),
    ("HMMA.1688.F32.TF32", 120), ("QMMA.16832.F32.E4M3.E5M2", 89), ("QMMA.16832.F16.E4M3.E4M3", 89),
    ("QMMA.16832.F32.E5M2.E5M2", 120), ("QMMA.16816.F16.E5M2.E4M3", 120),
]  # fmt: skip


@pytest.mark.parametrize(("mnemonic", "arch"), SLOW)
@settings(max_examples=12, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), spread=st.sampled_from([0.0, 0.2, 1.0]))
def test_any_finite_bits_agree_with_fractions(mnemonic: str, arch: int, seed: int, spread: float) -> None:
    form = matrix_form(mnemonic, arch)
    generator = np.random.default_rng(seed)
    a = patterns(generator, form.a, (16, form.k), spread)
    b = patterns(generator, form.b, (form.k, 8), spread)
    c = patterns(generator, form.accumulator, (16, 8), spread)
    got = decode(form.accumulator, multiply(form, a, b, c))
    x, y, z = decode(form.a, a), decode(form.b, b), decode(form.accumulator, c)
    for row, column in generator.integers((16, 8), size=(12, 2)):
        expected = slow_sum(form, list(x[row]), list(y[:, column]), float(z[row, column]))
        assert got[row, column] == expected, (row, column)


def patterns(
    generator: np.random.Generator, kind: str, shape: tuple[int, int], spread: float
) -> NDArray[np.uint64]:
    """Finite numbers near 1, or, with a spread of 1, any bits at all."""
    if spread < 1:
        near = np.ldexp(generator.uniform(-2, 2, shape), generator.integers(-1, 2 + int(30 * spread), shape))
        bits = encode(kind, np.clip(near, -400, 400))
    else:
        bits = generator.integers(0, 2 ** BITS[kind], shape, dtype=np.uint64)
    zeros = generator.random(shape) < 0.1
    return np.where(zeros | ~np.isfinite(decode(kind, bits)), np.uint64(0), bits)
