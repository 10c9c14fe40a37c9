"""FADD, FMUL, FFMA, FMNMX, FSEL and their packed twins."""

from fractions import Fraction
from math import copysign, inf, isnan, nan
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cuasmrl.gpu.emulator.faults import UnsupportedError
from tests.gpu.emulator.execute import execute
from tests.gpu.emulator.semantics.exact import SINGLE, fused, rounded

NAN = 0x7FFF_FFFF
TINY = 2.0**-130
MODES = ("RN", "RM", "RP", "RZ")

patterns = st.integers(0, 2**32 - 1)
# Exponents near each other and special patterns, so that sums cancel, round and underflow often.
near_one = st.tuples(st.integers(0, 1), st.integers(115, 140), st.integers(0, 2**23 - 1)).map(
    lambda parts: parts[0] << 31 | parts[1] << 23 | parts[2]
)
tiny = st.tuples(st.integers(0, 1), st.integers(0, 3), st.integers(0, 2**23 - 1)).map(
    lambda parts: parts[0] << 31 | parts[1] << 23 | parts[2]
)
numbers = st.lists(patterns | near_one | tiny, min_size=32, max_size=32)


def floats(bits: list[int]) -> list[float]:
    return [float(x) for x in np.array(bits, np.uint32).view(np.float32)]


def check(results: np.ndarray, exact: list[Fraction | None], mode: str) -> None:
    for bits, number in zip(results, exact, strict=True):
        if number is not None and number != 0:
            assert float(np.uint32(bits).view(np.float32)) == rounded(number, SINGLE, mode)


@settings(deadline=None, max_examples=60)
@given(numbers, numbers, numbers, st.sampled_from(MODES))
def test_arithmetic_rounds_once(a: list[int], b: list[int], c: list[int], mode: str) -> None:
    dot = "" if mode == "RN" else f".{mode}"
    x, y, z = floats(a), floats(b), floats(c)
    total = execute(f"FADD{dot} R1, R2, R3", R2=a, R3=b)["R1"]
    check(total, [fused(p, 1.0, q) for p, q in zip(x, y, strict=True)], mode)
    product = execute(f"FMUL{dot} R1, R2, R3", R2=a, R3=b)["R1"]
    check(product, [fused(p, q, 0.0) for p, q in zip(x, y, strict=True)], mode)
    both = execute(f"FFMA{dot} R1, R2, R3, R4", R2=a, R3=b, R4=c)["R1"]
    check(both, [fused(p, q, r) for p, q, r in zip(x, y, z, strict=True)], mode)


def test_fused_differs_from_two_roundings() -> None:
    a = 1 + 2.0**-12
    # a * a = 1 + 2**-11 + 2**-24; the last term is lost if the product is rounded first.
    assert execute("FFMA R1, R2, R2, R3", R2=a, R3=-(1 + 2.0**-11)).single("R1") == 2.0**-24


@pytest.mark.parametrize(("mode", "ulps"), [("RN", 0), ("RM", 0), ("RP", 1), ("RZ", 0)])
def test_modes_of_a_sum(mode: str, ulps: int) -> None:
    assert execute(f"FADD.{mode} R1, R2, R3", R2=1.0, R3=2.0**-30).one("R1") == 0x3F80_0000 + ulps


@pytest.mark.parametrize(("mode", "ulps"), [("RN", 0), ("RM", 1), ("RP", 0), ("RZ", 0)])
def test_modes_of_a_negative_sum(mode: str, ulps: int) -> None:
    assert execute(f"FADD.{mode} R1, R2, R3", R2=-1.0, R3=-(2.0**-30)).one("R1") == 0xBF80_0000 + ulps


@pytest.mark.parametrize(("mode", "bits"), [("RN", 0x7F80_0000), ("RZ", 0x7F7F_FFFF), ("RM", 0x7F7F_FFFF)])
def test_modes_of_an_overflow(mode: str, bits: int) -> None:
    assert execute(f"FMUL.{mode} R1, R2, R2", R2=2.0**100).one("R1") == bits


