"""What single instructions read and write, by hand: `R2:address` is R2 in the role of an address."""

import pytest

from cuasmrl.binary.sass import DATA, Access, name_of
from tests.binary.sass.conftest import parse

# (chip, instruction, definitions, uses); a range R4-7 stands for four registers.
CASES = [
    # integer and logic
    (80, "IADD3 R0, P0, P1, R2, R3, R4", "R0 P0 P1", "R2 R3 R4"),
    (80, "IADD3.X R0, R2, R3, RZ, P0, !PT", "R0", "R2 R3 P0"),
    (80, "IADD3.X R0, R2, ~R3, RZ, P0, P1", "R0", "R2 R3 P0 P1"),
    (120, "IADD.64 R2, R4, UR6", "R2-3", "R4-5 UR6-7"),
    (80, "LOP3.LUT P0, RZ, R2, 0x1, RZ, 0xc0, !PT", "P0", "R2"),
    (80, "LEA.HI.X R3, R0, c[0x0][0x164], R5, 0x2, P0", "R3", "R0 R5 P0"),
    (80, "LEA.HI.X.SX32 R3, R0, R1, 0x1, P0", "R3", "R0 R1 P0"),
    (80, "SHF.R.U64 R0, R2, 0x3, R3", "R0", "R2 R3"),
    (80, "SEL R0, R2, R3, !P1", "R0", "R2 R3 P1"),
    (80, "PRMT R0, R1, 0x5410, R2", "R0", "R1 R2"),
    (80, "@!P3 ISETP.GE.AND P0, PT, R0, 0x4, P1", "P0", "P3:guard R0 P1"),
    (80, "ISETP.GT.U32.AND.EX P0, PT, R3, RZ, PT, P1", "P0", "R3 P1"),
    (120, "ISETP.GE.S64.AND P0, PT, R2, R4, PT", "P0", "R2-3 R4-5"),
    (80, "PLOP3.LUT P0, PT, P1, P2, !P3, 0x80, 0x0", "P0", "P1 P2 P3"),
    (120, "IMNMX.S64 PT, PT, R2, R4, R12, PT, !PT", "R2-3", "R4-5 R12-13"),
    (80, "P2R R4, PR, RZ, 0x5", "R4", "P0 P2"),
    (80, "P2R.B1 R4, PR, R6, 0x7f", "R4", "P0-6 R6"),
    (80, "R2P PR, R4, 0x6", "P1 P2", "R4"),
    (90, "UP2UR UR4, UPR, URZ, 0x1", "UR4", "UP0"),
    (80, "VOTE.ANY R0, PT, P1", "R0", "P1"),
    (80, "VOTE.ALL P0, P1", "P0", "P1"),
    (80, "VOTEU.ANY UR4, UPT, PT", "UR4", ""),
    (90, "ELECT P0, URZ, PT", "P0", ""),
    (80, "CS2R R2, SRZ", "R2-3", ""),
    (80, "CS2R.32 R2, SR_CLOCKLO", "R2", ""),
    # multiply-add
    (80, "IMAD R0, R1, c[0x0][0x160], R2", "R0", "R1 R2:addend"),
    (80, "IMAD.WIDE R2, R4, R5, R6", "R2:low R3:high", "R4 R5 R6:low R7:high"),
    (80, "IMAD.WIDE.U32 R2, P0, R4, R5, R6", "R2:low R3:high P0", "R4 R5 R6:low R7:high"),
    (80, "IMAD.WIDE R2, R4, R5, c[0x0][0x160]", "R2:low R3:high", "R4 R5"),
    (80, "IMAD.HI.U32 R2, R4, R5, R6", "R2", "R4 R5 R6:low R7:high"),
    (80, "IMAD.X R2, RZ, RZ, R3, P0", "R2", "R3:addend P0"),
    (90, "UIMAD.WIDE UR4, UR6, UR7, UR8", "UR4:low UR5:high", "UR6 UR7 UR8:low UR9:high"),
    (75, "I2I.U16.S32.SAT R9, R10", "R9", "R10"),
    (90, "UR2UP UPR, UR62.B3", "UP0 UP1 UP2 UP3 UP4 UP5 UP6", "UR62"),
    (80, "FFMA.FTZ R0, R1.reuse, -R2, |R3|.reuse", "R0", "R1 R2 R3"),
    (80, "HFMA2.MMA R7, -RZ, RZ, 0, 1.1920928955078125e-07", "R7", ""),
    (80, "HSETP2.GT.AND P0, P1, R2.H0_H0, R3.H1_H1, PT", "P0 P1", "R2 R3"),
    (100, "FFMA2 R10, R11.F32, R4.F32x2.HI_LO, UR6.F32x2.HI_LO", "R10-11", "R11 R4-5 UR6-7"),
    # doubles and conversions
    (80, "DFMA R2, R4, R6, -R8", "R2-3", "R4-9"),
    (80, "DSETP.GEU.AND P0, PT, |R4|, R6, PT", "P0", "R4-7"),
    (80, "MUFU.RCP64H R3, R5", "R3", "R5"),
    (80, "F2F.F64.F32 R2, R4", "R2-3", "R4"),
    (80, "F2F.F32.F64 R2, R4", "R2", "R4-5"),
    (80, "F2I.S64.F64.TRUNC R2, R4", "R2-3", "R4-5"),
    (80, "F2I.U32.F64 R2, R4", "R2", "R4-5"),
    (80, "I2F.F64 R2, R4", "R2-3", "R4"),
    (80, "I2F.U64 R2, R4", "R2", "R4-5"),
    (80, "FRND.F64.FLOOR R2, R4", "R2-3", "R4-5"),
    (80, "FCHK P0, R1, R2", "P0", "R1 R2"),
    (89, "F2IP.S8.F32.NTZ R7, R0, R5, R6", "R7", "R0 R5 R6"),
    # tensor cores
    (80, "HMMA.16816.F32 R4, R8, R12, R16", "R4-7", "R8-11 R12-13 R16-19:accumulator"),
    (80, "HMMA.16816.F16 R4, R8, R12, RZ", "R4-5", "R8-11 R12-13"),
    (80, "HMMA.1688.F32.TF32 R4, R8, R12, R16", "R4-7", "R8-11 R12-13 R16-19:accumulator"),
    (80, "HMMA.SP.16832.F32 R4, R8, R12, R16, R20, 0x0", "R4-7", "R8-11 R12-15 R16-19:accumulator R20"),
    (75, "IMMA.8816.S8.S8 R8, R0.ROW, R7.COL, R10", "R8-9", "R0 R7 R10-11:accumulator"),
    (80, "IMMA.16864.S4.S4 R12, R4.ROW, R8.COL, R16", "R12-15", "R4-7 R8-9 R16-19:accumulator"),
    (80, "BMMA.88128.AND.POPC R12, R4.ROW, R8.COL, R14", "R12-13", "R4 R8 R14-15:accumulator"),
    (80, "DMMA.884 R4, R8, R10, R12", "R4-7", "R8-9 R10-11 R12-15:accumulator"),
    (90, "DMMA.16x8x16 R24, R16, R40, R8", "R24-31", "R16-31 R40-47 R8-15:accumulator"),
    (120, "QMMA.SF.16832.F32.E4M3.E2M1.E8 R12, R4, R8, R16, R10, R11, UR6", "R12-15",
     "R4-7 R8-9 R16-19:accumulator R10 R11 UR6"),
    (120, "OMMA.SF.SP.168128.F32.E2M1.E2M1.UE4M3.4X R12, R4, R8, R16, R2, R20, UR6, 0x0", "R12-15",
     "R4-7 R8-11 R16-19:accumulator R2-3 R20 UR6"),
    (90, "HGMMA.64x64x16.F32 R24, gdesc[UR8].tnspB, R24, gsb0", "R24-55", "UR8-11:address R24-55"),
    (90, "HGMMA.64x16x16.F16 R24, R40, gdesc[UR8], RZ", "R24-27", "R40-43 UR8-11:address"),
    (90, "IGMMA.SP.64x16x64.S8.S8 R24, R40, gdesc[UR8], R24, R48, gsb0", "R24-31",
     "R40-43 UR8-11:address R24-31 R48"),
    (100, "UTCHMMA gdesc[UR14], gdesc[UR16], tmem[UR8], tmem[UR4], idesc[UR5], UR20, UP0", "",
     "UR14-15:address UR16-17:address UR8:address UR4:address UR5:address UR20-23 UP0"),
    (100, "UTCQMMA gdesc[UR14], gdesc[UR16], tmem[UR8], tmem[UR4], idesc[UR5], tmem[UR6], UP0", "",
     "UR14-15:address UR16-17:address UR8:address UR4:address UR5:address UR6-7:address UP0"),
    (103, "LDTM.STAT.x4.MAX.F32 R9, R4, tmem[UR4]", "R4-7 R9", "UR4:address"),
    (100, "LDTM.16dp256bit.x2 R8, tmem[UR4+0x8]", "R8-15", "UR4:address"),
    (100, "STTM.x4 tmem[UR8], R4", "", "UR8:address R4-7"),
    # uniform datapath
    (80, "ULDC.64 UR4, c[0x0][0x118]", "UR4-5", ""),
    (80, "ULEA UR4, UR5, UR6, 0x4", "UR4", "UR5 UR6"),
    (120, "UMOV.64 UR4, UR6", "UR4-5", "UR6-7"),
    (90, "R2UR UR4, R2", "UR4", "R2"),
    (80, "UISETP.GE.AND UP0, UPT, UR4, 0x1, UPT", "UP0", "UR4"),
    (100, "LDCU.128 UR8, c[0x0][0x380]", "UR8-11", ""),
    # special registers, constants, lanes
    (80, "S2R R0, SR_TID.X", "R0", ""),
    (80, "LDC.64 R2, c[0x0][R4+0x160]", "R2-3", "R4:address"),
    (80, "MOV R2, c[0x3][UR4]", "R2", "UR4:address"),
    (75, "MOV R2, cx[UR4][0x10]", "R2", "UR4-5:descriptor"),
    (80, "SHFL.BFLY PT, R2, R3, R4, 0x1f", "R2", "R3 R4"),
    (80, "SHFL.DOWN P0, R2, R3, 0x4, 0x1f", "P0 R2", "R3"),
    (80, "MATCH.ALL.U64 P1, R6, R8", "P1 R6", "R8-9"),
    (80, "REDUX.SUM.S32 UR4, R2", "UR4", "R2"),
    (80, "B2R.RESULT RZ, P0", "P0", ""),
    # memory
    (75, "LDG.E.SYS R4, [R10.64+UR4]", "R4", "R10-11:address UR4-5:address"),
    (75, "LDG.E.SYS R4, [R10]", "R4", "R10-11:address"),
    (80, "LDG.E R4, [R2.U32+UR6]", "R4", "R2:address UR6-7:address"),
    (90, "@P0 LDG.E.128 R4, desc[UR6][R2.64+0x10]", "R4-7", "P0:guard R2-3:address UR6-7:descriptor"),
    (100, "LDG.E.ENL2.256 R4, R12, desc[UR4][R2.64]", "R4-7 R12-15", "R2-3:address UR4-5:descriptor"),
    (100, "STG.E.ENL2.256 desc[UR4][R2.64], R8, R12", "", "R2-3:address UR4-5:descriptor R8-15"),
    (100, "LDG.E.NA.EFL2.LTC256B.256.CONSTANT R40, R144, desc[UR76][R8.64]", "R40-43 R144-147",
     "R8-9:address UR76-77:descriptor"),
    (100, "LDG.E.NA.ELL2.LTC256B.256.CONSTANT R4, R12, desc[UR4][R2.64]", "R4-7 R12-15",
     "R2-3:address UR4-5:descriptor"),
    (100, "STG.E.NA.EFL2.256 desc[UR76][R12.64], R4, R8", "", "R12-13:address UR76-77:descriptor R4-11"),
    (90, "STG.E.64 desc[UR4][R2.64], R8", "", "R2-3:address UR4-5:descriptor R8-9"),
    (90, "LDGSTS.E.BYPASS.128 [R7+UR8], desc[UR4][R2.64], !P1", "",
     "R7:address UR8:address R2-3:address UR4-5:descriptor P1"),
    (80, "LDS.64 R4, [R2.X8+UR4+0x10]", "R4-5", "R2:address UR4:address"),
    (80, "LDSM.16.MT88.4 R4, [R2+0x40]", "R4-7", "R2:address"),
    (100, "LDSM.8.MT1616.2 R8, [R26+UR4]", "R8-11", "R26:address UR4:address"),
    (90, "STSM.16.M88.2 [R2], R4", "", "R2:address R4-5"),
    (80, "LDL.128 R4, [R1+0x8]", "R4-7", "R1:address"),
    (80, "STL [R1], R4", "", "R1:address R4"),
    (90, "ATOMG.E.CAS.128.STRONG.GPU PT, R16, [R20], R8, R12", "R16-19", "R20-21:address R8-15"),
    (90, "ATOMG.E.MIN.S64.STRONG.GPU PT, R16, desc[UR12][R14.64], R8", "R16-17",
     "R14-15:address UR12-13:descriptor R8-9"),
    (90, "REDG.E.ADD.F32x4.RN.STRONG.GPU desc[UR4][R2.64], R4", "", "R2-3:address UR4-5:descriptor R4-7"),
    (75, "RED.E.ADD.F16x2.RN.STRONG.GPU [UR4], R12", "", "UR4-5:address R12"),
    (80, "ATOMS.CAST.SPIN.64 P0, [R7], R8, R10", "P0", "R7:address R8-11"),
    (80, "QSPC.E.S P0, RZ, [R8]", "P0", "R8-9:address"),
    # mbarriers and copies in the background
    (90, "SYNCS.EXCH.64 URZ, [UR9], UR4", "", "UR9:address UR4-5"),
    (90, "SYNCS.ARRIVE.TRANS64.A1T0 R2, [UR9], RZ", "R2-3", "UR9:address"),
    (90, "SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [R4+URZ], R3", "P0", "R4:address R3"),
    (90, "UTMALDG.3D [UR8], [UR16], desc[UR4]", "", "UR8-12:address UR16-17:address UR4-5:address"),
    (90, "UTMASTG.2D [UR12], [UR4]", "", "UR12-14:address UR4-5:address"),
    (100, "UTMALDG.2D.GATHER4 [UR56], [UR68], desc[UR70]", "",
     "UR56-62:address UR68-69:address UR70-71:address"),
    (100, "UTMASTG.2D.SCATTER4 [UR12], [UR4]", "", "UR12-17:address UR4-5:address"),
    (90, "UBLKCP.G.S [UR22], [UR12], UR15", "", "UR22-23:address UR12:address UR15"),
    (90, "STAS.128 [R14.64], R4", "", "R14-15:address R4-7"),
    (90, "USETMAXREG.TRY_ALLOC.CTAPOOL UP0, 0xe8", "UP0", ""),
    # control flow
    (80, "@!P0 BRA `(.L_x_1)", "", "P0:guard"),
    (90, "BRA.U UP0, `(.L_x_1)", "", "UP0"),
    (80, "BRA.DIV UR6, `(.L_x_1)", "", "UR6"),
    (80, "RET.REL.NODEC R20 `(kernel)", "", "R20-21"),
    (80, "CALL.ABS.NOINC R2", "", "R2-3"),
    (80, "BRX R4 -0x110", "", "R4-5"),
    (90, "LEPC R20, `(.L_x_1)", "R20-21", ""),
    (90, "RPCMOV.32 Rpc.HI, R3", "", "R3"),
    (80, "BSSY B0, `(.L_x_1)", "B0", ""),
    (80, "BSYNC B0", "", "B0"),
    (80, "BREAK P0, B1", "B1", "P0 B1"),
    (75, "BMOV.32.CLEAR R4, B2", "R4 B2", "B2"),
    (75, "BMOV.32 B2, R4", "B2", "R4"),
    (90, "BAR.RED.POPC.DEFER_BLOCKING R4, R5, P0", "", "R4 R5 P0"),
    (80, "NOP", "", ""),
]  # fmt: skip


