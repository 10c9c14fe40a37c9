"""What an instruction reads and writes: registers with exact widths, including operands nvdisasm hides."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from cuasmrl.binary.sass.opcodes import Opcode, Order, Pipe, Shape, Widths
from cuasmrl.binary.sass.operands import Kind, Operand, Register
from cuasmrl.binary.sass.registers import BARRIER_REGISTERS, PREDICATES, File, file_of, resource
from cuasmrl.binary.sass.widths import UnknownFormError, is_in_two_groups, widths_of

DATA, GUARD, ADDRESS, DESCRIPTOR = "data", "guard", "address", "descriptor"
ACCUMULATOR, ADDEND, LOW, HIGH = "accumulator", "addend", "low", "high"


# The scoreboard of warpgroup products, and the return address, which no other instruction touches.
_WITHOUT_REGISTERS = re.compile(r"gsb\d|Rpc\.(LO|HI)")


class Access(NamedTuple):
    """One 32-bit register (or predicate) and the part it plays: roles have different latencies."""

    register: int
    role: str = DATA


@dataclass(frozen=True, slots=True)
class Accesses:
    defs: tuple[Access, ...]
    uses: tuple[Access, ...]


def accesses_of(
    opcode: Opcode,
    modifiers: tuple[str, ...],
    operands: tuple[Operand, ...],
    guard: Operand | None,
    word: bytes,
    arch: int,
) -> Accesses:
    """Definitions and uses of one declared instruction."""
    for operand in operands:
        if operand.kind is Kind.OTHER and not _WITHOUT_REGISTERS.fullmatch(operand.text):
            raise UnknownFormError(f"{opcode.name} has an operand {operand.text} that might name a register")
    count = destination_count(opcode, modifiers, operands)
    widths = widths_of(opcode, modifiers, operands, count)
    defs: list[Access] = []
    uses: list[Access] = []
    if guard is not None and guard.register is not None:
        uses += [Access(r, GUARD) for r in guard.register.resources()]
    halved = opcode.widths is Widths.MULTIPLY_ADD
    for position, (operand, width) in enumerate(zip(operands, widths, strict=True)):
        if operand.kind is Kind.REGISTER and operand.register is not None:
            role = _source_role(opcode, position, count)
            accesses = _registers(operand.register.resources(width), halved, role)
            if position < count:
                defs += accesses
            else:
                uses += accesses
        elif operand.kind is Kind.ALL_PREDICATES:
            (defs if position < count else uses).extend(_masked_predicates(operand, operands))
        elif operand.kind in (Kind.ADDRESS, Kind.CONSTANT):
            near = opcode.name == "LDGSTS" and position == 0
            uses += _address_uses(modifiers, operand, width, near)
    uses += _hidden_descriptor(opcode, operands, word, arch)
    if opcode.name == "BREAK" or "CLEAR" in modifiers:
        # BREAK takes lanes out of a barrier register, BMOV.CLEAR empties the one it reads.
        defs += [Access(use.register) for use in uses if file_of(use.register) is File.B]
    return Accesses(tuple(dict.fromkeys(defs)), tuple(dict.fromkeys(uses)))


def _registers(registers: tuple[int, ...], halved: bool, role: str) -> list[Access]:
    """The halves of a 64-bit product and addend are ready, and needed, at different times.

    So it is for .WIDE, and for the addend of .HI: its high word is read later than the factors.
    """
    if halved and len(registers) == 2:
        return [Access(registers[0], LOW), Access(registers[1], HIGH)]
    return [Access(register, role) for register in registers]


@lru_cache
def everything(registers: int) -> Accesses:
    """For an opcode we do not know: it may read and write anything."""
    files = {
        File.R: registers,
        File.UR: 128,
        File.P: PREDICATES,
        File.UP: PREDICATES,
        File.B: BARRIER_REGISTERS,
    }
    every = tuple(Access(resource(file, i)) for file, count in files.items() for i in range(count))
    return Accesses(every, every)


def _source_role(opcode: Opcode, position: int, destinations: int) -> str:
    """What is added to a product may be read later than the factors."""
    if opcode.pipe is Pipe.TENSOR and position == 3:
        return ACCUMULATOR
    is_addend = opcode.widths is Widths.MULTIPLY_ADD and position == destinations + 2
    return ADDEND if is_addend else DATA


def destination_count(opcode: Opcode, modifiers: tuple[str, ...], operands: tuple[Operand, ...]) -> int:
    """How many leading operands are written."""
    match opcode.shape:
        case Shape.NONE:
            return 0
        case Shape.FIRST:
            return 1
        case Shape.PREDICATES_2:
            return 2
        case Shape.ALL_BUT_LAST:
            return len(operands) - 1
    count = 0
    while count < len(operands) and operands[count].is_predicate:
        count += 1
    if count < len(operands) and operands[count].kind is Kind.REGISTER:
        count += 2 if is_in_two_groups(modifiers) else 1
        while count < len(operands) and _is_plain_predicate(operands[count]):
            count += 1
    return count


def _is_plain_predicate(operand: Operand) -> bool:
    return operand.is_predicate and not operand.inverted


def _masked_predicates(operand: Operand, operands: tuple[Operand, ...]) -> list[Access]:
    """P2R and R2P move the predicates that the immediate selects."""
    file = File.UP if operand.text == "UPR" else File.P
    mask = operands[-1].value if operands[-1].kind is Kind.IMMEDIATE else None
    chosen = int(mask) if mask is not None else (1 << PREDICATES) - 1
    return [Access(resource(file, i)) for i in range(PREDICATES) if chosen >> i & 1]


def _address_uses(modifiers: tuple[str, ...], operand: Operand, width: int, near: bool) -> Iterator[Access]:
    """Registers inside brackets; `width` is that of the base where the opcode's rule fixes one."""
    base, uniform, descriptor = operand.register, operand.uniform, operand.descriptor
    if operand.kind is Kind.CONSTANT or operand.space in ("gdesc", "tmem", "idesc"):
        for register in (base, uniform):
            yield from _uses(register, width)
        yield from _uses(descriptor, 2 if operand.space == "cx" else 1, DESCRIPTOR)
        return
    # .E means 64-bit addresses; a base marked .U32 is an offset to the 64 bits in the uniform pair.
    far = "E" in modifiers and not near
    pair = base is not None and ("64" in base.suffixes or (far and "U32" not in base.suffixes))
    yield from _uses(base, 2 if pair else 1, ADDRESS)
    yield from _uses(uniform, 2 if far else width, ADDRESS)
    yield from _uses(descriptor, 2, DESCRIPTOR)


def _uses(register: Register | None, width: int, role: str = ADDRESS) -> Iterator[Access]:
    if register is not None:
        yield from (Access(r, role) for r in register.resources(width))


def _hidden_descriptor(opcode: Opcode, operands: tuple[Operand, ...], word: bytes, arch: int) -> list[Access]:
    """On sm_80..sm_89 a global access may read a uniform pair that nvdisasm does not print.

    Bit 91 of the word selects that form.
    """
    if not 80 <= arch < 90 or opcode.order is not Order.MEMORY:
        return []
    bits = int.from_bytes(word, "little")
    if not bits >> 91 & 1:
        return []
    if opcode.name in ("LDG", "LD"):
        index = bits >> 32 & 63
    elif opcode.name in ("STG", "ST", "LDGSTS", "ATOMG", "ATOM", "RED"):
        index = bits >> 64 & 63
    else:
        return []
    if index == 63 or any(operand.descriptor or operand.uniform for operand in operands):
        return []
    return [Access(resource(File.UR, index + k), DESCRIPTOR) for k in range(2)]
