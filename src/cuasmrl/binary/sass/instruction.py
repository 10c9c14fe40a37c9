"""An instruction: one 16-byte word, what nvdisasm says about it, and what it reads and writes."""

import re
from dataclasses import dataclass
from functools import cached_property

from cuasmrl.binary.cubin import WORD_BYTES
from cuasmrl.binary.sass.accesses import Access, accesses_of, destination_count, everything
from cuasmrl.binary.sass.control import Control
from cuasmrl.binary.sass.opcodes import OPCODES, Opcode, Order, Pipe
from cuasmrl.binary.sass.operands import Kind, Operand, parse_operand, split_operands

_STATEMENT = re.compile(r"(?:@(?P<guard>!?U?P[T\d]) )?\s*(?P<mnemonic>[A-Z][\w.]*)\s*(?P<operands>.*)$")
_BASED = re.compile(r"(U?R\d+) (`\(.*\)|-?0x[0-9a-f]+)$")
_SHAPE_OR_TYPE = re.compile(r"\d{3,}|\d+x\d+x\d+|F16|F32|F64|BF16|TF32|[SU][48]|E\dM\d|SP|SF")


@dataclass(frozen=True)
class Instruction:
    index: int
    """Position in the original listing: an instruction keeps it as its name when it moves."""
    word: bytes
    text: str
    """As nvdisasm prints it, without the semicolon and its comments."""
    guard: Operand | None
    mnemonic: str
    operands: tuple[Operand, ...]
    control: Control
    arch: int
    declaration: Opcode | None
    """None for an opcode this version does not know: such an instruction is never moved."""
    defs: tuple[Access, ...]
    uses: tuple[Access, ...]
    target: int | None
    """Code offset that a branch, call or BSSY names; None where a register decides (RET, BRX, CALL R2)."""

    @property
    def address(self) -> int:
        return self.index * WORD_BYTES

    @cached_property
    def opcode(self) -> str:
        return self.mnemonic.split(".", 1)[0]

    @cached_property
    def modifiers(self) -> tuple[str, ...]:
        return tuple(self.mnemonic.split(".")[1:])

    @cached_property
    def destinations(self) -> int:
        """How many leading operands it writes; 0 for an unknown opcode."""
        if self.declaration is None:
            return 0
        return destination_count(self.declaration, self.modifiers, self.operands)

    @cached_property
    def timing_key(self) -> str:
        """The opcode with those modifiers that change its latency."""
        if self.declaration is None:
            return self.opcode
        keyed = self.declaration.keyed_by
        if keyed == ("*",):
            chosen = [m for m in self.modifiers if _SHAPE_OR_TYPE.fullmatch(m)]
        else:
            chosen = [m for m in self.modifiers if m in keyed]
        return ".".join([self.opcode, *chosen])

    @cached_property
    def is_variable(self) -> bool:
        """Is its completion announced by a scoreboard rather than known in advance?

        Where it depends on the assembler (sm_100 doubles), the control bits of the word tell.
        """
        if self.declaration is None or not self.declaration.is_variable(self.arch):
            return False
        if self.arch in self.declaration.by_assembler:
            return bool(self.control.sets)
        return True

    @cached_property
    def order(self) -> Order:
        if self.declaration is None or self.is_filler or _reads_clock(self.operands):
            return Order.PINNED
        if self.declaration.pipe is Pipe.TENSOR and any(operand.reused for operand in self.operands[4:]):
            # Reuse flags of sparsity patterns and scale factors are no control bits and cannot be cleared.
            return Order.PINNED
        return self.declaration.order

    @cached_property
    def never_executes(self) -> bool:
        """Is it guarded by a constant false: @!PT or @!UPT?"""
        return self.guard is not None and self.guard.inverted and not self.is_conditional

    @cached_property
    def is_dummy_load(self) -> bool:
        """`@!PT LDS RZ, [RZ]`: it takes a slot of the shared-memory queue and belongs to what follows."""
        return self.never_executes and self.opcode == "LDS"

    @cached_property
    def is_filler(self) -> bool:
        """An instruction that only passes time."""
        return self.never_executes and not self.is_dummy_load

    @cached_property
    def depbar(self) -> tuple[int, int, tuple[int, ...]] | None:
        """DEPBAR's condition: (scoreboard, the count it may still hold, scoreboards that must be zero)."""
        if self.opcode != "DEPBAR":
            return None
        board: int | None = None
        count, also = 0, tuple[int, ...]()
        for operand in self.operands:
            if operand.kind is Kind.SCOREBOARD:
                board = int(operand.value or 0)
            elif operand.kind is Kind.IMMEDIATE:
                count = int(operand.value or 0)
            elif operand.kind is Kind.BARRIER_SET:
                also = tuple(int(k) for k in re.findall(r"\d", operand.text))
        return None if board is None else (board, count, also)

    @cached_property
    def is_product(self) -> bool:
        """Is it a product of a warpgroup, which runs on beside the warp?"""
        return self.order is Order.PRODUCT and self.opcode != "WARPGROUP"

    @cached_property
    def closes_group(self) -> bool:
        """Is it the last product of a group?"""
        return self.is_product and any(operand.text.startswith("gsb") for operand in self.operands)

    @cached_property
    def is_arrival(self) -> bool:
        """WARPGROUP.ARRIVE: products behind it see the registers as they are."""
        return self.opcode == "WARPGROUP" and "ARRIVE" in self.modifiers

    @cached_property
    def groups_left(self) -> int | None:
        """WARPGROUP.DEPBAR's condition: how many groups of products, the youngest ones, may run on."""
        if self.opcode != "WARPGROUP" or "DEPBAR" not in self.modifiers:
            return None
        return next((int(o.value or 0) for o in self.operands if o.kind is Kind.IMMEDIATE), 0)

    @cached_property
    def is_conditional(self) -> bool:
        guard = self.guard
        return guard is not None and not (guard.register is not None and guard.register.index is None)

    def __str__(self) -> str:
        return f"{self.text} at {self.address:#06x}"


