"""Moves and choices."""

import pytest

from cuasmrl.gpu.emulator.faults import UnsupportedError
from tests.gpu.emulator.execute import execute

M = 0xFFFF_FFFF


def test_moves() -> None:
    assert execute("MOV R0, R1", R1=5).one("R0") == 5
    assert execute("MOV R0, RZ", R0=5).one("R0") == 0
    assert execute("MOV R0, UR1", UR1=6).one("R0") == 6
    assert execute("MOV R0, c[0x0][0x28]", constants={0x28: 7}).one("R0") == 7
    assert execute("UMOV UR0, 0x8000").one("UR0") == 0x8000
    assert execute("MOV R0, R1, 0xf", R1=5).one("R0") == 5


def test_pairs() -> None:
    assert execute("MOV.64 R4, 0xff800000ff800001", arch=120).long("R4") == 0xFF800000_FF800001
    assert execute("MOV.64 R4, R6", arch=120, R6_long=3 << 40).long("R4") == 3 << 40
    assert execute("UMOV.64 UR4, URZ", arch=120, UR4_long=3 << 40).long("UR4") == 0
    # The halves overlap: both are read before one is written.
    assert execute("MOV.64 R3, R2", arch=120, R2_long=1 | 2 << 32).long("R3") == 1 | 2 << 32


def test_into_nothing() -> None:
    after = execute("MOV RZ, R1", R1=5)
    assert all(register.item() == (5 if k == 1 else 0) for k, register in enumerate(after.registers.general))


def test_inactive_lanes_keep_theirs() -> None:
    active = [lane == 7 for lane in range(32)]
    assert execute("MOV R0, 0x3", active=active, R0=1)["R0"].tolist() == [3 if a else 1 for a in active]


def test_choice() -> None:
    chosen = [lane < 5 for lane in range(32)]
    assert execute("SEL R0, R1, 0x10, P0", R1=1, P0=chosen)["R0"].tolist() == [1] * 5 + [16] * 27
    assert execute("SEL R0, RZ, 0x10, !P0", P0=chosen)["R0"].tolist() == [16] * 5 + [0] * 27
    assert execute("SEL R0, R1, R2, PT", R1=1, R2=2).one("R0") == 1
    assert execute("USEL UR0, UR1, URZ, !UP0", UR1=1, UP0=True).one("UR0") == 0


def test_choice_of_pairs() -> None:
    assert execute("SEL.64 R0, R2, -0x1, P0", arch=120, R2_long=1 << 40, P0=False).long("R0") == (1 << 64) - 1
    assert execute("SEL.64 R0, R2, R4, P0", arch=120, R2_long=1 << 40, P0=True).long("R0") == 1 << 40


@pytest.mark.parametrize("text", ["MOV R0, R1, 0x3", "MOV.FOO R0, R1", "MOV R0, -R1", "SEL R0, R1, R2, R3"])
def test_refusals(text: str) -> None:
    with pytest.raises(UnsupportedError):
        execute(text)
