"""What must hold for every instruction of every cubin; each function answers with a complaint or None."""

import re
from collections.abc import Callable

from cuasmrl.binary.cubin import Kernel
from cuasmrl.binary.sass import Control, Instruction, Kind, Pipe, without_control

TEXTURES = ("TEX", "TLD")
"""Their words have bits set where reuse flags usually are, and nvdisasm prints no mark for them."""


def rebuilt(i: Instruction) -> str:
    """The text from its parsed parts."""
    texts = [o.text for o in i.operands]
    # nvdisasm puts a blank behind a float that is no ordinary number, unless it is the last operand.
    texts[:-1] = [text + " " if re.search("INF|NAN", text) else text for text in texts[:-1]]
    blank = i.opcode in ("RET", "BRX", "CALL") and len(texts) == 2
    guard = f"@{i.guard.text} " if i.guard else ""
    return f"{guard}{i.mnemonic} {(' ' if blank else ', ').join(texts)}".rstrip()


def text_can_be_rebuilt(i: Instruction, kernel: Kernel) -> str | None:
    return None if rebuilt(i) == i.text else f"rebuilt as {rebuilt(i)}"


def control_bits_round_trip(i: Instruction, kernel: Kernel) -> str | None:
    if i.control.encode(without_control(i.word)) != i.word or Control.decode(i.word) != i.control:
        return "control bits do not round-trip"
    # Texture words have other bits where reuse flags usually are.
    return i.control.encoding_fault() if i.declaration is not None else None


def reuse_marks_are_the_reuse_bits(i: Instruction, kernel: Kernel) -> str | None:
    if i.opcode in TEXTURES:
        return None
    counted, flags = i.operands, i.control.reuse
    if i.declaration is not None and i.declaration.pipe is Pipe.TENSOR:
        # Sparsity patterns and scale factors have flags elsewhere, or in the fourth bit without a mark.
        counted, flags = i.operands[:4], i.control.reuse & 7
    marks, bits = sum(o.reused for o in counted), flags.bit_count()
    return None if marks == bits else f"{marks} reuse marks for {bits} reuse bits"


def target_is_that_of_the_word(i: Instruction, kernel: Kernel) -> str | None:
    label = next((o.label for o in i.operands if o.kind is Kind.LABEL), None)
    if label is None or i.opcode not in ("BRA", "BSSY", "CALL", "RET"):
        return None
    target = i.target
    if target is None and re.search(r"R\d+ `", i.text):
        # Through a register: the label is only what the register is relative to.
        target = {name: offset for offset, name in kernel.entry_points}[label]
    return None if target == encoded_target(i) else f"target {target}, but the word says {encoded_target(i)}"


def encoded_target(i: Instruction) -> int:
    """Where a jump leads by the bits of its word."""
    word = int.from_bytes(i.word, "little")
    if i.opcode == "BSSY" and i.arch >= 90:
        distance = _signed(word >> 32, 32)
    elif i.arch >= 90:
        distance = 4 * _signed((word >> 34 & (1 << 48) - 1) << 8 | word >> 16 & 255, 56)
    else:
        distance = 4 * _signed(word >> 34, 48)
    return i.address + 16 + distance


def _signed(value: int, bits: int) -> int:
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def announced_is_declared_variable(i: Instruction, kernel: Kernel) -> str | None:
    """A scoreboard on a result that we took to be ready after a fixed time would be overlooked."""
    if i.declaration is None or not i.control.sets or i.is_variable:
        return None
    return f"sets scoreboard {i.control.sets}, but is declared to take a fixed time"


CHECKS: tuple[Callable[[Instruction, Kernel], str | None], ...] = (
    text_can_be_rebuilt,
    control_bits_round_trip,
    reuse_marks_are_the_reuse_bits,
    target_is_that_of_the_word,
    announced_is_declared_variable,
)
