"""Counts, positions and masks of bits."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuasmrl.gpu.emulator.faults import UnsupportedError
from tests.gpu.emulator.execute import execute

M = 0xFFFF_FFFF
WORDS = st.one_of(st.integers(0, M), st.sampled_from((0, 1, 0x7FFF_FFFF, 0x8000_0000, M)))


@given(WORDS)
def test_against_python(a: int) -> None:
    assert execute("POPC R0, R1", R1=a).one("R0") == a.bit_count()
    assert execute("POPC R0, ~R1", R1=a).one("R0") == 32 - a.bit_count()
    assert execute("BREV R0, R1", R1=a).one("R0") == int(f"{a:032b}"[::-1], 2)
    assert execute("FLO.U32 R0, R1", R1=a).one("R0") == a.bit_length() - 1 & M


def test_lanes_differ() -> None:
    values = [1 << lane for lane in range(32)]
    assert execute("FLO.U32 R0, R1", R1=values)["R0"].tolist() == list(range(32))
    assert execute("BREV R0, R1", R1=values)["R0"].tolist() == values[::-1]
    assert execute("POPC R0, R1", R1=values).one("R0") == 1


@pytest.mark.parametrize(
    ("value", "unsigned", "signed", "unsigned_shift", "signed_shift"),
    [
        (0, -1, -1, -1, -1),
        (1, 0, 0, 31, 31),
        (0x8000_0000, 31, 30, 0, 1),
        (M, 31, -1, 0, -1),
        (-2, 31, 0, 0, 31),
        (0x0001_0000, 16, 16, 15, 15),
    ],
)
def test_leading_one(value: int, unsigned: int, signed: int, unsigned_shift: int, signed_shift: int) -> None:
    assert execute("FLO.U32 R0, R1", R1=value).one("R0") == unsigned & M
    assert execute("FLO R0, R1", R1=value).one("R0") == signed & M
    assert execute("FLO.U32.SH R0, R1", R1=value).one("R0") == unsigned_shift & M
    assert execute("FLO.SH R0, R1", R1=value).one("R0") == signed_shift & M
    assert execute("UFLO.U32 UR0, UR1", UR1=value).one("UR0") == unsigned & M


@pytest.mark.parametrize(
    ("modifiers", "value", "width", "expected"),
    [
        ("", 0x1FF, 9, M),
        ("", 0x0FF, 9, 0xFF),
        ("", 1, 1, M),
        ("", M, 0, 0),
        ("", 0x8000_0000, 32, 0x8000_0000),
        ("", 0x8000_0001, 40, 0x8000_0001),
        (".W", 0x8000_00FF, 40, M),
        (".W", M, 32, 0),
        (".U32", M, 5, 31),
        (".U32", M, 0, 0),
        (".U32", M, 33, M),
        (".W.U32", M, 33, 1),
    ],
)
def test_sign_extension(modifiers: str, value: int, width: int, expected: int) -> None:
    assert execute(f"SGXT{modifiers} R0, R1, {width:#x}", R1=value).one("R0") == expected
    assert execute(f"SGXT{modifiers} R0, R1, R2", R1=value, R2=width).one("R0") == expected
    assert execute(f"USGXT{modifiers} UR0, UR1, {width:#x}", UR1=value).one("UR0") == expected


@pytest.mark.parametrize(
    ("modifiers", "position", "width", "expected"),
    [
        ("", 4, 8, 0xFF0),
        ("", 0, 32, M),
        ("", 0, 100, M),
        ("", 32, 3, 0),
        ("", 28, 8, 0xF000_0000),
        (".W", 33, 2, 6),
        (".W", 0, 32, 0),
    ],
)
def test_masks(modifiers: str, position: int, width: int, expected: int) -> None:
    assert execute(f"BMSK{modifiers} R0, R1, R2", R1=position, R2=width).one("R0") == expected


@pytest.mark.parametrize("text", ["FLO R0, P0, R1", "POPC.FOO R0, R1", "SGXT R0, R1, R2, R3"])
def test_refusals(text: str) -> None:
    with pytest.raises(UnsupportedError):
        execute(text)
