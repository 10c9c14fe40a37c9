"""PRMT: bytes of two words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuasmrl.gpu.emulator.faults import UnsupportedError
from tests.gpu.emulator.execute import execute

M = 0xFFFF_FFFF
WORDS = st.integers(0, M)


def permuted(a: int, selector: int, c: int) -> int:
    both = (c << 32 | a).to_bytes(8, "little")
    result = []
    for place in range(4):
        nibble = selector >> 4 * place & 0xF
        byte = both[nibble & 7]
        result.append((0xFF if byte & 0x80 else 0) if nibble & 8 else byte)
    return int.from_bytes(bytes(result), "little")


@given(WORDS, st.integers(0, 0xFFFF), WORDS)
def test_selectors(a: int, selector: int, c: int) -> None:
    expected = permuted(a, selector, c)
    assert execute(f"PRMT R0, R1, {selector:#x}, R2", R1=a, R2=c).one("R0") == expected
    assert execute("PRMT R0, R1, R3, R2", R1=a, R2=c, R3=selector | 0xABCD_0000).one("R0") == expected
    assert execute(f"UPRMT UR0, UR1, {selector:#x}, URZ", UR1=a).one("UR0") == permuted(a, selector, 0)
    assert execute(f"PRMT R0, RZ, {selector:#x}, R2", R2=c).one("R0") == permuted(0, selector, c)


@given(st.lists(st.tuples(WORDS, st.integers(0, 0xFFFF), WORDS), min_size=32, max_size=32))
def test_a_selector_in_each_lane(lanes: list[tuple[int, int, int]]) -> None:
    a, selectors, c = (list(column) for column in zip(*lanes, strict=True))
    after = execute("PRMT R0, R1, R2, R3", R1=a, R2=selectors, R3=c)
    assert after["R0"].tolist() == [permuted(*lane) for lane in lanes]


def test_the_usual_ones() -> None:
    assert execute("PRMT R0, R1, 0x5410, R2", R1=0x11112222, R2=0x33334444).one("R0") == 0x4444_2222
    assert execute("PRMT R0, R1, 0x7632, R2", R1=0x11112222, R2=0x33334444).one("R0") == 0x3333_1111
    assert execute("PRMT R0, R1, 0x9910, RZ", R1=0x1234_8765).one("R0") == 0xFFFF_8765
    assert execute("PRMT R0, R1, 0x8880, RZ", R1=0x1234_8765).one("R0") == 0x65
    assert execute("PRMT R0, R1, 0x7771, RZ", R1=0x1234_8765).one("R0") == 0x87


# Bytes of c:a are numbered 0x10 (the lowest) to 0x17; the result as its bytes from the top (PTX ISA, prmt).
@pytest.mark.parametrize(
    ("mode", "results"),
    [
        ("F4E", (0x13121110, 0x14131211, 0x15141312, 0x16151413)),
        ("B4E", (0x15161710, 0x16171011, 0x17101112, 0x10111213)),
        ("RC8", (0x10101010, 0x11111111, 0x12121212, 0x13131313)),
        ("ECL", (0x13121110, 0x13121111, 0x13121212, 0x13131313)),
        ("ECR", (0x10101010, 0x11111110, 0x12121110, 0x13121110)),
        ("RC16", (0x11101110, 0x13121312, 0x11101110, 0x13121312)),
    ],
)
def test_modes(mode: str, results: tuple[int, ...]) -> None:
    a, c = 0x13121110, 0x17161514
    for selector, expected in enumerate(results):
        assert execute(f"PRMT.{mode} R0, R1, {selector:#x}, R2", R1=a, R2=c).one("R0") == expected
    after = execute(f"PRMT.{mode} R0, R1, R3, R2", R1=a, R2=c, R3=list(range(4)) * 8)
    assert after["R0"].tolist() == list(results) * 8


@pytest.mark.parametrize("text", ["PRMT.FOO R0, R1, 0x0, R2", "PRMT R0, -R1, 0x0, R2", "PRMT R0, R1, 0x0"])
def test_refusals(text: str) -> None:
    with pytest.raises(UnsupportedError):
        execute(text)
