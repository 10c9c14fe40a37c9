"""Truth tables over words and over predicates."""

import itertools
from typing import Any

import pytest

from cuasmrl.gpu.emulator.faults import UnsupportedError
from tests.gpu.emulator.execute import execute

M = 0xFFFF_FFFF
# All eight combinations of three bits, one per position.
A, B, C = 0xF0F0_F0F0, 0xCCCC_CCCC, 0xAAAA_AAAA


def table(bits: int) -> int:
    return int.from_bytes(bytes([bits]) * 4, "little")


@pytest.mark.parametrize("bits", range(256))
def test_every_table(bits: int) -> None:
    assert execute(f"LOP3.LUT R0, R1, R2, R3, {bits:#x}, !PT", R1=A, R2=B, R3=C).one("R0") == table(bits)


@pytest.mark.parametrize("bits", range(256))
def test_every_table_with_known_operands(bits: int) -> None:
    for known in itertools.product(("R", "RZ", "-0x1"), ("R", "RZ", "-0x1"), ("R", "RZ")):
        names = [f"R{k + 1}" if name == "R" else name for k, name in enumerate(known)]
        values = [{"R": v, "RZ": 0, "-0x1": M}[name] for v, name in zip((A, B, C), known, strict=True)]
        expected = 0
        for row in range(8):
            if bits >> row & 1:
                a, b, c = (v if row & bit else ~v for v, bit in zip(values, (4, 2, 1), strict=True))
                expected |= a & b & c
        after = execute(f"LOP3.LUT R0, {', '.join(names)}, {bits:#x}, !PT", R1=A, R2=B, R3=C)
        assert after.one("R0") == expected & M, names


def test_lanes_and_immediates() -> None:
    after = execute("LOP3.LUT R0, R1, 0x3, RZ, 0xc0, !PT", R1=list(range(32)))
    assert after["R0"].tolist() == [lane & 3 for lane in range(32)]
    assert execute("ULOP3.LUT UR0, UR1, UR2, URZ, 0x3c, !UPT", UR1=6, UR2=3).one("UR0") == 5
    assert execute("LOP3.LUT R0, RZ, R1, RZ, 0x33, !PT", R1=5).one("R0") == ~5 & M


def test_is_any_bit_set() -> None:
    values = [0, 8, 4, 12, *[0] * 28]
    after = execute("LOP3.LUT P0, RZ, R1, 0x8, RZ, 0xc0, !PT", R1=values)
    assert after["P0"].tolist()[:4] == [False, True, False, True]
    after = execute("LOP3.LUT P0, R2, R1, 0x8, RZ, 0xc0, P1", R1=values, P1=True)
    assert after["P0"].all()
    assert after["R2"].tolist()[:4] == [0, 8, 0, 8]
    after = execute("LOP3.LUT.PAND P0, R2, R1, 0x8, RZ, 0xc0, !P1", R1=values, P1=True)
    assert not after["P0"].any()
    after = execute("LOP3.LUT.PAND P0, R2, R1, 0x8, RZ, 0xc0, PT", R1=values)
    assert after["P0"].tolist()[:4] == [False, True, False, True]


def test_inactive_lanes_keep_the_predicate() -> None:
    active = [lane < 4 for lane in range(32)]
    after = execute("LOP3.LUT P0, RZ, R1, 0x8, RZ, 0xc0, !PT", active=active, R1=8)
    assert after["P0"].tolist() == active


@pytest.mark.parametrize("bits", range(256))
def test_tables_of_predicates(bits: int) -> None:
    rows = [lane % 8 for lane in range(32)]
    predicates: dict[str, Any] = {f"P{2 - k}": [bool(row >> k & 1) for row in rows] for k in range(3)}
    after = execute(f"PLOP3.LUT P3, P4, P0, P1, P2, {bits:#x}, {255 - bits:#x}", **predicates)
    assert after["P3"].tolist() == [bool(bits >> row & 1) for row in rows]
    assert after["P4"].tolist() == [not bits >> row & 1 for row in rows]


def test_predicates_from_the_uniform_file() -> None:
    assert execute("PLOP3.LUT P0, PT, PT, PT, UP0, 0x80, 0x0", UP0=True).one("P0")
    assert not execute("PLOP3.LUT P0, PT, PT, PT, UP0, 0x40, 0x0", UP0=True).one("P0")
    assert execute("UPLOP3.LUT UP0, UPT, UPT, UPT, !UP1, 0x80, 0x0", UP1=False).one("UP0")
    assert not execute("PLOP3.LUT P0, PT, PT, PT, PT, 0x8, 0x0", P0=True).one("P0")


def test_predicates_that_are_read_and_written() -> None:
    after = execute("PLOP3.LUT P0, P1, P1, PT, P0, 0xaa, 0xf0", P0=True, P1=False)
    assert (after.one("P0"), after.one("P1")) == (1, 0)


@pytest.mark.parametrize(
    "text",
    [
        "LOP3 R0, R1, R2, R3, 0xc0, !PT",
        "LOP3.LUT R0, R1, R2, R3, 0x1c0, !PT",
        "LOP3.LUT.FOO R0, R1, R2, R3, 0xc0, !PT",
        "PLOP3.LUT P0, PT, PT, PT, R1, 0x80, 0x0",
    ],
)
def test_refusals(text: str) -> None:
    with pytest.raises(UnsupportedError):
        execute(text)
