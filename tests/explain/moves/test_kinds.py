"""What instructions are for, and where in the code they stand."""

from cuasmrl.explain.moves.kinds import Kind, kinds_of
from cuasmrl.explain.moves.loops import loops_of, where
from cuasmrl.schedule import Block, control_flow
from tests.traced_kernels import traced


def test_opcodes_have_kinds() -> None:
    listing = traced("gemm_leaky_relu").listing
    found: dict[str, set[Kind]] = {}
    for instruction, kind in zip(listing.instructions, kinds_of(listing), strict=True):
        found.setdefault(instruction.opcode, set()).add(kind)
    assert found["HMMA"] == {Kind.PRODUCT}
    assert found["LDSM"] == {Kind.SHARED_LOAD}
    assert found["LDGSTS"] == {Kind.COPY}
    assert found["LDGDEPBAR"] == {Kind.COPY_GROUP}
    assert found["DEPBAR"] == {Kind.COPY_WAIT}
    assert found["BAR"] == {Kind.BARRIER}
    assert found["BRA"] == found["EXIT"] == {Kind.FLOW}
    assert found["FMUL"] == {Kind.FLOAT}
    assert found["IADD3"] <= {Kind.ADDRESS, Kind.INTEGER}


def test_what_becomes_an_address_is_address_arithmetic() -> None:
    """Also over a detour, and round the loop."""
    listing = traced("gemm_leaky_relu").listing
    kinds, code = kinds_of(listing), listing.instructions
    bases = {
        operand.register.index
        for i in code if i.opcode == "LDGSTS"
        for operand in i.operands if operand.register is not None and operand.text.startswith("[")
    }  # fmt: skip
    loop = next(
        block for block in control_flow(listing) if block.number in block.successors and len(block) > 1
    )
    writers = [
        i.index for i in code[loop.start : loop.end]
        if i.opcode in ("IADD3", "IMAD") and i.operands[0].register and i.operands[0].register.index in bases
    ]  # fmt: skip
    assert writers
    assert Kind.ADDRESS in {kinds[i] for i in writers}
    packed = [i.index for i in code if i.opcode == "PRMT"]
    assert {kinds[i] for i in packed} == {Kind.INTEGER}


def test_words_for_numbers_of_a_kind() -> None:
    assert Kind.BARRIER.counted(1) == "a barrier"
    assert Kind.COPY.counted(1) == "an asynchronous copy"
    assert Kind.COPY.counted(2) == "2 asynchronous copies"
    assert Kind.ADDRESS.counted(1) == "an address instruction"
    assert Kind.INTEGER.counted(3) == "3 integer instructions"
    assert Kind.COPY_WAIT.counted(2) == "2 waits for copies"
    assert Kind.ADDRESS.plural == "address arithmetic"


def test_places_in_words() -> None:
    straight = (Block(0, 0, 5, (1,)), Block(1, 5, 6, (1,)))
    assert loops_of(straight) == ()
    assert where(0, ()) == "in straight code"
    one = (Block(0, 0, 5, (1,)), Block(1, 5, 9, (2,)), Block(2, 9, 12, (1, 3)), Block(3, 12, 14, ()))
    loops = loops_of(one)
    assert loops == (range(1, 3),)
    assert [where(n, loops) for n in range(4)] == [
        "before the loop", "in the loop", "in the loop", "after the loop",
    ]  # fmt: skip
    two = (*loops, range(5, 6))
    assert where(1, two) == "in a loop"
    assert where(4, two) == "between loops"
    assert where(6, two) == "after the loops"