def test_rounding_down_a_zero_sum_is_negative() -> None:
    assert execute("FADD.RM R1, R2, -R2", R2=1.0).one("R1") == 0x8000_0000
    assert execute("FADD R1, R2, -R2", R2=1.0).one("R1") == 0
    assert execute("FADD.RM R1, R2, R3", R2=0.0, R3=0.0).one("R1") == 0


@pytest.mark.parametrize(
    "text",
    [
        "FADD R1, R2, R3",
        "FMUL R1, R2, R3",
        "FFMA R1, R2, R3, R3",
        "FADD.RZ R1, R2, R3",
        "FADD.FTZ R1, R2, R3",
    ],
)
@pytest.mark.parametrize("bits", [0x7FC0_0000, 0xFFC1_2345, 0x7F80_0001])
def test_there_is_one_nan(text: str, bits: int) -> None:
    assert execute(text, R2=bits, R3=1.0).one("R1") == NAN


def test_infinity_minus_infinity() -> None:
    assert execute("FADD R1, R2, -R2", R2=inf).one("R1") == NAN
    assert execute("FMUL R1, R2, RZ", R2=inf).one("R1") == NAN
    assert execute("FADD.RP R1, R2, R3", R2=inf, R3=1.0).single("R1") == inf


def test_nan_in_one_lane_spares_the_others() -> None:
    after = execute("FADD R1, R2, R3", R2=[0x7FC0_0000] + [0x3F80_0000] * 31, R3=1.0)
    assert list(after["R1"]) == [NAN] + [0x4000_0000] * 31


def test_ftz_flushes_operands_and_results() -> None:
    assert execute("FADD R1, R2, RZ", R2=TINY).single("R1") == TINY
    assert execute("FADD.FTZ R1, R2, RZ", R2=TINY).one("R1") == 0
    assert execute("FMUL.FTZ R1, R2, R3", R2=-TINY, R3=2.0**20).one("R1") == 0x8000_0000
    assert execute("FMUL.FTZ R1, R2, R3", R2=-(2.0**-100), R3=2.0**-30).one("R1") == 0x8000_0000
    assert execute("FFMA.FTZ R1, R2, R3, R4", R2=1.0, R3=1.0, R4=TINY).single("R1") == 1.0


@pytest.mark.parametrize(("a", "expected"), [(-3.0, 0.0), (0.25, 0.75), (0.75, 1.0), (nan, 0.0), (-0.5, 0.0)])
def test_sat_clamps(a: float, expected: float) -> None:
    result = execute("FADD.SAT R1, R2, 0.5", R2=a).one("R1")
    assert result == int(np.float32(expected).view(np.uint32))


def test_operand_signs_and_constants() -> None:
    assert execute("FADD R1, -R2, |R3|", R2=1.0, R3=-5.0).single("R1") == 4
    assert execute("FADD R1, -|R2|, c[0x0][0x160]", R2=-1.0, constants={0x160: 0x4000_0000}).single("R1") == 1
    assert execute("FMUL R1, R2, UR4", R2=3.0, UR4=2.0).single("R1") == 6
    assert execute("FFMA.FTZ R1, R2, -R3, 0.14084610342979431152", R2=0.0, R3=1.0).single(
        "R1"
    ) == pytest.approx(0.1408461)


def test_uniform_twins() -> None:
    assert execute("UFMUL UR1, UR2, 1.5", arch=120, UR2=2.0).single("UR1") == 3
    assert execute("UFADD UR1, UR2, UR3", arch=120, UR2=2.0, UR3=-0.5).single("UR1") == 1.5
    assert execute("UFFMA UR1, UR2, UR3, UR2", arch=120, UR2=2.0, UR3=3.0).single("UR1") == 8
    assert execute("UFSEL UR1, UR2, UR3, UP0", arch=120, UR2=2.0, UR3=3.0, UP0=True).single("UR1") == 2


def test_predicated_lanes_keep_their_value() -> None:
    active = [lane % 2 == 0 for lane in range(32)]
    after = execute("FADD R1, R2, R2", active=active, R1=7, R2=1.0)
    assert list(after["R1"]) == [0x4000_0000, 7] * 16