def described(accesses: tuple[Access, ...]) -> set[str]:
    return {name_of(a.register) + ("" if a.role == DATA else f":{a.role}") for a in accesses}


def expanded(text: str) -> set[str]:
    """{"R4", "R5"} of "R4-5"."""
    found = set()
    for item in text.split():
        name, _, role = item.partition(":")
        first, _, last = name.partition("-")
        letters = first.rstrip("0123456789")
        number = int(first.removeprefix(letters))
        for k in range(number, int(last or number) + 1):
            found.add(f"{letters}{k}" + (f":{role}" if role else ""))
    return found


@pytest.mark.parametrize(("arch", "text", "defs", "uses"), CASES, ids=[f"{a}: {t}" for a, t, _, _ in CASES])
def test_accesses(arch: int, text: str, defs: str, uses: str) -> None:
    instruction = parse(text, arch)
    assert instruction.declaration is not None
    assert described(instruction.defs) == expanded(defs)
    assert described(instruction.uses) == expanded(uses)


HIDDEN = [
    (0x0C1E19000000000602007981, "LDG.E R0, [R2.64]", "UR6-7"),
    (0x0C1019000000000404007980, "LD.E R0, [R4.64]", "UR4-5"),
    (0x0C1019060000000B02007986, "STG.E [R2.64], R11", "UR6-7"),
    (0x0C101904000000050C007985, "ST.E [R12.64], R5", "UR4-5"),
    (0x0C10E784000000080E00798E, "RED.E.ADD.F32.FTZ.RN.STRONG.GPU [R14.64], R8", "UR4-5"),
    (0x081F41C60000000F060079A8, "ATOMG.E.ADD.STRONG.SYS PT, R0, [R6.64], R15", "UR6-7"),
    (0x0A901D4E000000000A597FAE, "LDGSTS.E.BYPASS.LTC128B.128 [R89], [R10.64], P5", "UR14-15"),
    (0x001E090000000000080F7381, "LDG.E R15, [R8]", ""),
    (0x00100B000000000006127980, "LD.E.64 R18, [R6]", ""),
    (0x001EE10500000404060B73A9, "ATOMG.E.CAS.STRONG.GPU PT, R11, [R6+0x4], R4, R5", ""),
]


