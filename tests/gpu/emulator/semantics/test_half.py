"""HADD2, HMUL2, HFMA2, HMNMX2, HSET2, HSETP2."""

from math import isinf, isnan
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cuasmrl.gpu.emulator.faults import UnsupportedError
from tests.gpu.emulator.execute import execute
from tests.gpu.emulator.semantics.exact import BFLOAT, HALF, Format, fused, rounded

words = st.lists(
    st.integers(0, 2**32 - 1)
    | st.sampled_from([0x3C01_0400, 0x0001_8001, 0x7BFF_FBFF, 0x1400_13FF, 0x3555_B555]),
    min_size=32,
    max_size=32,
)


def pack(high: float, low: float) -> int:
    bits = np.array([low, high], np.float16).view(np.uint32)
    return int(bits[0])


def unpack(word: int) -> tuple[float, float]:
    low, high = np.array([word], np.uint32).view(np.float16)
    return float(high), float(low)


def values(bits: np.ndarray, kind: Format) -> list[float]:
    halves = bits.astype(np.uint32).view(np.uint16)
    if kind is BFLOAT:
        return [float(x) for x in (halves.astype(np.uint32) << 16).view(np.float32)]
    return [float(x) for x in halves.view(np.float16)]


@settings(deadline=None, max_examples=60)
@given(words, words, words, st.sampled_from([HALF, BFLOAT]))
def test_arithmetic_rounds_once(a: list[int], b: list[int], c: list[int], kind: Format) -> None:
    dot = ".BF16_V2" if kind is BFLOAT else ""
    x, y, z = (values(np.array(bits), kind) for bits in (a, b, c))
    cases = {
        f"HADD2{dot} R1, R2, R4": [fused(p, 1.0, r) for p, r in zip(x, z, strict=True)],
        f"HMUL2{dot} R1, R2, R3": [fused(p, q, 0.0) for p, q in zip(x, y, strict=True)],
        f"HFMA2{dot} R1, R2, R3, R4": [fused(p, q, r) for p, q, r in zip(x, y, z, strict=True)],
    }
    for text, exact in cases.items():
        found = values(execute(text, arch=90, R2=a, R3=b, R4=c)["R1"], kind)
        for value, number in zip(found, exact, strict=True):
            if number is not None and number != 0:
                assert value == rounded(number, kind)


@pytest.mark.parametrize(("addend", "expected"), [(0.0, 260), (2.0**-100, 260), (-(2.0**-100), 258)])
def test_an_addend_beyond_float64_decides_a_tie(addend: float, expected: float) -> None:
    # 7 * 37 = 259 lies in the middle between two bfloat16 numbers.
    tiny = int(np.float32(addend).view(np.uint32)) >> 16
    after = execute("HFMA2.BF16_V2 R1, R2, R3, R4", arch=90, R2=0x40E0, R3=0x4214, R4=tiny)
    assert values(after["R1"][:1], BFLOAT) == [expected, 0]


def test_fused_differs_from_two_roundings() -> None:
    # (1 + 2**-10)**2 - (1 + 2**-9) is 2**-20; a rounded product would leave nothing.
    a = 1 + 2.0**-10
    after = execute("HFMA2 R1, R2, R2, -R3", R2=pack(a, a), R3=pack(1 + 2.0**-9, 0))
    assert unpack(after.one("R1")) == (2.0**-20, float(np.float16(a * a)))


@pytest.mark.parametrize(
    ("text", "expected"),
    [("HFMA2.MMA R1, -RZ, RZ, 1.625, 0", 0x3E80_0000),
     ("HFMA2.MMA R1, -RZ, RZ, 0, 1.1920928955078125e-07", 2),
     ("HFMA2.MMA R1, -RZ, RZ, -INF , -INF ", 0xFC00_FC00), ("HFMA2 R1, -RZ, RZ, 0, 0", 0),
     ("HFMA2 R1, -RZ, RZ, -0.0 , 1", 0x8000_3C00)],
)  # fmt: skip
def test_constants_are_loaded_with_it(text: str, expected: int) -> None:
    assert execute(text).one("R1") == expected


