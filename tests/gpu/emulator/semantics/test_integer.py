"""Sums and their carries."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuasmrl.gpu.emulator.faults import UnsupportedError
from tests.gpu.emulator.execute import Lanes, execute

M = 0xFFFF_FFFF
WORDS = st.one_of(st.integers(0, M), st.sampled_from((0, 1, 2, 0x7FFF_FFFF, 0x8000_0000, M - 1, M)))


def number(words: list[int]) -> int:
    return sum(word << 32 * k for k, word in enumerate(words))


def words_of(value: int, count: int) -> list[int]:
    return [value >> 32 * k & M for k in range(count)]


def lists(count: int) -> st.SearchStrategy[list[int]]:
    return st.lists(WORDS, min_size=count, max_size=count)


def test_three_numbers() -> None:
    assert execute("IADD3 R0, R1, R2, R3", R1=5, R2=7, R3=-20).one("R0") == -8 & M


def test_negated_numbers() -> None:
    assert execute("IADD3 R0, -R1, 0xff, R3", R1=5, R3=1).one("R0") == 251
    assert execute("IADD3 R0, R1, -R2, -R3", R1=5, R2=6, R3=7).one("R0") == -8 & M
    assert execute("IADD3 R0, -R1, RZ, RZ", R1=5).one("R0") == -5 & M
    assert execute("IADD3 R0, RZ, RZ, RZ", R0=5).one("R0") == 0


def test_a_constant_bank() -> None:
    assert execute("IADD3 R0, R1, -c[0x0][0x160], RZ", constants={0x160: 3}, R1=10).one("R0") == 7


def test_every_lane_has_its_own() -> None:
    after = execute("IADD3 R0, R1, 0x1, RZ", R1=list(range(32)))
    assert after["R0"].tolist() == list(range(1, 33))


def test_inactive_lanes_keep_register_and_carry() -> None:
    active = [lane < 3 for lane in range(32)]
    after = execute("IADD3 R0, P0, R1, R2, RZ", active=active, R0=9, R1=M, R2=1)
    assert after["R0"].tolist() == [0] * 3 + [9] * 29
    assert after["P0"].tolist() == active


def test_a_register_may_be_source_and_destination() -> None:
    after = execute("IADD.X R1, P0, R1, R2, P0", arch=120, R1=M, R2=0, P0=True)
    assert (after.one("R1"), after.one("P0")) == (0, 1)


def test_only_the_carry() -> None:
    after = execute("IADD3 RZ, P0, R1, R2, RZ", R1=0x8000_0000, R2=0x8000_0000)
    assert after.one("P0")
    assert not execute("IADD3 RZ, P0, R1, R2, RZ", R1=0x8000_0000, R2=0x7FFF_FFFF).one("P0")


def test_a_difference_carries_unless_it_borrows() -> None:
    assert execute("IADD3 R0, P0, R1, -R2, RZ", R1=3, R2=3).one("P0")
    assert not execute("IADD3 R0, P0, R1, -R2, RZ", R1=3, R2=4).one("P0")
    assert execute("IADD3 R0, P0, RZ, -R2, RZ", R2=0).one("P0")
    assert not execute("IADD3 R0, P0, RZ, -R2, RZ", R2=1).one("P0")


def test_two_carries() -> None:
    after = execute("IADD3 R0, P0, P1, R1, R2, R3", R1=M, R2=M, R3=M)
    assert (after.one("R0"), after.one("P0"), after.one("P1")) == (M - 2, 1, 1)
    after = execute("IADD3 R0, P0, P1, R1, R2, R3", R1=M, R2=1, R3=M)
    assert (after.one("R0"), after.one("P0") + after.one("P1")) == (M, 1)


@given(lists(2), lists(2), lists(2))
def test_64_bits_of_three_numbers(a: list[int], b: list[int], c: list[int]) -> None:
    below = execute("IADD3 R0, P0, P1, R1, R2, R3", R1=a[0], R2=b[0], R3=c[0])
    above = execute(
        "IADD3.X R0, R1, R2, R3, P0, P1",
        R1=a[1], R2=b[1], R3=c[1], P0=below.one("P0"), P1=below.one("P1"),
    )  # fmt: skip
    assert [below.one("R0"), above.one("R0")] == words_of(number(a) + number(b) + number(c), 2)


@given(lists(2), lists(2), lists(2))
def test_64_bits_of_two_differences(a: list[int], b: list[int], c: list[int]) -> None:
    below = execute("IADD3 R0, P0, P1, -R2, R1, -R3", R1=a[0], R2=b[0], R3=c[0])
    above = execute(
        "IADD3.X R0, ~R2, R1, ~R3, P0, P1",
        R1=a[1], R2=b[1], R3=c[1], P0=below.one("P0"), P1=below.one("P1"),
    )  # fmt: skip
    assert [below.one("R0"), above.one("R0")] == words_of(number(a) - number(b) - number(c), 2)


@pytest.mark.parametrize(
    ("first", "further", "arch"),
    [
        ("IADD3 R0, P0, R1, R2, RZ", "IADD3.X R0, P0, R1, R2, RZ, P0, !PT", 80),
        ("IADD3 R0, P0, PT, R1, R2, RZ", "IADD3.X R0, P0, PT, R1, R2, RZ, P0, !PT", 100),
        ("IADD R0, P0, R1, R2", "IADD.X R0, P0, R1, R2, P0", 120),
    ],
)
@given(a=lists(3), b=lists(3))
def test_96_bits(first: str, further: str, arch: int, a: list[int], b: list[int]) -> None:
    assert chain(first, further, arch, a, b) == words_of(number(a) + number(b), 3)


@pytest.mark.parametrize(
    ("first", "further", "arch"),
    [
        ("IADD3 R0, P0, R1, -R2, RZ", "IADD3.X R0, P0, R1, ~R2, RZ, P0, !PT", 80),
        ("IADD R0, P0, -R2, R1", "IADD.X R0, P0, ~R2, R1, P0", 120),
    ],
)
@given(a=lists(3), b=lists(3))
def test_96_bits_of_a_difference(first: str, further: str, arch: int, a: list[int], b: list[int]) -> None:
    assert chain(first, further, arch, a, b) == words_of(number(a) - number(b), 3)


def chain(first: str, further: str, arch: int, a: list[int], b: list[int]) -> list[int]:
    """Add word by word, each step with the carry of the one before."""
    after: Lanes | None = None
    words = []
    for x, y in zip(a, b, strict=True):
        carry = after is not None and bool(after.one("P0"))
        after = execute(further if after else first, arch=arch, R1=x, R2=y, P0=carry)
        words.append(after.one("R0"))
    return words


def test_an_immediate_below_zero_brings_no_carry_of_its_own() -> None:
    # a - 5: ptxas writes the number, not its negation, so that nothing is complemented.
    after = execute("IADD3 R0, P0, R1, -0x5, RZ", R1=5)
    assert (after.one("R0"), after.one("P0")) == (0, 1)
    assert not execute("IADD3 R0, P0, R1, -0x5, RZ", R1=4).one("P0")


def test_uniform_sums() -> None:
    after = execute("UIADD3 UR0, UP0, UP1, UR1, UR2, UR3", UR1=M, UR2=M, UR3=2)
    assert (after.one("UR0"), after.one("UP0"), after.one("UP1")) == (0, 1, 1)
    assert execute("UIADD3.X UR0, UR1, UR2, URZ, UP0, !UPT", UR1=1, UR2=2, UP0=True).one("UR0") == 4
    assert after.registers.uniform[0].shape == (1, 1, 1)


def test_pairs() -> None:
    after = execute("UIADD3.64 UR4, UPT, UPT, UR6, 0x80, URZ", arch=120, UR6_long=(5 << 32) - 1)
    assert after.long("UR4") == (5 << 32) + 0x7F
    assert execute("IADD.64 R4, R6, -0x1", arch=120, R6_long=0).long("R4") == (1 << 64) - 1
    assert execute("IADD.64 R4, -R6, R8", arch=120, R6_long=1, R8_long=1 << 32).long("R4") == M
    assert execute("IADD.64 R4, R6, RZ", arch=120, R6_long=7 << 40).long("R4") == 7 << 40


@given(st.integers(0, (1 << 64) - 1), st.integers(0, (1 << 64) - 1))
def test_pairs_as_64_bits(a: int, b: int) -> None:
    after = execute("IADD.64 R0, R2, UR4", arch=120, R2_long=a, UR4_long=b)
    assert after.long("R0") == a + b & (1 << 64) - 1
    after = execute("IADD.64 R0, R2, -R4", arch=120, R2_long=a, R4_long=b)
    assert after.long("R0") == a - b & (1 << 64) - 1


def test_vector_addition_has_no_carry() -> None:
    assert execute("VIADD R0, R1, -UR2", arch=90, R1=1, UR2=2).one("R0") == M
    assert execute("VIADD R0, R1, 0x7f", arch=90, R1=M).one("R0") == 0x7E


def test_shift_and_add() -> None:
    assert execute("LEA R0, R1, R2, 0x5", R1=3, R2=10).one("R0") == 106
    assert execute("LEA R0, R1, -R2, 0x5", R1=3, R2=10).one("R0") == 86
    assert execute("LEA R0, -R1, R2, 0x3", R1=3, R2=10).one("R0") == -14 & M
    assert execute("ULEA UR0, UR1, 0x8000, 0xd", UR1=1).one("UR0") == 0xA000
    assert execute("LEA R0, R1, R2, 0x0", R1=3, R2=10).one("R0") == 13


def test_bits_shifted_out_are_no_carry() -> None:
    after = execute("LEA R0, P0, R1, R2, 0x1", R1=0x8000_0000, R2=1)
    assert (after.one("R0"), after.one("P0")) == (1, 0)


def test_upper_word_of_a_shift() -> None:
    assert execute("LEA.HI R0, R1, R2, RZ, 0x7", R1=0xFE00_0000, R2=1).one("R0") == 0x80
    assert execute("LEA.HI R0, R1, R2, R3, 0x4", R1=0xF000_0000, R2=1, R3=2).one("R0") == 0x2F + 1
    assert execute("LEA.HI R0, R1, 0x60, RZ, 0x1d", R1=8).one("R0") == 0x61
    assert execute("LEA.HI R0, R1, R2, R3, 0x0", R1=M, R2=1, R3=2).one("R0") == 3
    assert execute("LEA.HI.SX32 R0, R1, -R2, 0x19", R1=-256, R2=1).one("R0") == -3 & M
    assert execute("LEA.HI.SX32 R0, R1, R2, 0x0", R1=-256, R2=0).one("R0") == M


@given(st.integers(0, (1 << 64) - 1), st.integers(0, (1 << 64) - 1), st.integers(1, 31))
def test_address_of_an_element(index: int, base: int, shift: int) -> None:
    a, b = words_of(index, 2), words_of(base, 2)
    below = execute(f"LEA R0, P0, R1, R2, {shift:#x}", R1=a[0], R2=b[0])
    above = execute(f"LEA.HI.X R0, R1, R2, R3, {shift:#x}, P0", R1=a[0], R2=b[1], R3=a[1], P0=below.one("P0"))
    assert [below.one("R0"), above.one("R0")] == words_of((index << shift) + base, 2)


@given(st.integers(-(1 << 31), (1 << 31) - 1), st.integers(0, (1 << 64) - 1), st.integers(1, 31))
def test_address_of_an_element_with_signed_index(index: int, base: int, shift: int) -> None:
    b = words_of(base, 2)
    below = execute(f"LEA R0, P0, R1, R2, {shift:#x}", R1=index, R2=b[0])
    above = execute(
        f"LEA.HI.X.SX32 R0, R1, c[0x0][0x164], {shift:#x}, P0",
        constants={0x164: b[1]}, R1=index, P0=below.one("P0"),
    )  # fmt: skip
    assert [below.one("R0"), above.one("R0")] == words_of((index << shift) + base, 2)


@given(st.integers(0, (1 << 64) - 1), st.integers(0, (1 << 64) - 1))
def test_element_before_an_address(index: int, base: int) -> None:
    # The upper half as ptxas computes it: with a shift and a complement.
    a, b = words_of(index << 3, 2), words_of(base, 2)
    below = execute("LEA R0, P0, -R1, R2, 0x3", R1=index & M, R2=b[0])
    above = execute("IADD3.X R0, R2, ~R1, RZ, P0, !PT", R1=a[1], R2=b[1], P0=below.one("P0"))
    assert [below.one("R0"), above.one("R0")] == words_of(base - (index << 3), 2)


def test_absolute_value() -> None:
    after = execute("IABS R0, R1", R1=[-5, 5, 0, -0x8000_0000, *[1] * 28])
    assert after["R0"].tolist()[:4] == [5, 5, 0, 0x8000_0000]


def test_absolute_difference() -> None:
    assert execute("VABSDIFF R0, R1, R2, R3", R1=-5, R2=3, R3=1).one("R0") == 9
    assert execute("VABSDIFF R0, R1, R2, R3", R1=-0x8000_0000, R2=0x7FFF_FFFF, R3=0).one("R0") == M
    assert execute("VABSDIFF.U32 R0, R1, 0x4d, R3", R1=-5, R3=1).one("R0") == M - 4 - 0x4D + 1


@pytest.mark.parametrize(
    "text",
    [
        "IADD3.FOO R0, R1, R2, R3",
        "IADD3 R0, R1, R2, R3, R4",
        "IADD.64 R4, P0, R6, R8",
        "IADD.64.X R4, R6, R8, P0",
        "VIADD.X R0, R1, R2",
        "LEA.HI R0, -R1, R2, RZ, 0x5",
        "LEA R0, R1, R2, R3",
        "IADD3 R0, |R1|, R2, R3",
    ],
)
def test_refusals(text: str) -> None:
    with pytest.raises(UnsupportedError):
        execute(text, arch=120)


def test_sources_are_left_alone() -> None:
    values = np.arange(32)
    after = execute("IADD3 R0, P0, R1, R2, R1", R1=values, R2=M)
    assert after["R1"].tolist() == values.tolist()
