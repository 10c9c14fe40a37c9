"""Shifts, clamped and wrapped, of one and of two words."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cuasmrl.gpu.emulator.faults import UnsupportedError
from tests.gpu.emulator.execute import execute

M, M64 = 0xFFFF_FFFF, (1 << 64) - 1
DISTANCES = st.one_of(st.integers(0, 70), st.sampled_from((127, 255, 0x100, M)))


def reference(text: str, low: int, distance: int, high: int) -> int:
    """The 64 bits high:low, shifted as the modifiers say; one word of them."""
    modifiers = text.split(".")
    limit = 64 if "U64" in modifiers or "S64" in modifiers else 32
    n = distance % limit if "W" in modifiers else min(distance, limit)
    both = high << 32 | low
    if "L" in modifiers:
        both = both << n & M64
    elif "S32" in modifiers or "S64" in modifiers:
        both = (both - (1 << 64) if both >> 63 else both) >> n & M64
    else:
        both >>= n
    return both >> 32 if "HI" in modifiers else both & M


FORMS = [
    f"{direction}{wrap}.{kind}{half}"
    for direction in ("L", "R")
    for wrap in ("", ".W")
    for kind in ("U32", "S32", "U64", "S64")
    for half in ("", ".HI")
]


@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=40)
@given(st.integers(0, M), DISTANCES, st.integers(0, M))
def test_every_form(form: str, low: int, distance: int, high: int) -> None:
    expected = reference(form, low, distance, high)
    assert execute(f"SHF.{form} R0, R1, R2, R3", R1=low, R2=distance, R3=high).one("R0") == expected
    assert execute(f"USHF.{form} UR0, UR1, {distance:#x}, UR3", UR1=low, UR3=high).one("UR0") == expected


def test_lanes_shift_by_different_distances() -> None:
    distances = list(range(0, 64, 2))
    after = execute("SHF.L.U32 R0, R1, R2, RZ", R1=1, R2=distances)
    assert after["R0"].tolist() == [1 << n if n < 32 else 0 for n in distances]
    after = execute("SHF.R.S32.HI R0, RZ, R2, R1", R1=-256, R2=distances)
    assert after["R0"].tolist() == [-256 >> n & M for n in distances]


def test_the_usual_ones() -> None:
    assert execute("SHF.R.S32.HI R0, RZ, 0x1f, R1", R1=-5).one("R0") == M
    assert execute("SHF.R.U32.HI R0, RZ, 0x1f, R1", R1=-5).one("R0") == 1
    assert execute("SHF.L.U64.HI R0, R1, 0x1, R2", R1=0x8000_0000, R2=1).one("R0") == 3
    assert execute("SHF.R.U64 R0, R1, 0x1d, R2", R1=0xE000_0000, R2=1).one("R0") == 15


@pytest.mark.parametrize(
    "text", ["SHF.U32 R0, R1, R2, R3", "SHF.L.U32 R0, ~R1, R2, R3", "SHF.L R0, R1, R2, R3"]
)
def test_refusals(text: str) -> None:
    with pytest.raises(UnsupportedError):
        execute(text)