def _reads_clock(operands: tuple[Operand, ...]) -> bool:
    return any(o.kind is Kind.SPECIAL and ("CLOCK" in o.text or "TIMER" in o.text) for o in operands)


def parse_instruction(
    index: int, word: bytes, text: str, arch: int, registers: int, labels: dict[str, int]
) -> Instruction:
    match = _STATEMENT.match(text)
    if match is None:
        raise ValueError(f"cannot read {text!r}")
    guard = parse_operand(match["guard"]) if match["guard"] else None
    mnemonic = match["mnemonic"]
    operands = tuple(parse_operand(part) for part in _operand_texts(match["operands"]))
    declaration = OPCODES.get(mnemonic.split(".", 1)[0])
    modifiers = tuple(mnemonic.split(".")[1:])
    found = None
    if declaration is not None:
        try:
            found = accesses_of(declaration, modifiers, operands, guard, word, arch)
        except ValueError:
            # A form that the width rules do not cover, or whose registers run off the end of the file, is
            # as unknown as a new opcode.
            declaration = None
    if found is None:
        found = everything(registers)
    return Instruction(
        index=index,
        word=word,
        text=text,
        guard=guard,
        mnemonic=mnemonic,
        operands=operands,
        control=Control.decode(word),
        arch=arch,
        declaration=declaration,
        defs=found.defs,
        uses=found.uses,
        target=_target(operands, labels, text),
    )


def _operand_texts(text: str) -> list[str]:
    """Split the operands; ``RET R2 `(k)`` and `BRX R2 -0x10` join a register and its base with a blank."""
    parts = split_operands(text)
    if parts and (match := _BASED.fullmatch(parts[-1])):
        parts[-1:] = [match[1], match[2]]
    return parts


def _target(operands: tuple[Operand, ...], labels: dict[str, int], text: str) -> int | None:
    if _BASED.search(text):
        return None
    return next((labels[o.label] for o in operands if o.label is not None and o.label in labels), None)
