"""What an instruction knows about itself beyond its accesses."""

import pytest

from cuasmrl.binary.sass import Control, Order
from tests.binary.sass.conftest import parse


def with_control(text: str, arch: int, control: Control) -> tuple[str, int, int]:
    return text, arch, int.from_bytes(control.encode(bytes(16)), "little")


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        ("DEPBAR.LE SB0, 0x1", (0, 1, ())),
        ("DEPBAR.LE SB0, 0x0, {4,3}", (0, 0, (4, 3))),
        ("DEPBAR.LE SB5, 0x2, {1}", (5, 2, (1,))),
        ("LDGDEPBAR", None),
        ("NOP", None),
    ],
)
def test_depbar(text: str, condition: tuple[int, int, tuple[int, ...]] | None) -> None:
    assert parse(text).depbar == condition


def test_dummy_loads_and_fillers() -> None:
    dummy = parse("@!PT LDS RZ, [RZ]")
    assert (dummy.is_dummy_load, dummy.is_filler, dummy.never_executes) == (True, False, True)
    filler = parse("@!UPT UIADD3 URZ, URZ, URZ, URZ", 90)
    assert (filler.is_dummy_load, filler.is_filler, filler.order) == (False, True, Order.PINNED)
    real = parse("@!P0 LDS R4, [R2]")
    assert (real.is_dummy_load, real.is_filler, real.is_conditional) == (False, False, True)
    always = parse("@PT LDS R4, [R2]")
    assert (always.never_executes, always.is_conditional) == (False, False)


@pytest.mark.parametrize(
    ("text", "order"),
    [
        ("FFMA R0, R1, R2, R3", Order.FREE),
        ("LDG.E R0, [R2.64]", Order.MEMORY),
        ("BAR.SYNC.DEFER_BLOCKING 0x0", Order.SYNC),
        ("DEPBAR.LE SB0, 0x1", Order.SYNC),
        ("MEMBAR.SC.GPU", Order.SYNC),
        ("FENCE.VIEW.ASYNC.S", Order.SYNC),
        ("SYNCS.ARRIVE.TRANS64 RZ, [UR4], R0", Order.SYNC),
        ("UBLKCP.S.G [UR4], [UR6], UR8", Order.SYNC),
        ("HGMMA.64x8x16.F32 R24, gdesc[UR4], R24, gsb0", Order.PRODUCT),
        ("WARPGROUP.DEPBAR.LE gsb0, 0x1", Order.PRODUCT),
        ("CCTL.IVALL", Order.PINNED),
        ("BRA `(.L_x_1)", Order.PINNED),
        ("NOP", Order.PINNED),
        ("CS2R R2, SR_CLOCKLO", Order.PINNED),
        ("S2UR UR4, SR_GLOBALTIMERLO", Order.PINNED),
        ("S2R R0, SR_TID.X", Order.FREE),
        ("FROBNICATE R0", Order.PINNED),
    ],
)
def test_how_freely_it_moves(text: str, order: Order) -> None:
    assert parse(text).order is order


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("IMAD.WIDE.U32 R2, R4, R5, R6", "IMAD.WIDE"),
        ("IMAD.MOV.U32 R2, RZ, RZ, R6", "IMAD"),
        ("CS2R.32 R2, SRZ", "CS2R.32"),
        ("HMMA.16816.F32.BF16 R4, R8, R12, R16", "HMMA.16816.F32.BF16"),
        ("IMMA.16832.S8.S8.SAT R4, R8.ROW, R12.COL, R16", "IMMA.16832.S8.S8"),
        ("HFMA2.MMA R7, R9, 1, 1, R11", "HFMA2.MMA"),
        ("LDG.E.128 R4, [R2.64]", "LDG"),
        ("FROBNICATE.X R0", "FROBNICATE"),
    ],
)
def test_timing_key(text: str, key: str) -> None:
    assert parse(text).timing_key == key


@pytest.mark.parametrize(
    ("text", "variable", "fixed"),
    [
        ("LDG.E R0, [R2.64]", (75, 80, 90, 100, 120), ()),
        ("FCHK P0, R1, R2", (75, 80, 90, 100, 120), ()),
        ("HMMA.16816.F32 R4, R8, R12, R16", (75,), (80, 86, 89, 90, 100, 120)),
        ("R2UR UR4, R2", (75, 80, 86, 89), (90, 100, 120)),
        ("BAR.SYNC R4, R5", (90, 100, 120), (75, 80, 86, 89)),
        ("DADD R2, R4, R6", (75, 80, 86, 89, 120), (90,)),
        ("DMMA.8x8x4 R8, R20, R18, R8", (80, 90, 100, 120), ()),
        ("ULDC UR4, c[0x0][0x160]", (), (75, 80, 90)),
        ("LDCU UR4, c[0x0][0x380]", (100, 120), ()),
        ("FFMA R0, R1, R2, R3", (), (75, 80, 90, 100, 120)),
        ("FROBNICATE R0", (), (80,)),
    ],
)
def test_latency_class(text: str, variable: tuple[int, ...], fixed: tuple[int, ...]) -> None:
    assert [arch for arch in variable if not parse(text, arch).is_variable] == []
    assert [arch for arch in fixed if parse(text, arch).is_variable] == []


@pytest.mark.parametrize("text", ["DFMA R2, R4, R6, R8", "IMMA.16832.S8.S8 R4, R8.ROW, R12.COL, R16"])
def test_on_sm_100_the_assembler_decides(text: str) -> None:
    """ptxas 13.0 counts cycles for doubles and integer matrices there, ptxas 13.4 uses scoreboards."""
    assert not parse(*with_control(text, 100, Control(1, False, None, None, 0, 0))).is_variable
    assert parse(*with_control(text, 100, Control(1, False, 2, None, 0, 0))).is_variable


def test_target() -> None:
    assert parse("@P0 BRA `(.L_x_1)").target == 0x100
    assert parse("BSSY B0, `(.L_x_1)").target == 0x100
    assert parse("BRA `(.elsewhere)").target is None
    assert parse("CALL.REL.NOINC R8 `(.L_x_1)").target is None
    assert parse("RET.REL.NODEC R2 `(.L_x_1)").target is None


def test_parts() -> None:
    instruction = parse("@!P3 ISETP.GE.AND P0, PT, R0, 0x4, P1")
    assert instruction.opcode == "ISETP"
    assert instruction.modifiers == ("GE", "AND")
    assert instruction.guard is not None
    assert instruction.guard.inverted
    assert str(instruction) == "@!P3 ISETP.GE.AND P0, PT, R0, 0x4, P1 at 0x0000"


def test_garbage_is_refused() -> None:
    with pytest.raises(ValueError, match="cannot read"):
        parse("???")
