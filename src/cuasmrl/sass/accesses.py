"""What an instruction reads and writes: registers with exact widths, including operands nvdisasm hides."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from cuasmrl.sass.opcodes import Opcode, Order, Pipe, Shape, Space, Widths
from cuasmrl.sass.operands import Kind, Operand, Register
from cuasmrl.sass.registers import PREDICATES, File, resource

DATA, GUARD, ADDRESS, DESCRIPTOR = "data", "guard", "address", "descriptor"
ACCUMULATOR, LOW, HIGH = "accumulator", "low", "high"


class Access(NamedTuple):
    """One 32-bit register (or predicate) and the part it plays: roles have different latencies."""

    register: int
    role: str = DATA


@dataclass(frozen=True, slots=True)
class Accesses:
    defs: tuple[Access, ...]
    uses: tuple[Access, ...]


_DIGITS = re.compile(r"\d+")
_MMA_SHAPE = re.compile(r"(\d+)x(\d+)x(\d+)|(\d{3,})")
_MMA_SHAPES = {"884": (8, 8, 4), "1688": (16, 8, 8), "16816": (16, 8, 16), "16832": (16, 8, 32), "16864": (16, 8, 64),
               "8816": (8, 8, 16), "8832": (8, 8, 32), "1684": (16, 8, 4)}  # fmt: skip
_WARPGROUP_SHAPE = re.compile(r"64x(\d+)x\d+")
_DATA_WIDTH = {"64": 2, "128": 4, "256": 8}
_ATOMIC_WIDTH = {"F64": 2, "F32x2": 2, "F32x4": 4, "F16x4": 2, "F16x8": 4, "BF16x4": 2, "BF16x8": 4}


def accesses_of(
    opcode: Opcode,
    modifiers: tuple[str, ...],
    operands: tuple[Operand, ...],
    guard: Operand | None,
    word: bytes,
    arch: int,
) -> Accesses:
    """Definitions and uses of one declared instruction."""
    count = _destinations(opcode, operands)
    widths = _WIDTHS[opcode.widths](opcode, modifiers, operands, count)
    defs: list[Access] = []
    uses: list[Access] = []
    if guard is not None and guard.register is not None:
        uses += [Access(r, GUARD) for r in guard.register.resources()]
    wide = opcode.widths is Widths.MULTIPLY_ADD and "WIDE" in modifiers
    for position, operand in enumerate(operands):
        width = widths[position]
        if operand.kind is Kind.REGISTER and operand.register is not None:
            registers = operand.register.resources(width)
            if position < count:
                defs += _halves(registers) if wide else [Access(r) for r in registers]
            elif wide and width == 2:
                uses += _halves(registers)
            else:
                role = _source_role(opcode, position)
                uses += [Access(r, role) for r in registers]
        elif operand.kind is Kind.ALL_PREDICATES:
            target = defs if position < count else uses
            target += _masked_predicates(operand, operands)
        elif operand.kind in (Kind.ADDRESS, Kind.CONSTANT):
            uses += _address_uses(opcode, modifiers, operand, width, arch)
    uses += _hidden_descriptor(opcode, modifiers, operands, word, arch)
    if opcode.name == "BREAK":
        uses += [Access(r) for o in operands if o.register for r in o.register.resources()]
        defs += [Access(r) for o in operands if o.register and o.register.file is File.B for r in o.register.resources()]
    return Accesses(tuple(dict.fromkeys(defs)), tuple(dict.fromkeys(uses)))


def everything(registers: int) -> Accesses:
    """For an opcode we do not know: it may read and write anything."""
    every = tuple(
        Access(resource(file, i))
        for file, count in ((File.R, registers), (File.UR, 128), (File.P, PREDICATES), (File.UP, PREDICATES))
        for i in range(count)
    )
    return Accesses(every, every)


def _halves(registers: tuple[int, ...]) -> list[Access]:
    return [Access(r, role) for r, role in zip(registers, (LOW, HIGH), strict=False)]


def _source_role(opcode: Opcode, position: int) -> str:
    if opcode.pipe is Pipe.TENSOR and position == 3:
        return ACCUMULATOR
    return DATA


def _is_predicate(operand: Operand) -> bool:
    return operand.kind is Kind.REGISTER and operand.register is not None and operand.register.file in (File.P, File.UP)


def _destinations(opcode: Opcode, operands: tuple[Operand, ...]) -> int:
    """How many leading operands are written."""
    match opcode.shape:
        case Shape.NONE:
            return 0
        case Shape.FIRST | Shape.PREDICATES_1 | Shape.ALL_PREDICATES:
            return 1
        case Shape.PREDICATES_2:
            return 2
        case Shape.ALL_BUT_LAST:
            return len(operands) - 1
    count = 0
    while count < len(operands) and _is_predicate(operands[count]):
        count += 1
    if count < len(operands) and operands[count].kind is Kind.REGISTER:
        count += 1
        while count < len(operands) and _is_plain_predicate(operands[count]):
            count += 1
    return count


def _is_plain_predicate(operand: Operand) -> bool:
    return _is_predicate(operand) and not operand.inverted


def _masked_predicates(operand: Operand, operands: tuple[Operand, ...]) -> list[Access]:
    """P2R and R2P move the predicates that the immediate selects."""
    file = File.UP if operand.text == "UPR" else File.P
    mask = operands[-1].value if operands[-1].kind is Kind.IMMEDIATE else None
    chosen = int(mask) if mask is not None else (1 << PREDICATES) - 1
    return [Access(resource(file, i)) for i in range(PREDICATES) if chosen >> i & 1]


def _address_uses(opcode: Opcode, modifiers: tuple[str, ...], operand: Operand, width: int, arch: int) -> Iterator[Access]:
    """Registers inside brackets; `width` is the width of the base, where the opcode's rule fixes one."""
    base, uniform, descriptor = operand.register, operand.uniform, operand.descriptor
    if operand.kind is Kind.CONSTANT or operand.space in ("gdesc", "tmem", "idesc"):
        for register in (base, uniform):
            yield from _uses(register, width)
        yield from _uses(descriptor, 2 if operand.space == "cx" else 1, DESCRIPTOR)
        return
    far = _is_far(opcode, operand, arch, modifiers)
    yield from _uses(base, 2 if far and _is_pair(base, arch) else 1, ADDRESS)
    yield from _uses(uniform, width if width > 1 else 2 if far else 1, ADDRESS)
    yield from _uses(descriptor, 2, DESCRIPTOR)


