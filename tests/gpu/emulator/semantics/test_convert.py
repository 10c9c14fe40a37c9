"""F2F, FRND, F2I, I2F, I2FP, I2IP."""

from fractions import Fraction
from math import inf, nan

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cuasmrl.gpu.emulator.faults import UnsupportedError
from tests.gpu.emulator.execute import execute
from tests.gpu.emulator.semantics.exact import BFLOAT, DOUBLE, HALF, SINGLE, rounded

MODES = ("RN", "RM", "RP", "RZ")


def half(bits: int) -> float:
    return float(np.uint16(bits).view(np.float16))


# between floats


@pytest.mark.parametrize(("mode", "bits"), [("RN", 0x3C01), ("RM", 0x3C00), ("RP", 0x3C01), ("RZ", 0x3C00)])
def test_narrowing_modes(mode: str, bits: int) -> None:
    number = 1 + 2.0**-11 + 2.0**-20  # just above the middle of two halves
    assert execute(f"F2F.F16.F32.{mode} R1, R2", R2=number).one("R1") == bits
    assert execute(f"F2F.F16.F64.{mode} R1, R2", R2_double=number).one("R1") == bits


def test_doubles_are_rounded_once() -> None:
    # Through a single the tail would be lost first, and the tie then go to even.
    number = 1 + 2.0**-11 + 2.0**-40
    assert execute("F2F.F16.F64 R1, R2", R2_double=number).one("R1") == 0x3C01
    assert execute("F2F.BF16.F64 R1, R2", arch=90, R2_double=1 + 2.0**-8 + 2.0**-40).one("R1") == 0x3F81
    assert execute("F2F.BF16.F64 R1, R2", arch=90, R2_double=1 + 2.0**-8).one("R1") == 0x3F80


@settings(deadline=None, max_examples=40)
@given(
    st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=32, max_size=32),
    st.sampled_from(MODES),
)
def test_narrowing_doubles(numbers: list[float], mode: str) -> None:
    scaled = [x if abs(x) < 1e30 else x / 1e290 for x in numbers]
    for name, kind in (("F32", SINGLE), ("F16", HALF), ("BF16", BFLOAT)):
        bits = execute(f"F2F.{name}.F64.{mode} R1, R2", arch=90, R2_double=np.array(scaled))["R1"]
        if kind is BFLOAT:
            bits = bits << 16
        found = bits.astype(np.uint16).view(np.float16) if kind is HALF else bits.view(np.float32)
        for x, number in zip(found, scaled, strict=True):
            assert float(x) == rounded(Fraction(number), kind, mode)


def test_other_floats() -> None:
    assert execute("F2F.F64.F32 R2, R4", R4=0.1).double("R2") == float(np.float32(0.1))
    assert execute("F2F.F64.F16 R2, R4.H1", R4=0xC000_0000).double("R2") == -2
    assert execute("F2F.F16.F32 R1, R2", R2=70000.0).one("R1") == 0x7C00
    assert execute("F2F.F16.F32 R1, -R2", R2=2.0**-24).one("R1") == 0x8001
    assert execute("F2F.F16.F32 R1, c[0x0][0x170]", constants={0x170: 0x3F80_0000}).one("R1") == 0x3C00
    assert execute("F2F.F32.F64 R1, R2", R2_double=nan).one("R1") == 0x7FFF_FFFF
    assert execute("F2F.F16.F32 R1, R2", R2=nan).one("R1") == 0x7FFF
    assert execute("F2F.BF16.F16 R1, R2", arch=90, R2=0x3C01).one("R1") == 0x3F80
    assert execute("F2F.F16.BF16 R1, R2.H1", arch=90, R2=0x4040_0000).one("R1") == 0x4200
    assert execute("F2F.FTZ.F32.F64 R1, R2", R2_double=2.0**-130).one("R1") == 0


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("", (2.0, -2.0, 2.0)),
        (".TRUNC", (2.0, -2.0, 1.0)),
        (".FLOOR", (2.0, -3.0, 1.0)),
        (".CEIL", (3.0, -2.0, 2.0)),
    ],
)
def test_whole_floats(mode: str, expected: tuple[float, float, float]) -> None:
    for number, whole in zip((2.5, -2.5, 1.75), expected, strict=True):
        assert execute(f"FRND{mode} R1, R2", R2=number).single("R1") == whole
        assert execute(f"FRND.F64{mode} R2, R4", R4_double=number).double("R2") == whole
        bits = int(np.float16(number).view(np.uint16))
        assert half(execute(f"FRND.F16{mode} R1, R2.H1", R2=bits << 16).one("R1")) == whole