@pytest.mark.parametrize(
    ("a", "b", "least", "most"),
    [(1.0, 2.0, 1.0, 2.0), (-1.0, -2.0, -2.0, -1.0), (nan, 2.0, 2.0, 2.0), (2.0, nan, 2.0, 2.0),
     (-0.0, 0.0, -0.0, 0.0), (0.0, -0.0, -0.0, 0.0), (-inf, inf, -inf, inf), (-0.0, nan, -0.0, -0.0)],
)  # fmt: skip
def test_extrema(a: float, b: float, least: float, most: float) -> None:
    for predicate, expected in (("PT", least), ("!PT", most)):
        result = execute(f"FMNMX R1, R2, R3, {predicate}", R2=a, R3=b).single("R1")
        assert (result, copysign(1, result)) == (expected, copysign(1, expected))


def test_extrema_of_nans() -> None:
    assert execute("FMNMX R1, R2, R3, PT", R2=0xFFC0_0001, R3=0x7F80_0001).one("R1") == NAN
    assert execute("FMNMX.NAN R1, R2, R3, PT", R2=1.0, R3=nan).one("R1") == NAN
    assert execute("FMNMX.NAN R1, R2, R3, PT", R2=1.0, R3=2.0).single("R1") == 1
    assert execute("FMNMX.FTZ R1, R2, RZ, !PT", R2=TINY).one("R1") == 0


def test_extrema_of_three_and_by_predicate() -> None:
    assert execute("FMNMX3 R1, R2, -INF , R3, !PT", arch=100, R2=1.0, R3=nan).single("R1") == 1
    assert execute("FMNMX3.NAN R1, R2, R3, |R3|, PT", arch=100, R2=1.0, R3=-4.0).single("R1") == -4
    after = execute("FMNMX R1, R2, R3, P0", R2=1.0, R3=2.0, P0=[True, False] * 16)
    assert list(after["R1"]) == [0x3F80_0000, 0x4000_0000] * 16


def test_select_passes_bits() -> None:
    # ptxas selects upper and lower halves of doubles with it.
    assert execute("FSEL R1, R2, R3, P0", R2=0x7F80_0001, R3=2, P0=True).one("R1") == 0x7F80_0001
    assert execute("FSEL R1, R2, -INF , !P0", R2=1, P0=True).single("R1") == -inf
    assert execute("FSEL R1, RZ, -23, P0", P0=False).single("R1") == -23
    assert execute("FSEL R1, -R2, R3, PT", R2=0x7F80_0001).one("R1") == 0xFF80_0001
    assert execute("FSEL.FTZ R1, R2, R3, PT", R2=1).one("R1") == 0


def test_packed_singles() -> None:
    halves: dict[str, Any] = {"R2": 1.0, "R3": 2.0, "R4": 10.0, "R5": 20.0}
    after = execute("FADD2 R2, R2.F32x2.HI_LO, -R4.F32", arch=100, **halves)
    assert (after.single("R2"), after.single("R3")) == (-9, -8)
    after = execute("FMUL2 R6, R4.F32x2.HI_LO, 0.5", arch=100, **halves)
    assert (after.single("R6"), after.single("R7")) == (5, 10)
    text = "FFMA2 R6, R2.F32x2.HI_LO, R4.F32x2.HI_LO, R2.F32x2.HI_LO"
    after = execute(text, arch=100, **halves)
    assert (after.single("R6"), after.single("R7")) == (11, 42)
    after = execute("FADD2.FTZ.RZ R6, R2.F32x2.HI_LO, UR4.F32", arch=100, UR4=-(2.0**-30), **halves)
    assert (after.one("R6"), after.one("R7")) == (0x3F7F_FFFF, 0x3FFF_FFFF)


