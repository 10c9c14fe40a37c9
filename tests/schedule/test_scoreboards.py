"""The scoreboard machine: hand-written cases, and that it explains all of the compiler's protection."""

from collections.abc import Callable

import pytest

from cuasmrl.binary.cubin import Cubin
from cuasmrl.binary.sass import Listing, disassemble
from cuasmrl.schedule import control_flow
from cuasmrl.schedule.machine import Ledger, Machine, analyse, bits
from cuasmrl.schedule.scoreboards import Outstanding, in_order, registers_of
from tests.assembly import listing


def state_after(code: Listing, count: int) -> dict[Outstanding, set[int]]:
    """What is under way, and the scoreboards that announce it."""
    ledger = Ledger(code.instructions)
    machine = Machine(ledger, ledger.idle())
    for instruction in code.instructions[:count]:
        machine.end(machine.finished(instruction, instruction.control))
        machine.issue(instruction, instruction.control)
    return {
        ledger.keys[n]: {k for k in range(6) if machine.announced_by(k) >> n & 1} for n in bits(machine.out)
    }


RESULT, READ = False, True


def test_a_load_is_outstanding_until_its_barrier_is_waited_for() -> None:
    code = listing("""
    B------:R-:W0:-:S02  LDG.E R4, desc[UR4][R2.64]
    B------:R-:W-:-:S02  MOV R7, R8
    B0-----:R-:W-:-:S02  FADD R5, R4, R4
    """)
    assert state_after(code, 2)[Outstanding(0, RESULT)] == {0}
    assert state_after(code, 3) == {}


def test_a_later_load_of_the_queue_covers_an_earlier_one() -> None:
    code = listing("""
    B------:R-:W-:-:S04  LDS R4, [R2]
    B------:R-:W1:-:S02  LDS R5, [R2+0x4]
    B-1----:R-:W-:-:S02  FADD R6, R4, R5
    """)
    assert state_after(code, 1)[Outstanding(0, RESULT)] == set()
    assert 1 in state_after(code, 2)[Outstanding(0, RESULT)]
    assert state_after(code, 3) == {}
    analysis = analyse(control_flow(code), code.instructions)
    assert Outstanding(0, RESULT) in [analysis.ledger.keys[n] for n in bits(analysis.covered)]


def test_a_global_load_is_not_covered_by_a_shared_one() -> None:
    code = listing("""
    B------:R-:W-:-:S04  LDG.E R4, desc[UR4][R2.64]
    B------:R-:W1:-:S02  LDS R5, [R2+0x4]
    """)
    assert state_after(code, 2)[Outstanding(0, RESULT)] == set()


def test_reads_are_in_order_over_the_whole_memory_pipe() -> None:
    code = listing("""
    B------:R-:W-:-:S04  STG.E desc[UR4][R2.64], R8
    B------:R-:W1:-:S02  LDS R5, [R6]
    """)
    assert 1 in state_after(code, 2)[Outstanding(0, READ)]
    assert in_order(code.instructions[0], code.instructions[1], is_read=True, reads_result=False)


def test_predicates_and_uniform_registers_are_read_at_issue() -> None:
    code = listing("B------:R-:W-:-:S04  @P0 STG.E desc[UR4][R2.64], R8")
    store = code.instructions[0]
    assert registers_of(store, Outstanding(0, READ)) == {2, 3, 8}


def test_depbar_counts_groups_from_the_newest() -> None:
    code = listing("""
    B------:R-:W0:-:S02  LDGDEPBAR
    B------:R-:W0:-:S02  LDG.E R4, desc[UR4][R2.64]
    B------:R-:W0:-:S02  LDG.E R5, desc[UR4][R2.64]
    B------:R-:W-:-:S04  DEPBAR.LE SB0, 0x1
    """)
    left = state_after(code, 4)
    assert Outstanding(1, RESULT) not in left
    assert Outstanding(2, RESULT) in left


@pytest.mark.parametrize(("arch", "drained"), [(75, True), (80, False)])
def test_a_block_barrier_drains_the_reads_on_sm_75(arch: int, drained: bool) -> None:
    text = """
    B------:R-:W-:-:S04  STS [R2], R8
    B------:R-:W-:-:S05  BAR.SYNC 0x0
    """
    left = [key for key in state_after(listing(text, arch), 2) if key.index == 0]
    assert (left == []) is drained


CASES = [("gemm_leaky_relu", "m64n64k32_w4_s3", 80), ("softmax", "w4", 90), ("softmax", "w4", 75),
         ("transpose", "t32x8", 120), ("reduction", "t128", 100)]  # fmt: skip


@pytest.mark.parametrize(("name", "config", "arch"), CASES)
def test_nothing_the_compiler_emits_is_unprotected(
    built: Callable[[str, str, int], Cubin], name: str, config: str, arch: int
) -> None:
    for code in disassemble(built(name, config, arch)).values():
        assert analyse(control_flow(code), code.instructions).unexplained_consumers == frozenset()
