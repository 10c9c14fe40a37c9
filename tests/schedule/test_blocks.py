"""The control flow graph, on hand-written code and on what compilers really lay out."""

from collections.abc import Callable

import pytest

from cuasmrl.binary.cubin import Cubin
from cuasmrl.binary.sass import disassemble_kernel
from cuasmrl.schedule import control_flow
from tests.assembly import listing

LOOP = """
B------:R-:W-:-:S04  MOV R0, 0x4
.Lhead:
B------:R-:W-:-:S04  IADD3 R0, R0, -0x1, RZ
B------:R-:W-:-:S13  ISETP.NE.AND P0, PT, R0, RZ, PT
B------:R-:W-:-:S05  @P0 BRA `(.Lhead)
B------:R-:W-:-:S05  EXIT
.Lend:
B------:R-:W-:-:S00  BRA `(.Lend)
"""


def test_a_loop_has_a_back_edge_and_a_way_out() -> None:
    blocks = control_flow(listing(LOOP))
    assert [(b.start, b.end) for b in blocks] == [(0, 1), (1, 4), (4, 5), (5, 6)]
    assert [b.successors for b in blocks] == [(1,), (1, 2), (), (3,)]


def test_a_predicate_operand_makes_a_branch_conditional() -> None:
    code = listing("""
    B------:R-:W-:-:S05  BRA.U UP0, `(.Lout)
    B------:R-:W-:-:S05  NOP
    .Lout:
    B------:R-:W-:-:S05  EXIT
    """)
    assert control_flow(code)[0].successors == (1, 2)


@pytest.mark.parametrize("branch", ["BRA.DIV ~URZ, `(.Lout)", "@!PT BRA `(.Lout)"])
def test_a_branch_that_lanes_may_not_take_goes_on(branch: str) -> None:
    code = listing(f"""
    B------:R-:W-:-:S05  {branch}
    B------:R-:W-:-:S05  NOP
    .Lout:
    B------:R-:W-:-:S05  EXIT
    """)
    assert 1 in control_flow(code)[0].successors


def test_a_call_returns_behind_every_call() -> None:
    code = listing("""
    B------:R-:W-:-:S05  CALL.REL.NOINC `(.Lfunction)
    B------:R-:W-:-:S05  CALL.REL.NOINC `(.Lfunction)
    B------:R-:W-:-:S05  EXIT
    .Lfunction:
    B------:R-:W-:-:S05  RET.REL.NODEC R2 `(.Lfunction)
    """)
    blocks = control_flow(code)
    assert blocks[0].successors == (3,)
    assert set(blocks[3].successors) >= {1, 2}


def test_a_conditional_call_may_be_a_plain_jump(built: Callable[[str, str, int], Cubin]) -> None:
    """ptxas 12.9 leaves some loops by `@P0 CALL.REL.NOINC` and a BRA back."""
    code = disassemble_kernel(built("flash_attention", "m64n64_w4_s3", 80))
    blocks = control_flow(code)
    jumps = [b for b in blocks if code.instructions[b.end - 1].opcode == "CALL"]
    assert jumps
    for block in jumps:
        last = code.instructions[block.end - 1]
        assert last.target is not None
        targets = {blocks[s].start * 16 for s in block.successors}
        assert last.target in targets
        assert last.address + 16 in targets or not last.is_conditional


def test_lanes_go_on_behind_their_bsync() -> None:
    code = listing("""
    B------:R-:W-:-:S05  BSSY B0, `(.Ljoin)
    B------:R-:W-:-:S05  @P0 BRA `(.Lelse)
    B------:R-:W-:-:S05  NOP
    .Lelse:
    B------:R-:W-:-:S05  BSYNC B0
    .Ljoin:
    B------:R-:W-:-:S05  EXIT
    """)
    blocks = control_flow(code)
    assert blocks[-2].successors == (len(blocks) - 1,)


def test_an_indirect_branch_without_a_table_may_go_anywhere() -> None:
    code = listing("""
    B------:R-:W-:-:S05  BRX R2 -0x10
    .La:
    B------:R-:W-:-:S05  EXIT
    .Lb:
    B------:R-:W-:-:S05  EXIT
    """)
    assert control_flow(code)[0].successors == (0, 1, 2)


def test_every_instruction_is_in_one_block(built: Callable[[str, str, int], Cubin]) -> None:
    for arch in (80, 90, 120):
        code = disassemble_kernel(built("softmax", "w4", arch))
        blocks = control_flow(code)
        assert [i for b in blocks for i in range(b.start, b.end)] == list(range(len(code.instructions)))
        assert all(0 <= s < len(blocks) for b in blocks for s in b.successors)