def test_singles_with_halves() -> None:
    register = 0xC000_3C00  # -2 above 1
    assert execute("FHADD R1, R2, R3", arch=120, R2=register, R3=0.5).single("R1") == 1.5
    assert execute("FHADD R1, R2.H1, -R3", arch=120, R2=register, R3=0.5).single("R1") == -2.5
    assert execute("FHADD R1, -R2.H1, R3", arch=120, R2=register, R3=0.5).single("R1") == 2.5
    assert execute("FHFMA R1, R2.H1, R2.H1, R3", arch=120, R2=register, R3=0.5).single("R1") == 4.5
    assert execute("FHFMA R1, |R2|, R2.H1, RZ", arch=120, R2=register).single("R1") == -2
    assert execute("FHADD.BF16.SAT R1, R2, R3", arch=120, R2=0x3F00, R3=0.25).single("R1") == 0.75
    assert (
        execute("FHFMA.BF16.RZ R1, R2.H1, R2.H1, R3", arch=120, R2=0x4040_0000, R3=-(2.0**-40)).one("R1")
        == int(np.float32(9).view(np.uint32)) - 1
    )


@pytest.mark.parametrize(
    "text",
    ["FMUL.D16 R1, R2, R3", "FADD R1, R2.H1, R3", "FADD R1, R2, R3, R4",
     "FSWZADD R1, R2, R3", "FADD2 R2, R4.F32x2.LO_HI, R6.F32", "FHADD R1, R2.H0_H0, R3"],
)  # fmt: skip
def test_refusals(text: str) -> None:
    with pytest.raises(UnsupportedError):
        execute(text)


def test_large_slabs_meet_single_numbers() -> None:
    # Above a certain size single numbers are copied before the compiled loop; the result must not change.
    from cuasmrl.gpu.emulator.semantics.ufuncs import fused_single, larger

    a = np.linspace(-1, 1, 4096, dtype=np.float32).reshape(32, 4, 32)
    b = np.full((1, 1, 1), 0.25, np.float32)
    c = a[:1]
    expected = np.float32(a.astype(np.float64) * 0.25 + c)
    assert np.allclose(fused_single(a, b, c).view(np.float32), expected)
    assert (larger(a, b).view(np.float32) == np.maximum(a, b)).all()
    assert fused_single(b, b, b).shape == (1, 1, 1)
    assert not isnan(float(fused_single(b, b, b).view(np.float32)[0, 0, 0]))


def test_products_times_a_power_of_two() -> None:
    a = 1 + 2.0**-23
    exact = np.float32(np.float64(np.float32(a)) * np.float64(np.float32(a)))
    for name, scale in (("M2", 2), ("M4", 4), ("M8", 8), ("D2", 0.5), ("D4", 0.25), ("D8", 0.125)):
        assert execute(f"FMUL.{name} R1, R2, R3", R2=a, R3=a).single("R1") == exact * scale
    # Rounded once: what is subnormal before it is scaled keeps its bits.
    assert execute("FMUL.M8 R1, R2, R3", R2=1.5 * 2.0**-75, R3=(1 + 2.0**-20) * 2.0**-75).single(
        "R1"
    ) == np.float32(1.5 * (1 + 2.0**-20) * 2.0**-147)
    assert execute("FMUL.FTZ.D8 R1, R2, R3", R2=2.0**-100, R3=2.0**-24).one("R1") == 0


def test_extrema_of_magnitudes_with_the_sign_of_the_product() -> None:
    for a, b in ((2.0, 3.0), (-2.0, 3.0), (2.0, -3.0), (-2.0, -3.0), (-0.0, 1.0)):
        sign = np.copysign(1, a) * np.copysign(1, b)
        least = execute("FMNMX.XORSIGN R1, |R2|, |R3|, PT", R2=a, R3=b).single("R1")
        most = execute("FMNMX.XORSIGN R1, |R2|, |R3|, !PT", R2=a, R3=b).single("R1")
        assert (least, np.copysign(1, least)) == (sign * min(abs(a), abs(b)), sign)
        assert most == sign * max(abs(a), abs(b))
    assert execute("FMNMX.NAN.XORSIGN R1, |R2|, |R3|, PT", R2=nan, R3=-1.0).one("R1") == 0x7FFF_FFFF
    with pytest.raises(UnsupportedError, match="signs of operands"):
        execute("FMNMX.XORSIGN R1, R2, |R3|, PT", R2=1.0, R3=1.0)
