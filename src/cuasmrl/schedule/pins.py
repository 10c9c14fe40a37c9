"""What must stay where it is, for reasons that no dependence shows."""

from cuasmrl.binary.sass import Instruction, Order
from cuasmrl.schedule.blocks import Block


def leaves_kernel(code: tuple[Instruction, ...]) -> bool:
    """Calls or returns whose other end is elsewhere: what happens there to registers is not known."""
    calls = [i for i in code if i.opcode == "CALL"]
    return any(i.target is None for i in calls) or (not calls and any(i.opcode == "RET" for i in code))


def glued_units(code: tuple[Instruction, ...], blocks: tuple[Block, ...]) -> dict[int, int]:
    """Padding loads and the instruction they pad: each → the next of its unit (the last → itself)."""
    glued: dict[int, int] = {}
    for block in blocks:
        for i in range(block.start, block.end - 1):
            if code[i].is_dummy_load:
                glued[i] = i + 1
                glued.setdefault(i + 1, i + 1)
    return glued


def has_padding_behind(instruction: Instruction, following: Instruction) -> bool:
    """Compilers put a NOP behind what tells an mbarrier of products: the two stay where they are."""
    opcode = instruction.declaration
    return opcode is not None and opcode.padded and following.opcode == "NOP"


def fixed_positions(code: tuple[Instruction, ...], blocks: tuple[Block, ...], is_opaque: bool) -> list[bool]:
    """Which instructions stay: control flow, fences, fillers, all of a block with an unknown opcode."""
    fixed = [is_opaque or i.order is Order.PINNED for i in code]
    for block in blocks:
        for i in range(block.start, block.end - 1):
            fixed[i] |= has_padding_behind(code[i], code[i + 1])
        if any(code[i].declaration is None for i in range(block.start, block.end)):
            fixed[block.start : block.end] = [True] * len(block)
    return fixed
