"""Minima and maxima."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuasmrl.gpu.emulator.faults import UnsupportedError
from tests.gpu.emulator.execute import execute

M = 0xFFFF_FFFF


@pytest.mark.parametrize(
    ("text", "arch"),
    [
        ("IMNMX R0, R1, R2, {}", 80),
        ("VIMNMX R0, R1, R2, {}", 90),
        ("VIMNMX R0, PT, PT, R1, R2, {}", 100),
        ("VIMNMX.S32 R0, R1, R2, {}", 120),
    ],
)
def test_signed(text: str, arch: int) -> None:
    assert execute(text.format("PT"), arch=arch, R1=-1, R2=1).one("R0") == M
    assert execute(text.format("!PT"), arch=arch, R1=-1, R2=1).one("R0") == 1


@pytest.mark.parametrize(("opcode", "arch"), [("IMNMX", 80), ("VIMNMX", 120)])
def test_unsigned(opcode: str, arch: int) -> None:
    assert execute(f"{opcode}.U32 R0, R1, R2, PT", arch=arch, R1=-1, R2=1).one("R0") == 1
    assert execute(f"{opcode}.U32 R0, RZ, R2, !PT", arch=arch, R2=0x8000_0000).one("R0") == 0x8000_0000


def test_the_predicate_chooses_lane_by_lane() -> None:
    smaller = [lane < 16 for lane in range(32)]
    after = execute("IMNMX R0, R1, 0x8, P0", R1=5, P0=smaller)
    assert after["R0"].tolist() == [5] * 16 + [8] * 16


def test_uniform_twin() -> None:
    assert execute("UVIMNMX.S32 UR0, UR1, 0x8, UPT", arch=120, UR1=-4).one("UR0") == -4 & M


@given(st.integers(0, (1 << 64) - 1), st.integers(0, (1 << 64) - 1))
def test_pairs(a: int, b: int) -> None:
    def signed(x: int) -> int:
        return x - (1 << 64) if x >> 63 else x

    after = execute("IMNMX.S64 PT, PT, R0, R2, R4, PT, !PT", arch=120, R2_long=a, R4_long=b)
    assert after.long("R0") == min(a, b, key=signed)
    after = execute("IMNMX.U64 PT, PT, R0, R2, R4, !PT, !PT", arch=120, R2_long=a, R4_long=b)
    assert after.long("R0") == max(a, b)


def test_half_words() -> None:
    after = execute("VIMNMX.S16x2 R0, R1, R2, PT", arch=90, R1=0x0001_FFFF, R2=[0xFFFE_0001] * 32)
    assert after.one("R0") == 0xFFFE_FFFF
    after = execute("VIMNMX.U16x2 R0, R1, R2, !PT", arch=90, R1=0x0001_FFFF, R2=0xFFFE_0001)
    assert after.one("R0") == 0xFFFE_FFFF


def test_three_numbers() -> None:
    assert execute("VIMNMX3 R0, R1, R2, R3, PT", arch=90, R1=3, R2=-2, R3=1).one("R0") == -2 & M
    assert execute("VIMNMX3.U32 R0, R1, R2, R3, !PT", arch=90, R1=3, R2=-2, R3=1).one("R0") == -2 & M
    assert execute("VIMNMX3 R0, R1, R2, R3, !PT", arch=90, R1=3, R2=-2, R3=1).one("R0") == 3


def test_sum_and_number() -> None:
    assert execute("VIADDMNMX R0, R1, 0x20, R2, PT", arch=90, R1=1, R2=40).one("R0") == 33
    assert execute("VIADDMNMX R0, R1, -R3, UR2, !PT", arch=90, R1=1, R3=5, UR2=-9).one("R0") == -4 & M
    # The sum wraps around.
    assert execute("VIADDMNMX R0, R1, R3, R2, PT", arch=90, R1=0x7FFF_FFFF, R3=1, R2=0).one("R0") == 1 << 31
    assert execute("VIADDMNMX.U32 R0, R1, R3, R2, !PT", arch=90, R1=M, R3=2, R2=0).one("R0") == 1


@pytest.mark.parametrize(
    ("text", "arch"),
    [
        ("VIMNMX.RELU R0, R1, R2, PT", 90),
        ("VIMNMX R0, P0, PT, R1, R2, PT", 100),
        ("IMNMX.S64 PT, PT, R0, R2, R4, PT, P0", 120),
        ("VIADDMNMX.S16x2 R0, R1, R2, R3, PT", 90),
    ],
)
def test_refusals(text: str, arch: int) -> None:
    with pytest.raises(UnsupportedError):
        execute(text, arch=arch)
