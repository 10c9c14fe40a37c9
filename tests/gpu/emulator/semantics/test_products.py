"""Multiply-add in all widths."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuasmrl.gpu.emulator.faults import UnsupportedError
from tests.gpu.emulator.execute import execute

M, M64 = 0xFFFF_FFFF, (1 << 64) - 1
WORDS = st.one_of(st.integers(0, M), st.sampled_from((0, 1, 2, 0x7FFF_FFFF, 0x8000_0000, M - 1, M)))
LONGS = st.one_of(st.integers(0, M64), st.sampled_from((0, M, 1 << 32, 1 << 63, M64)))


def signed(a: int) -> int:
    return a - (1 << 32) if a >> 31 else a


@given(WORDS, WORDS, WORDS)
def test_low_product(a: int, b: int, c: int) -> None:
    assert execute("IMAD R0, R1, R2, R3", R1=a, R2=b, R3=c).one("R0") == a * b + c & M
    assert execute("IMAD R0, R1, R2, -R3", R1=a, R2=b, R3=c).one("R0") == a * b - c & M


def test_moves_and_sums_in_disguise() -> None:
    assert execute("IMAD.MOV.U32 R0, RZ, RZ, 0x7f").one("R0") == 0x7F
    assert execute("IMAD.MOV R0, RZ, RZ, -R1", R1=1).one("R0") == M
    assert execute("IMAD.U32 R0, RZ, RZ, UR1", UR1=3).one("R0") == 3
    assert execute("IMAD.IADD R0, R1, 0x1, -R2", R1=3, R2=4).one("R0") == M
    assert execute("IMAD.SHL.U32 R0, R1, 0x8, RZ", R1=0x2000_0001).one("R0") == 8
    assert execute("UIMAD UR0, UR1, UR2, UR3", UR1=3, UR2=5, UR3=M).one("UR0") == 14


def test_carry_in() -> None:
    assert execute("IMAD.X R0, RZ, RZ, R1, P0", R1=M, P0=True).one("R0") == 0
    assert execute("IMAD.X R0, R1, 0x1, ~R2, P0", R1=10, R2=3, P0=True).one("R0") == 7
    assert execute("IMAD.X R0, R1, 0x1, ~R2, P0", R1=10, R2=3, P0=False).one("R0") == 6
    assert execute("IMAD.X R0, RZ, RZ, -0x1, P0", P0=True).one("R0") == 0
    assert execute("IMAD.X R0, RZ, RZ, RZ, !P0", P0=False).one("R0") == 1


@given(WORDS, WORDS, LONGS)
def test_wide_products(a: int, b: int, c: int) -> None:
    after = execute("IMAD.WIDE.U32 R0, R2, R3, R4", R2=a, R3=b, R4_long=c)
    assert after.long("R0") == a * b + c & M64
    after = execute("IMAD.WIDE R0, R2, R3, R4", R2=a, R3=b, R4_long=c)
    assert after.long("R0") == signed(a) * signed(b) + c & M64
    after = execute("UIMAD.WIDE UR0, UR2, UR3, -UR4", UR2=a, UR3=b, UR4_long=c)
    assert after.long("UR0") == signed(a) * signed(b) - c & M64


@given(WORDS, WORDS, LONGS)
def test_upper_products(a: int, b: int, c: int) -> None:
    after = execute("IMAD.HI.U32 R0, R2, R3, R4", R2=a, R3=b, R4_long=c)
    assert after.one("R0") == a * b + c >> 32 & M
    after = execute("IMAD.HI R0, R2, R3, R4", R2=a, R3=b, R4_long=c)
    assert after.one("R0") == signed(a) * signed(b) + c >> 32 & M


@given(WORDS, st.integers(0, 31), LONGS)
def test_powers_of_two(a: int, n: int, c: int) -> None:
    b = 1 << n
    text = f"{b:#x}" if n < 31 else "-0x80000000"
    after = execute(f"IMAD.WIDE.U32 R0, R2, {text}, R4", R2=a, R4_long=c)
    assert after.long("R0") == a * b + c & M64
    after = execute(f"IMAD.WIDE R0, R2, {text}, R4", R2=a, R4_long=c)
    assert after.long("R0") == signed(a) * signed(b) + c & M64
    assert execute(f"IMAD.HI R0, R2, {text}, RZ", R2=a).one("R0") == signed(a) * signed(b) >> 32 & M


@given(WORDS, WORDS, LONGS, st.booleans())
def test_carries_of_wide_products(a: int, b: int, c: int, carry: bool) -> None:
    total = a * b + c
    after = execute("IMAD.WIDE.U32 R0, P0, R2, R3, R4", R2=a, R3=b, R4_long=c)
    assert (after.long("R0"), after.one("P0")) == (total & M64, total >> 64)
    after = execute("IMAD.HI.U32 R0, P0, R2, R3, R4", R2=a, R3=b, R4_long=c)
    assert (after.one("R0"), after.one("P0")) == (total >> 32 & M, total >> 64)
    after = execute("IMAD.WIDE.U32.X R0, P1, R2, R3, R4, P0", R2=a, R3=b, R4_long=c, P0=carry)
    assert (after.long("R0"), after.one("P1")) == (total + carry & M64, total + carry >> 64)


def test_addend_in_a_constant_bank_or_absent() -> None:
    after = execute("IMAD.WIDE R0, R2, R3, c[0x0][0x160]", constants={0x160: M, 0x164: 1}, R2=1, R3=2)
    assert after.long("R0") == (2 << 32) + 1
    assert execute("IMAD.WIDE R0, R2, R3, RZ", R2=-1, R3=3).long("R0") == -3 & M64


def test_result_over_its_own_sources() -> None:
    assert execute("IMAD.WIDE.U32 R2, R2, R3, R2", R2=M, R3=M).long("R2") == M * M + (M << 32 | M) & M64


def test_division_by_reciprocal() -> None:
    # The refinement step of ptxas: x + high(x * r), with x in the upper word of the addend.
    assert execute("IMAD.HI.U32 R3, R3, R5, R2", R2=0, R3=1000, R5=0x8000_0000).one("R3") == 1500


def test_predicated_products() -> None:
    active = [lane % 2 == 0 for lane in range(32)]
    after = execute("IMAD.WIDE R0, R2, 0x4, RZ", active=active, R0=7, R1=8, R2=-1)
    assert after["R0"].tolist()[:2] == [-4 & M, 7]
    assert after["R1"].tolist()[:2] == [M, 8]


@pytest.mark.parametrize(
    ("modifiers", "expected"),
    [
        ("4A.S8.S8", -1 * 1 + 2 * -2 + 3 * 3 + 4 * 4),
        ("4A.U8.S8", 255 * 1 + 2 * -2 + 3 * 3 + 4 * 4),
        ("4A.S8.U8", -1 * 1 + 2 * 254 + 3 * 3 + 4 * 4),
        ("2A.LO.S16.S8", 0x2FF * 1 + 0x403 * -2),
        ("2A.HI.U16.U8", 0x2FF * 3 + 0x403 * 4),
    ],
)
def test_dot_products(modifiers: str, expected: int) -> None:
    after = execute(f"IDP.{modifiers} R0, R1, R2, R3", R1=0x040302FF, R2=0x0403FE01, R3=-1)
    assert after.one("R0") == expected - 1 & M


@pytest.mark.parametrize(
    "text",
    [
        "IMAD.WIDE R0, R2, R3, 0x5",
        "IMAD.WIDE R0, P0, R2, R3, R4",
        "IMAD R0, -R1, R2, R3",
        "IMAD R0, P0, R1, R2, R3",
        "IMAD.LO R0, R1, R2, R3",
        "IMAD R0, R1, R2, R3, P0",
        "IDP.4A.S16.S8 R0, R1, R2, R3",
    ],
)
def test_refusals(text: str) -> None:
    with pytest.raises(UnsupportedError):
        execute(text)