@pytest.mark.parametrize(("word", "text", "pair"), HIDDEN, ids=[text for _, text, _ in HIDDEN])
def test_hidden_descriptor_of_sm_80(word: int, text: str, pair: str) -> None:
    """Words of compiled code: nvdisasm prints the descriptor only from sm_90 on."""
    uses = described(parse(text, 80, word, registers=255).uses)
    assert {use for use in uses if use.endswith(":descriptor")} == {f"{r}:descriptor" for r in expanded(pair)}
    assert not any(use.startswith("UR") for use in described(parse(text, 75, word).uses))


@pytest.mark.parametrize(
    "text",
    [
        "FROBNICATE.E R0, R1",
        "TEX.SCR.LL R10, R8, R8, R10, 0x0, 0x58, 2D",
        "LDG.E.512 R0, [R2.64]",
        "LOP3.64 R0, R2, R4, RZ, 0xc0, !PT",
        "MOV.128 R0, R4",
        "HMMA.32816.F32 R4, R8, R12, R16",
        "LDSM.16.M1616.2 R4, [R2]",
        "LDTM.64dp32bit.x2 R4, tmem[UR4]",
        "LDG.E.128 R254, [R2.64]",
        "UTMAFOO.2D [UR4], [UR6]",
        "LDS R0, [R2+R4]",
        "FADD R0, R1, Q2",
    ],
)
def test_what_is_not_known_may_touch_everything(text: str) -> None:
    instruction = parse(text, registers=32)
    assert instruction.declaration is None
    assert instruction.defs == instruction.uses
    touched = {name_of(access.register) for access in instruction.defs}
    assert expanded("R0-31 P0-6 UP0-6 UR0-127 B0-15") == touched


def test_a_register_is_listed_once_per_role() -> None:
    instruction = parse("FFMA R0, R0, R0, R0")
    assert instruction.defs == (Access(0, DATA),)
    assert instruction.uses == (Access(0, DATA),)