def test_whole_floats_at_the_edges() -> None:
    assert execute("FRND R1, R2", R2=-0.25).one("R1") == 0x8000_0000
    assert execute("FRND.CEIL R1, R2", R2=2.0**-130).single("R1") == 1
    assert execute("FRND.FTZ.CEIL R1, R2", R2=2.0**-130).one("R1") == 0
    assert execute("FRND R1, R2", R2=0xFFC0_0000).one("R1") == 0x7FFF_FFFF


# floats to integers


@pytest.mark.parametrize(("mode", "expected"), [("", 2), (".TRUNC", 2), (".FLOOR", 2), (".CEIL", 3)])
def test_rounding_to_integers(mode: str, expected: int) -> None:
    assert execute(f"F2I{mode}.NTZ R1, R2", R2=2.5).one("R1") == expected
    assert execute(f"F2I.U32.F64{mode} R1, R2", R2_double=2.5).one("R1") == expected


@pytest.mark.parametrize(
    ("kind", "number", "expected"),
    [("", 3e9, 0x7FFF_FFFF), ("", -3e9, 0x8000_0000), ("", -1.5, 0xFFFF_FFFE), (".U32", 5e9, 0xFFFF_FFFF),
     (".U32", -1.0, 0), (".U32", 4e9, 4_000_000_000), (".S16", 40000.0, 0x7FFF),
     (".S16", -40000.0, 0xFFFF_8000),
     (".U16", 70000.0, 0xFFFF), (".S8", -3.0, 0xFFFF_FFFD), (".S8", 200.0, 127), (".U8", 300.0, 255),
     (".U32", inf, 0xFFFF_FFFF), ("", -inf, 0x8000_0000), ("", nan, 0), (".U32", nan, 0)],
)  # fmt: skip
def test_integers_saturate(kind: str, number: float, expected: int) -> None:
    assert execute(f"F2I{kind}.NTZ R1, R2", R2=number).one("R1") == expected


@pytest.mark.parametrize(
    ("kind", "number", "expected"),
    [("S64", 1e19, 2**63 - 1), ("S64", -1e19, 2**63), ("S64", -2.0, 2**64 - 2), ("U64", 1e20, 2**64 - 1),
     ("U64", -1.0, 0), ("U64", 2.0**63, 2**63), ("S64", nan, 2**63), ("U64", nan, 2**63),
     ("U64", inf, 2**64 - 1),
     ("S64", -(2.0**63), 2**63), ("S64", 2.0**63, 2**63 - 1)],
)  # fmt: skip
def test_long_integers(kind: str, number: float, expected: int) -> None:
    assert execute(f"F2I.{kind}.F64.TRUNC R4, R2", R2_double=number).long("R4") == expected
    assert execute(f"F2I.{kind}.TRUNC R4, R2", R2=number).long("R4") == expected


def test_nan_without_ntz_sets_the_first_bit() -> None:
    assert execute("F2I.F64.TRUNC R1, R2", R2_double=nan).one("R1") == 0x8000_0000
    assert execute("F2I.U32.F64.TRUNC R1, R2", R2_double=nan).one("R1") == 0x8000_0000


def test_other_sources_of_integers() -> None:
    assert execute("F2I.F16.TRUNC.NTZ R1, R2.H1", R2=0xC580_0000).one("R1") == 0xFFFF_FFFB  # -5.5
    assert execute("F2I.BF16.TRUNC.NTZ R1, R2", arch=90, R2=0x4060).one("R1") == 3
    assert execute("F2I.S64.F16.TRUNC R4, R2", R2=0xC580).long("R4") == 2**64 - 5
    assert execute("F2I.CEIL.NTZ R1, R2", R2=2.0**-130).one("R1") == 1
    assert execute("F2I.FTZ.CEIL.NTZ R1, R2", R2=2.0**-130).one("R1") == 0
    assert execute("F2I.FTZ.U32.TRUNC.NTZ R1, R2", R2=2.0**31 + 256).one("R1") == 2**31 + 256
    assert execute("UF2I.FTZ.U32.TRUNC.NTZ UR5, UR4", arch=120, UR4=7.9).one("UR5") == 7


# integers to floats


@pytest.mark.parametrize(
    ("mode", "expected"), [("", 2.0**24), (".RP", 2.0**24 + 2), (".RM", 2.0**24), (".RZ", 2.0**24)]
)
def test_integers_that_do_not_fit_a_single(mode: str, expected: float) -> None:
    assert execute(f"I2F{mode} R1, R2", R2=2**24 + 1).single("R1") == expected
    assert execute(f"I2F.U32{mode} R1, R2", R2=2**24 + 1).single("R1") == expected
    assert execute(f"I2FP.F32.U32{mode} R1, R2", arch=89, R2=2**24 + 1).single("R1") == expected