def _uses(register: Register | None, width: int, role: str = ADDRESS) -> Iterator[Access]:
    if register is not None:
        yield from (Access(r, role) for r in register.resources(width))


def _is_far(opcode: Opcode, operand: Operand, arch: int, modifiers: tuple[str, ...]) -> bool:
    """Does this address name 64-bit memory? LDGSTS has one address of each kind."""
    if opcode.name == "LDGSTS":
        return operand.register is not None and "64" in operand.register.suffixes or operand.descriptor is not None
    return Space.GLOBAL in (opcode.reads, opcode.writes) or Space.GENERIC in (opcode.reads, opcode.writes) or opcode.name in (
        "QSPC", "CCTL")  # fmt: skip


def _is_pair(base: Register | None, arch: int) -> bool:
    """sm_75 prints 64-bit addresses without .64; a 32-bit one is marked .U32 there."""
    if base is None:
        return False
    return "64" in base.suffixes or (arch < 80 and "U32" not in base.suffixes)


def _hidden_descriptor(
    opcode: Opcode, modifiers: tuple[str, ...], operands: tuple[Operand, ...], word: bytes, arch: int
) -> list[Access]:
    """On sm_80..sm_89 every global access also reads a uniform pair that nvdisasm does not print."""
    if not 80 <= arch < 90 or opcode.order is not Order.MEMORY:
        return []
    bits = int.from_bytes(word, "little")
    if opcode.name in ("LDG", "LD"):
        index = bits >> 32 & 63
    elif opcode.name in ("STG", "ST", "LDGSTS", "ATOMG", "ATOM", "RED") and "CAS" not in modifiers:
        index = bits >> 64 & 63
    else:
        return []
    if index == 63 or any(operand.descriptor for operand in operands):
        return []
    return [Access(resource(File.UR, index + k), DESCRIPTOR) for k in range(2)]


# ---- width rules: one per member of `Widths`; each answers with a width for every operand ----


