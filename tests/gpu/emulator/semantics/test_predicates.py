"""Comparisons and packed predicates."""

import operator
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cuasmrl.gpu.emulator.faults import UnsupportedError
from tests.gpu.emulator.execute import execute

M = 0xFFFF_FFFF
OPERATORS: dict[str, Callable[[int, int], bool]] = {
    "LT": operator.lt, "LE": operator.le, "GT": operator.gt, "GE": operator.ge, "EQ": operator.eq,
    "NE": operator.ne, "F": lambda a, b: False, "T": lambda a, b: True,
}  # fmt: skip
EDGES = (0, 1, 0x7FFF_FFFF, 0x8000_0000, M)


def signed(a: int, bits: int = 32) -> int:
    return a - (1 << bits) if a >> bits - 1 else a


@pytest.mark.parametrize("name", OPERATORS)
def test_edge_values(name: str) -> None:
    for a in EDGES:
        for b in EDGES:
            after = execute(f"ISETP.{name}.AND P0, PT, R1, R2, PT", R1=a, R2=b)
            assert after.one("P0") == OPERATORS[name](signed(a), signed(b))
            after = execute(f"UISETP.{name}.U32.AND UP0, UPT, UR1, UR2, UPT", UR1=a, UR2=b)
            assert after.one("UP0") == OPERATORS[name](a, b)


LONGS = st.one_of(st.integers(0, (1 << 64) - 1), st.sampled_from((0, 1, M, 1 << 32, 1 << 63, (1 << 64) - 1)))


@pytest.mark.parametrize("name", OPERATORS)
@settings(max_examples=30)
@given(LONGS, LONGS)
def test_words_one_after_the_other_are_64_bits(name: str, a: int, b: int) -> None:
    for x, y in ((a, b), (a, a), (a, a ^ 1), (a, b & M | a >> 32 << 32)):
        below = execute(f"ISETP.{name}.U32.AND P0, PT, R1, R2, PT", R1=x & M, R2=y & M).one("P0")
        after = execute(f"ISETP.{name}.AND.EX P0, PT, R1, R2, PT, P0", R1=x >> 32, R2=y >> 32, P0=below)
        assert after.one("P0") == OPERATORS[name](signed(x, 64), signed(y, 64))
        after = execute(f"ISETP.{name}.U32.AND.EX P0, PT, R1, R2, PT, P0", R1=x >> 32, R2=y >> 32, P0=below)
        assert after.one("P0") == OPERATORS[name](x, y)


@pytest.mark.parametrize("name", OPERATORS)
@settings(max_examples=30)
@given(LONGS, LONGS)
def test_pairs(name: str, a: int, b: int) -> None:
    after = execute(f"ISETP.{name}.U64.AND P0, PT, R2, R4, PT", arch=120, R2_long=a, R4_long=b)
    assert after.one("P0") == OPERATORS[name](a, b)
    after = execute(f"ISETP.{name}.S64.AND P0, PT, R2, R4, PT", arch=120, R2_long=a, R4_long=b)
    assert after.one("P0") == OPERATORS[name](signed(a, 64), signed(b, 64))


@pytest.mark.parametrize("accumulated", [False, True])
@pytest.mark.parametrize("value", [3, 5])
@pytest.mark.parametrize(
    ("name", "combine"), [("AND", operator.and_), ("OR", operator.or_), ("XOR", operator.xor)]
)
def test_combinations(
    name: str, combine: Callable[[bool, bool], bool], value: int, accumulated: bool
) -> None:
    after = execute(f"ISETP.LT.{name} P0, P1, R1, 0x4, P2", R1=value, P2=accumulated)
    assert after.one("P0") == combine(value < 4, accumulated)
    assert after.one("P1") == combine(value >= 4, accumulated)
    after = execute(f"ISETP.LT.{name} P0, P1, R1, 0x4, !P2", R1=value, P2=accumulated)
    assert after.one("P0") == combine(value < 4, not accumulated)


def test_inactive_lanes_keep_the_predicate() -> None:
    active = [lane % 2 == 1 for lane in range(32)]
    after = execute("ISETP.GE.AND P0, PT, R1, RZ, PT", active=active, R1=0)
    assert after["P0"].tolist() == active


def test_compared_and_accumulated_in_the_same_predicate() -> None:
    assert execute("ISETP.NE.OR P0, P1, R1, RZ, P0", R1=0, P0=True).one("P0")


def test_predicates_into_a_register() -> None:
    assert execute("P2R R0, PR, RZ, 0x7f", P0=True, P3=True, P6=True).one("R0") == 0x49
    assert execute("P2R R0, PR, RZ, 0x9", P0=True, P1=True).one("R0") == 1
    assert execute("P2R R0, PR, R1, 0xf", R1=0x1234_56FF, P1=True).one("R0") == 0x1234_56F2
    assert execute("P2R.B2 R0, PR, R1, 0x7f", R1=M, P1=True).one("R0") == 0xFF82_FFFF
    assert execute("UP2UR UR0, UPR, URZ, 0x2", UP1=True).one("UR0") == 2
    after = execute("P2R R0, PR, RZ, 0x2", P1=[lane < 3 for lane in range(32)])
    assert after["R0"].tolist() == [2] * 3 + [0] * 29


def test_predicates_out_of_a_register() -> None:
    after = execute("R2P PR, R0, 0x1c", R0=0x09, P0=False, P2=True)
    assert [after.one(f"P{k}") for k in range(7)] == [0, 0, 0, 1, 0, 0, 0]
    after = execute("R2P PR, R0.B1, 0x7f", R0=0x4200)
    assert [after.one(f"P{k}") for k in range(7)] == [0, 1, 0, 0, 0, 0, 1]


def test_there_and_back() -> None:
    masks: dict[str, Any] = {f"P{k}": [bool(lane >> k % 5 & 1) for lane in range(32)] for k in range(7)}
    packed = execute("P2R.B3 R0, PR, RZ, 0x7f", **masks)["R0"]
    after = execute("R2P PR, R0.B3, 0x7f", R0=packed)
    assert all(after[name].tolist() == mask for name, mask in masks.items())


@pytest.mark.parametrize(
    "text",
    [
        "ISETP.GE P0, PT, R1, R2, PT",
        "ISETP.AND P0, PT, R1, R2, PT",
        "ISETP.GE.AND P0, PT, R1, R2, PT, P1",
        "ISETP.GE.AND.FOO P0, PT, R1, R2, PT",
        "P2R R0, PR, RZ, R2",
        "P2R R0, PR, RZ, 0x80",
        "R2P PR, R0.H1, 0x7f",
    ],
)
def test_refusals(text: str) -> None:
    with pytest.raises(UnsupportedError):
        execute(text)