@settings(deadline=None, max_examples=40)
@given(
    st.lists(st.integers(0, 2**64 - 1) | st.integers(2**53, 2**55), min_size=32, max_size=32),
    st.sampled_from(MODES),
)
def test_long_integers_are_rounded_once(bits: list[int], mode: str) -> None:
    words = np.array(bits, np.uint64)
    signed = [x - (1 << 64) if x >> 63 else x for x in bits]
    for name, numbers in (("U64", bits), ("S64", signed)):
        single = execute(f"I2F.{name}.{mode} R1, R2", R2_long=words)["R1"].view(np.float32)
        assert [float(x) for x in single] == [rounded(Fraction(x), SINGLE, mode) for x in numbers]
        after = execute(f"I2F.F64.{name}.{mode} R4, R2", R2_long=words)
        double = (after["R5"].astype(np.uint64) << np.uint64(32) | after["R4"]).view(np.float64)
        assert [float(x) for x in double] == [rounded(Fraction(x), DOUBLE, mode) for x in numbers]


@pytest.mark.parametrize(
    ("text", "expected"),
    [("I2F.U8 R1, R2", 0x84), ("I2F.U8 R1, R2.B1", 0x83), ("I2F.S8 R1, R2.B3", 0x81 - 256),
     ("I2F.U8 R1, R2.B2", 2),
     ("I2F.U16 R1, R2", 0x8384), ("I2F.S16 R1, R2.H1", 0x8102 - 65536), ("I2F.S16 R1, R2.H0", 0x8384 - 65536),
     ("I2F.U32 R1, R2", 0x8102_8400), ("I2F R1, R2", -0x7EFD_7C80)],
)  # fmt: skip
def test_parts_of_a_register(text: str, expected: float) -> None:
    assert execute(text, R2=0x8102_8384).single("R1") == expected


def test_integers_to_other_floats() -> None:
    assert execute("I2F.F64 R2, R4", R4=-7).double("R2") == -7
    assert execute("I2F.F64.U32 R2, R4", R4=2**32 - 1).double("R2") == 2**32 - 1
    assert execute("I2F.F16 R1, R2", R2=2049).one("R1") == 0x6800
    assert execute("I2F.F16.U32 R1, R2", R2=70000).one("R1") == 0x7C00
    assert execute("I2F.F16.S64 R1, R2", R2_long=2**64 - 3).one("R1") == 0xC200
    assert execute("I2F.BF16 R1, R2", arch=90, R2=257).one("R1") == 0x4380
    assert execute("I2FP.F32.S32 R1, c[0x0][0x198]", arch=89, constants={0x198: 2**32 - 1}).single("R1") == -1
    assert execute("I2F.RP R1, UR4", UR4=2**24 + 1).single("R1") == 2**24 + 2
    assert execute("UI2F.RP UR1, UR4", arch=120, UR4=2**24 + 1).single("UR1") == 2**24 + 2
    assert execute("UI2FP.F32.U32 UR1, UR4", arch=120, UR4=3).single("UR1") == 3
    assert execute("I2F R1, R2", R2=0).one("R1") == 0


def test_packing_integers() -> None:
    after = execute("I2IP.S8.S32.SAT R1, R2, R3, R4", R2=-300, R3=5, R4=0x1234_5678)
    assert after.one("R1") == 0x5678_8005
    assert execute("I2IP.U8.S32.SAT R1, R2, R3, RZ", R2=-300, R3=300).one("R1") == 0x00FF
    assert execute("I2IP.U16.S32.SAT R1, R2, R3, RZ", R2=70000, R3=-1).one("R1") == 0xFFFF_0000
    assert execute("I2IP.S16.S32.SAT R1, R2, R3, RZ", R2=-2, R3=-70000).one("R1") == 0xFFFE_8000


def test_packing_floats() -> None:
    after = execute("F2IP.S8.F32.NTZ R1, R2, R3, R4", arch=89, R2=-300.0, R3=2.5, R4=0x1234_5678)
    assert after.one("R1") == 0x5678_8002
    assert execute("F2IP.S8.F32.TRUNC.NTZ R1, R2, R3, RZ", arch=89, R2=-1.5, R3=1.5).one("R1") == 0xFF01
    assert execute("F2IP.U8.F32.NTZ R1, R2, R3, UR6", arch=90, R2=-1.0, R3=300.0, UR6=7).one("R1") == 0x7_00FF
    assert execute("F2IP.S8.F32.NTZ R1, R2, -R3, RZ", arch=89, R2=nan, R3=inf).one("R1") == 0x0080


@pytest.mark.parametrize(
    "text",
    ["F2F.F32 R1, R2", "I2F R1, -R2", "I2F.U8 R1, R2.H1", "I2F R1, R2.B1", "F2I.FOO R1, R2",
     "I2IP.U4.S32.SAT R1, R2, R3, R4",
     "I2IP.S8.S32 R1, R2, R3, R4",
     "F2IP.S8.F32 R1, R2, R3, R4"],
)  # fmt: skip
def test_refusals(text: str) -> None:
    with pytest.raises(UnsupportedError):
        execute(text)