def _single(opcode: Opcode, modifiers: tuple[str, ...], operands: tuple[Operand, ...], count: int) -> list[int]:
    return [1] * len(operands)


def _sized(opcode: Opcode, modifiers: tuple[str, ...], operands: tuple[Operand, ...], count: int) -> list[int]:
    width = 2 if {"64", "U64", "S64"} & set(modifiers) else 1
    return [1 if _is_predicate(o) else width for o in operands]


def _double(opcode: Opcode, modifiers: tuple[str, ...], operands: tuple[Operand, ...], count: int) -> list[int]:
    return [1 if _is_predicate(o) else 2 for o in operands]


def _multiply_add(opcode: Opcode, modifiers: tuple[str, ...], operands: tuple[Operand, ...], count: int) -> list[int]:
    """The addend is the third source: a pair for .WIDE and .HI; the result is a pair for .WIDE."""
    widths = [1] * len(operands)
    if "WIDE" in modifiers:
        widths[0] = 2
    if "WIDE" in modifiers or "HI" in modifiers:
        widths[count + 2] = 2
    return widths


def _convert(opcode: Opcode, modifiers: tuple[str, ...], operands: tuple[Operand, ...], count: int) -> list[int]:
    """`F2I.S64.F64`: the integer type belongs to one side, the float type to the other."""
    long = bool({"S64", "U64"} & set(modifiers))
    double = "F64" in modifiers
    if opcode.name == "F2I":
        result, source = long, double
    elif opcode.name == "I2F":
        result, source = double, long
    elif opcode.name == "F2F":
        types = [m for m in modifiers if m in ("F64", "F32", "F16", "BF16", "TF32")]
        result, source = types[0] == "F64", types[-1] == "F64"
    else:
        result, source = double, double
    return [2 if (result if i < count else source) else 1 for i in range(len(operands))]


def _memory(opcode: Opcode, modifiers: tuple[str, ...], operands: tuple[Operand, ...], count: int) -> list[int]:
    width = max((_DATA_WIDTH.get(m, _ATOMIC_WIDTH.get(m, 1)) for m in modifiers), default=1)
    widths = [width if o.kind is Kind.REGISTER and not _is_predicate(o) else 1 for o in operands]
    if opcode.name in ("LDC", "LDCU", "ULDC", "LDGSTS"):
        return [w if i < count else 1 for i, w in enumerate(widths)]
    if "CAST" in modifiers:
        # The two halves of a compare-and-swap stand in one register group: compare value, then new value.
        widths[-1] *= 2
    return widths


def _matrix_load(opcode: Opcode, modifiers: tuple[str, ...], operands: tuple[Operand, ...], count: int) -> list[int]:
    width = next((int(m) for m in reversed(modifiers) if m in ("2", "4")), 1)
    return [width if o.kind is Kind.REGISTER else 1 for o in operands]


_ELEMENT_BITS = {"F64": 64, "F32": 32, "TF32": 32, "F16": 16, "BF16": 16, "S8": 8, "U8": 8, "S4": 4, "U4": 4, "B1": 1,
                 "E4M3": 8, "E5M2": 8, "E3M2": 8, "E2M3": 8, "E2M1": 8, "E2M1x4": 4}  # fmt: skip