def test_immediates_stand_upper_first() -> None:
    assert unpack(execute("HFMA2.MMA R1, R2, 1, 3, R3", R2=pack(2, 5), R3=pack(10, 20)).one("R1")) == (12, 35)
    assert unpack(execute("HADD2 R1, R2.H0_H0, 1, 3", R2=pack(2, 5)).one("R1")) == (6, 8)
    assert execute("HFMA2.BF16_V2 R1, R2, 1, 2, RZ", R2=0x4040_4040).one("R1") == 0x4040_40C0


@pytest.mark.parametrize(
    ("operand", "expected"),
    [("R2", (3, -2)), ("R2.H0_H0", (-2, -2)), ("R2.H1_H1", (3, 3)), ("-R2", (-3, 2)), ("|R2|", (3, 2)),
     ("-|R2|", (-3, -2)), ("-R2.H1_H1", (-3, -3))],
)  # fmt: skip
def test_selectors_and_signs(operand: str, expected: tuple[float, float]) -> None:
    assert unpack(execute(f"HADD2 R1, {operand}, -RZ.H0_H0", R2=pack(3, -2)).one("R1")) == expected
    assert unpack(execute(f"HMUL2 R1, R3, {operand}", R2=pack(3, -2), R3=pack(1, 1)).one("R1")) == expected


@pytest.mark.parametrize(
    ("text", "bits"),
    [("HADD2.F32 R1, -RZ, R2.H0_H0", 0xC000_0000), ("HADD2.F32 R1, -RZ, R2.H1_H1", 0x3380_0000),
     ("HADD2.F32 R1, R2.reuse.H1_H1, -RZ.H0_H0", 0x3380_0000), ("HADD2.F32 R1, -RZ, -R2.H0_H0", 0x4000_0000)],
)  # fmt: skip
def test_widening_to_a_single(text: str, bits: int) -> None:
    assert execute(text, R2=0x0001_C000).one("R1") == bits


def test_widening_keeps_the_sign_of_zero_and_has_one_nan() -> None:
    assert execute("HADD2.F32 R1, -RZ, R2.H0_H0", R2=0x8000).one("R1") == 0x8000_0000
    assert execute("HADD2.F32 R1, RZ, R2.H0_H0", R2=0x8000).one("R1") == 0
    for nan in (0x7E01, 0xFC01):
        assert execute("HADD2.F32 R1, -RZ, R2.H0_H0", R2=nan).one("R1") == 0x7FFF_FFFF
        assert execute("HADD2.F32 R1, -RZ, -R2.H0_H0", R2=nan).one("R1") == 0x7FFF_FFFF


@pytest.mark.parametrize("dot", ["", ".BF16_V2"])
def test_there_is_one_nan(dot: str) -> None:
    assert execute(f"HADD2{dot} R1, R2, R3", arch=90, R2=0xFFFF_7FC1, R3=0).one("R1") == 0x7FFF_7FFF
    assert execute(f"HFMA2{dot} R1, R2, RZ, RZ", arch=90, R2=0x7F80_7F80).one("R1") == 0x7FFF_7FFF


def test_modifiers() -> None:
    assert execute("HFMA2.FTZ R1, R2, 1, 1, RZ", R2=0x83FF_0400).one("R1") == 0x0000_0400
    assert execute("HMUL2.FTZ R1, R2, R3", R2=0x0400_0400, R3=pack(-0.5, 1)).one("R1") == 0x8000_0400
    assert unpack(execute("HADD2.SAT R1, R2, R3", R2=pack(2, -1), R3=pack(0, 0.5)).one("R1")) == (1, 0)
    assert execute("HADD2.SAT R1, R2, RZ", R2=0x7FFF_3800).one("R1") == 0x0000_3800
    assert execute("HFMA2.RELU R1, R2, 1, 1, RZ", R2=0xBC00_7E00).one("R1") == 0x0000_7FFF
    assert (
        execute("HFMA2.BF16_V2.RELU R1, R2, R3, RZ", R2=0xBF80_4000, R3=0x3F80_3F80).one("R1") == 0x0000_4000
    )


