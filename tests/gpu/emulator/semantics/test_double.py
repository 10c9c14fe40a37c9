"""DADD, DMUL, DFMA."""

from math import inf, nan

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.gpu.emulator.execute import execute
from tests.gpu.emulator.semantics.exact import DOUBLE, fused, rounded

NAN = 0xFFF8_0000_0000_0000
LARGEST = float(DOUBLE.maximum)

numbers = st.lists(
    st.floats(allow_nan=False, allow_infinity=False)
    | st.floats(-1e-300, 1e-300)
    | st.floats(-1e20, 1e20)
    | st.integers(-(2**53), 2**53).map(float),
    min_size=32,
    max_size=32,
)


def doubles(after: object, name: str) -> list[float]:
    index = int(name[1:])
    low, high = after[name].astype(np.uint64), after[f"R{index + 1}"].astype(np.uint64)  # type: ignore[index]
    return [float(x) for x in (high << np.uint64(32) | low).view(np.float64)]


@settings(deadline=None, max_examples=60)
@given(numbers, numbers, numbers, st.sampled_from(["RN", "RM", "RP", "RZ"]))
def test_arithmetic_rounds_once(a: list[float], b: list[float], c: list[float], mode: str) -> None:
    x, y, z = (np.array(numbers) for numbers in (a, b, c))
    cases = {
        "DADD{} R6, R0, R2": [fused(p, 1.0, q) for p, q in zip(a, b, strict=True)],
        "DMUL{} R6, R0, R2": [fused(p, q, 0.0) for p, q in zip(a, b, strict=True)],
        "DFMA{} R6, R0, R2, R4": [fused(p, q, r) for p, q, r in zip(a, b, c, strict=True)],
    }
    for text, exact in cases.items():
        after = execute(
            text.format("" if mode == "RN" else f".{mode}"), R0_double=x, R2_double=y, R4_double=z
        )
        for found, number in zip(doubles(after, "R6"), exact, strict=True):
            assert number is not None
            assert found == rounded(number, DOUBLE, mode)


def test_fused_differs_from_two_roundings() -> None:
    a = 1 + 2.0**-30
    after = execute("DFMA R6, R0, R0, -R2", R0_double=a, R2_double=1 + 2.0**-29)
    assert after.double("R6") == 2.0**-60


@pytest.mark.parametrize(("mode", "expected"), [("RN", inf), ("RP", inf), ("RM", LARGEST), ("RZ", LARGEST)])
def test_overflow(mode: str, expected: float) -> None:
    for text in ("DADD.{} R6, R0, R0", "DMUL.{} R6, R0, R2", "DFMA.{} R6, R0, R2, R0"):
        after = execute(text.format(mode), R0_double=LARGEST, R2_double=2.0)
        assert after.double("R6") == expected
    assert execute(f"DADD.{mode} R6, R0, R2", R0_double=inf, R2_double=1.0).double("R6") == inf


def test_signs_and_immediates() -> None:
    assert execute("DADD R2, -RZ, |R2|", R2_double=-3.0).double("R2") == 3
    assert execute("DADD R2, -RZ, -R2", R2_double=0.0).long("R2") == 1 << 63
    assert execute("DMUL R2, R2, 0.5", R2_double=3.0).double("R2") == 1.5
    assert execute("DFMA R2, R2, -R4, 1", R2_double=3.0, R4_double=2.0).double("R2") == -5
    assert execute("DADD.RM R2, R2, -R4", R2_double=3.0, R4_double=3.0).long("R2") == 1 << 63


@pytest.mark.parametrize(
    "text", ["DADD R6, R0, R2", "DMUL R6, R0, R2", "DFMA R6, R0, R2, R2", "DADD.RZ R6, R0, R2"]
)
def test_there_is_one_nan(text: str) -> None:
    assert execute(text, R0_double=nan, R2_double=1.0).long("R6") == NAN