def _mma(opcode: Opcode, modifiers: tuple[str, ...], operands: tuple[Operand, ...], count: int) -> list[int]:
    """Registers of a fragment = rows x columns x bits / (32 lanes x 32 bits)."""
    rows, columns, depth = _mma_shape(modifiers)
    types = [m for m in modifiers if m in _ELEMENT_BITS]
    if opcode.name == "DMMA":
        a_bits = b_bits = accumulator = 64
    elif opcode.name == "IMMA":
        a_bits, b_bits, accumulator = (*(_ELEMENT_BITS[t] for t in (types[0], types[-1])), 32)
    elif opcode.name == "HMMA":
        a_bits = b_bits = 32 if "TF32" in types else 16
        accumulator = 16 if types and types[0] == "F16" else 32
    else:
        inputs = [t for t in types if t.startswith("E")]
        a_bits, b_bits = _ELEMENT_BITS[inputs[0]], _ELEMENT_BITS[inputs[-1]]
        accumulator = 16 if "F16" in types else 32
    sizes = (rows * columns * accumulator, rows * depth * a_bits, depth * columns * b_bits, rows * columns * accumulator)
    if "SP" in modifiers:
        sizes = (sizes[0], sizes[1] // 2, sizes[2], sizes[3])
    registers = [max(1, size // 1024) for size in sizes]
    return [registers[i] if i < 4 else 1 for i in range(len(operands))]


def _mma_shape(modifiers: tuple[str, ...]) -> tuple[int, int, int]:
    for modifier in modifiers:
        if modifier in _MMA_SHAPES:
            return _MMA_SHAPES[modifier]
        if match := _MMA_SHAPE.fullmatch(modifier):
            if match[1]:
                return int(match[1]), int(match[2]), int(match[3])
    raise KeyError(f"no matrix shape among .{'.'.join(modifiers)}")


def _warpgroup_mma(opcode: Opcode, modifiers: tuple[str, ...], operands: tuple[Operand, ...], count: int) -> list[int]:
    columns = next(int(m[1]) for text in modifiers if (m := _WARPGROUP_SHAPE.fullmatch(text)))
    accumulator = columns // 4 if "F16" in modifiers[:2] and "F32" not in modifiers else columns // 2
    widths = []
    for position, operand in enumerate(operands):
        if operand.kind is Kind.ADDRESS:
            widths.append(4)
        elif _is_predicate(operand):
            widths.append(1)
        elif position == 1 and operand.kind is Kind.REGISTER:
            widths.append(4)
        else:
            widths.append(accumulator)
    return widths


def _packed(opcode: Opcode, modifiers: tuple[str, ...], operands: tuple[Operand, ...], count: int) -> list[int]:
    return [1 if o.has("F32") else 2 for o in operands]


def _special(opcode: Opcode, modifiers: tuple[str, ...], operands: tuple[Operand, ...], count: int) -> list[int]:
    return [1 if "32" in modifiers else 2] * len(operands)


def _tensor_memory(opcode: Opcode, modifiers: tuple[str, ...], operands: tuple[Operand, ...], count: int) -> list[int]:
    width = next((int(m[1:]) for m in modifiers if re.fullmatch(r"x\d+", m)), 1)
    return [width if o.kind is Kind.REGISTER else 1 for o in operands]


def _tensor_copy(opcode: Opcode, modifiers: tuple[str, ...], operands: tuple[Operand, ...], count: int) -> list[int]:
    """The first address holds pointers and coordinates, the second a descriptor pair."""
    dimensions = next((int(m[0]) for m in modifiers if re.fullmatch(r"[1-5]D", m)), 1)
    first = dimensions + (2 if opcode.name == "UTMALDG" else 1)
    return [first if i == 0 else 2 for i in range(len(operands))]


def _tensor_core(opcode: Opcode, modifiers: tuple[str, ...], operands: tuple[Operand, ...], count: int) -> list[int]:
    return [2 if o.space == "gdesc" else 1 for o in operands]


def _mbarrier(opcode: Opcode, modifiers: tuple[str, ...], operands: tuple[Operand, ...], count: int) -> list[int]:
    width = 2 if "64" in modifiers else 1
    return [width if o.kind is Kind.REGISTER and not _is_predicate(o) else 1 for o in operands]


def _address_pair(opcode: Opcode, modifiers: tuple[str, ...], operands: tuple[Operand, ...], count: int) -> list[int]:
    return [1 if _is_predicate(o) else 2 for o in operands]


_WIDTHS = {
    Widths.SINGLE: _single,
    Widths.SIZED: _sized,
    Widths.DOUBLE: _double,
    Widths.MULTIPLY_ADD: _multiply_add,
    Widths.CONVERT: _convert,
    Widths.MEMORY: _memory,
    Widths.MATRIX_LOAD: _matrix_load,
    Widths.MMA: _mma,
    Widths.WARPGROUP_MMA: _warpgroup_mma,
    Widths.PACKED: _packed,
    Widths.SPECIAL_TO_REGISTER: _special,
    Widths.TENSOR_MEMORY: _tensor_memory,
    Widths.TENSOR_COPY: _tensor_copy,
    Widths.TENSOR_CORE: _tensor_core,
    Widths.MBARRIER: _mbarrier,
    Widths.RECIPROCAL: _single,
    Widths.ADDRESS_PAIR: _address_pair,
}