def test_extrema() -> None:
    a, b = 0x7E00_8000, 0x4000_0000  # (NaN, -0) and (2, +0)
    assert execute("HMNMX2 R1, R2, R3, PT", R2=a, R3=b).one("R1") == 0x4000_8000
    assert execute("HMNMX2 R1, R2, R3, !PT", R2=a, R3=b).one("R1") == 0x4000_0000
    assert execute("HMNMX2.NAN R1, R2, R3, !PT", R2=a, R3=b).one("R1") == 0x7FFF_0000
    assert execute("HMNMX2.FTZ R1, R2, R3, !PT", R2=1, R3=0x8000_8000).one("R1") == 0
    assert execute("HMNMX2 R1, R2.H0_H0, 0.5, 3, P0", R2=pack(0, 1), P0=False).one("R1") == pack(1, 3)
    assert execute("HMNMX2.BF16_V2 R1, R2, R3, !PT", R2=0x4000_BF80, R3=0x3F80_3F80).one("R1") == 0x4000_3F80


def test_comparisons() -> None:
    pair: dict[str, Any] = {"R2": pack(1, 5), "R3": pack(2, 4)}
    assert execute("HSET2.BF.GT.AND R1, R2, R3, PT", **pair).one("R1") == 0x0000_3C00
    assert execute("HSET2.LE.AND R1, R2, R3, PT", **pair).one("R1") == 0xFFFF_0000
    assert execute("HSET2.BF.BF16_V2.GT.AND R1, R2, R3, PT", arch=90, **pair).one("R1") == 0x0000_3F80
    after = execute("HSETP2.GT.AND P0, P1, R2, R3, PT", **pair)
    assert (after.one("P0"), after.one("P1")) == (1, 0)
    after = execute("HSETP2.GEU.OR P0, P1, R2, 1, 6, P2", R2=0x7E00_7E00, P2=False)
    assert (after.one("P0"), after.one("P1")) == (1, 1)
    after = execute("HSETP2.T.AND P0, PT, R2.H0_H0, R3.H0_H0, !P2", P2=[True, False] * 16)
    assert list(after["P0"]) == [False, True] * 16
    after = execute("HSETP2.BF16_V2.LT.AND P0, P1, R2, R3, PT", arch=90, R2=0x3F80_4000, R3=0x4000_3F80)
    assert (after.one("P0"), after.one("P1")) == (0, 1)


def test_all_halves_widen_exactly() -> None:
    for start in range(0, 1 << 16, 1 << 13):
        bits = np.arange(start, start + (1 << 13), 256, dtype=np.uint32)
        found = execute("HADD2.F32 R1, -RZ, R2.H0_H0", R2=bits)["R1"].view(np.float32)
        expected = bits.astype(np.uint16).view(np.float16)
        for x, y in zip(found, expected, strict=True):
            assert float(x) == float(y) or (isnan(x) and isnan(y))
            assert isinf(x) == isinf(y)


@pytest.mark.parametrize(
    "text",
    ["HADD2 R1, R2.F32, -RZ.H0_H0", "HADD2.F32 R1, R2.H0_H0, R3.H0_H0", "HADD2.F32 R1, -RZ, R2",
     "HMNMX2.XORSIGN R1, |R2|, |R3|, PT", "HSETP2.H_AND.GT.AND P0, P1, R2, R3, PT", "HFMA2 R1, R2, 1, R3",
     "HFMA2.F32 R1, R2, R3, R4"],
)  # fmt: skip
def test_refusals(text: str) -> None:
    with pytest.raises(UnsupportedError):
        execute(text)
