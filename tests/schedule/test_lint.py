"""Lint: planted findings are named, compiler output has no hazard."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from cuasmrl import workloads
from cuasmrl.binary.cubin import Cubin
from cuasmrl.binary.sass import Control, Listing, disassemble
from cuasmrl.binary.sass.instruction import parse_instruction
from cuasmrl.schedule.lint import Finding, Rule, lint
from tests.assembly import listing

CASES = [("gemm_leaky_relu", "m64n64k32_w4_s3", 80), ("softmax", "w4", 75), ("reduction", "t128", 86),
         ("bmm", "m32n64k32_w2_s2", 89), ("softmax", "w4", 90), ("transpose", "t32x8", 100),
         ("vector_add", "b1024_w4", 120)]  # fmt: skip


def listings(name: str, config: str, arch: int) -> Iterator[Listing]:
    workload = workloads.get(name)
    built = workload.build(workload.config(config), arch)
    yield from disassemble(Cubin.parse(built.cubin)).values()


def of(rule: Rule, code: Listing) -> list[Finding]:
    return [finding for finding in lint(code) if finding.rule is rule]


@pytest.mark.parametrize(("name", "config", "arch"), CASES)
def test_no_hazard_in_compiler_output(name: str, config: str, arch: int) -> None:
    for code in listings(name, config, arch):
        assert [f.sentence for f in lint(code) if f.is_hazard] == []


def with_control(code: Listing, index: int, control: Control) -> Listing:
    old = code.instructions[index]
    labels = {o.label: old.target for o in old.operands if o.label and old.target is not None}
    new = parse_instruction(
        index, control.encode(old.word), old.text, old.arch, code.kernel.registers, labels
    )
    changed = (*code.instructions[:index], new, *code.instructions[index + 1 :])
    return Listing(code.kernel, changed)


def test_a_result_read_too_soon_is_named() -> None:
    """Shorten stalls in a real kernel until a float result cannot have arrived."""
    (code,) = listings("softmax", "w4", 80)
    pair = next(
        (a, b)
        for a, b in zip(code.instructions, code.instructions[1:], strict=False)
        if a.opcode == b.opcode == "FADD"
        and a.control.stall == 4
        and {d.register for d in a.defs} & {u.register for u in b.uses}
        and not b.control.wait_mask
    )
    broken = with_control(code, pair[0].index, replace(pair[0].control, stall=1, yield_=False))
    found = of(Rule.UNPROTECTED_DISTANCE, broken)
    assert any(f.address == pair[1].address and pair[0].text in f.sentence for f in found)


def test_a_load_nobody_waits_for_is_named() -> None:
    code = listing("""
    B------:R-:W0:-:S02  LDG.E R4, desc[UR4][R2.64]
    B------:R-:W-:-:S04  FADD R5, R4, R4
    B------:R-:W-:-:S05  EXIT
    """)
    (finding,) = of(Rule.UNPROTECTED_RESULT, code)
    assert finding.address == 0x10
    assert "R4 without waiting for LDG.E" in finding.sentence


@pytest.mark.parametrize(
    ("behind", "is_named"), [("FRND.F64.FLOOR", False), ("MUFU.RCP64H", False), ("BREV", True)]
)
def test_a_result_that_a_later_one_may_announce_is_not_named(behind: str, is_named: bool) -> None:
    """As ptxas leaves out the scoreboard of an I2F in front of a FRND, though seldom; of a BREV, never."""
    code = listing(f"""
        B------:R-:W-:-:S08  I2F.F64.U32 R46, R46
        B------:R-:W1:-:S01  {behind} R8, R8
        B-1----:R-:W-:Y:S08  DFMA R22, R8, -R24, R22
        B------:R-:W-:-:S02  DMUL R26, R16, R46
        B------:R-:W-:-:S05  EXIT
    """, arch=100)  # fmt: skip
    assert bool(of(Rule.UNPROTECTED_RESULT, code)) is is_named


def test_a_wasted_stall_says_what_suffices() -> None:
    code = listing("""
    B------:R-:W-:Y:S15  FADD R1, R8, R9
    B------:R-:W-:-:S04  FADD R2, R8, R9
    B------:R-:W-:-:S05  FADD R3, R1, R2
    B------:R-:W-:-:S05  EXIT
    """, arch=80)  # fmt: skip
    (finding,) = [f for f in of(Rule.WASTED_STALL, code) if f.address == 0]
    assert finding.cycles > 0
    assert "stalls 15 cycles" in finding.sentence


def test_a_filler_is_a_note_but_alignment_is_not() -> None:
    code = listing("""
    B------:R-:W-:-:S04  @!UPT UIADD3 URZ, URZ, URZ, URZ
    B------:R-:W-:-:S05  EXIT
    B------:R-:W-:Y:S00  NOP
    """)
    (finding,) = of(Rule.PINNED_FILLER, code)
    assert finding.address == 0
    assert not finding.is_hazard


def test_an_unknown_opcode_is_reported() -> None:
    code = listing("B------:R-:W-:-:S04  FROB R1, R2\nB------:R-:W-:-:S05  EXIT")
    (finding,) = of(Rule.UNKNOWN_OPCODE, code)
    assert "FROB R1, R2 at 0x0000" in finding.sentence
