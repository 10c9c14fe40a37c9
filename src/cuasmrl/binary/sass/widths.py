"""How many consecutive registers each operand of an instruction stands for.

nvdisasm prints only the first register of a group; its length follows from the mnemonic. There is one
function per member of `Widths`; each answers with a width for every operand, or raises `UnknownFormError`.
All rules agree with the life ranges that nvdisasm draws (tests/binary/sass/liveness_oracle.py).
"""

import re
from collections.abc import Callable

from cuasmrl.binary.sass.opcodes import Opcode, Widths
from cuasmrl.binary.sass.operands import Kind, Operand

Operands = tuple[Operand, ...]
Modifiers = tuple[str, ...]
Rule = Callable[[Opcode, Modifiers, Operands, int], list[int]]


class UnknownFormError(ValueError):
    """A form of a known opcode that no rule covers: as unknown as a new opcode."""


_SIZE = re.compile(r"(?:[SUF]|BF)?(\d+)(?:x(\d+))?")
# `16816` or, since sm_90, also `16x8x4`: rows, columns, depth.
_MMA_SHAPE = re.compile(r"(8|16)x?(8)x?(4|8|16|32|64|128|256)")
_LANE_SHAPES = {"16dp32bit_t0_t15": 1, "16dp32bit_t16_t31": 1, "16dp64bit": 1, "16dp128bit": 2,
                "16dp256bit": 4}  # fmt: skip
_WARPGROUP_SHAPE = re.compile(r"64x(\d+)x\d+")
_ELEMENT_BITS = {"F32": 32, "TF32": 32, "F16": 16, "BF16": 16, "S8": 8, "U8": 8, "S4": 4, "U4": 4}


def widths_of(opcode: Opcode, modifiers: Modifiers, operands: Operands, destinations: int) -> list[int]:
    """One width per operand; `destinations` of them, the leading ones, are written."""
    try:
        return _RULES[opcode.widths](opcode, modifiers, operands, destinations)
    except (KeyError, IndexError, ValueError) as error:
        raise UnknownFormError(
            f"{opcode.name}.{'.'.join(modifiers)} is a form without a width rule"
        ) from error


def _words(modifiers: Modifiers) -> int:
    """Registers that the largest type among the modifiers fills: .U16 one, .S64 and .F32x2 two, .128 four."""
    sizes = [int(m[1]) * int(m[2] or 1) for text in modifiers if (m := _SIZE.fullmatch(text))]
    return max(1, max(sizes, default=0) // 32)


def _registers(operands: Operands, width: int) -> list[int]:
    """`width` for general registers, 1 for predicates and everything else."""
    return [width if o.kind is Kind.REGISTER and not o.is_predicate else 1 for o in operands]


def _single(opcode: Opcode, modifiers: Modifiers, operands: Operands, destinations: int) -> list[int]:
    # SHF.R.U64 shifts 64 bits that stand in two operands; ARRIVES.64 speaks of the mbarrier in memory.
    if _words(modifiers) > 1 and opcode.name not in ("SHF", "USHF", "ARRIVES"):
        raise UnknownFormError(f"{opcode.name} is not known to work on 64 bits")
    return [1] * len(operands)


def _sized(opcode: Opcode, modifiers: Modifiers, operands: Operands, destinations: int) -> list[int]:
    width = _words(modifiers)
    if width > 2:
        raise UnknownFormError(f"{opcode.name} is not known to work on more than 64 bits")
    return _registers(operands, width)


def _double(opcode: Opcode, modifiers: Modifiers, operands: Operands, destinations: int) -> list[int]:
    return _registers(operands, 2)


def _sized_source(opcode: Opcode, modifiers: Modifiers, operands: Operands, destinations: int) -> list[int]:
    """MATCH.U64 compares pairs and answers with one mask."""
    sources = _sized(opcode, modifiers, operands[destinations:], 0)
    return [*_registers(operands[:destinations], 1), *sources]


def _multiply_add(opcode: Opcode, modifiers: Modifiers, operands: Operands, destinations: int) -> list[int]:
    """The addend is the third source: a pair for .WIDE and .HI; the result is a pair for .WIDE."""
    widths = [1] * len(operands)
    if "WIDE" in modifiers:
        widths[0] = 2
    if "WIDE" in modifiers or "HI" in modifiers:
        widths[destinations + 2] = 2
    return widths


def _convert(opcode: Opcode, modifiers: Modifiers, operands: Operands, destinations: int) -> list[int]:
    """`F2I.S64.F64`: the integer type belongs to one side, the float type to the other."""
    long = bool({"S64", "U64"} & set(modifiers))
    double = "F64" in modifiers
    if opcode.name in ("F2I", "UF2I"):
        result, source = long, double
    elif opcode.name in ("I2F", "UI2F"):
        result, source = double, long
    elif opcode.name == "F2F":
        types = [m for m in modifiers if m in ("F64", "F32", "F16", "BF16", "TF32")]
        result, source = types[0] == "F64", types[-1] == "F64"
    else:
        result, source = double, double
    return [2 if (result if i < destinations else source) else 1 for i in range(len(operands))]


_L2_HINTS = frozenset(("ENL2", "EFL2", "ELL2"))


def is_in_two_groups(modifiers: Modifiers) -> bool:
    """Eight registers are printed as two groups of four; accesses of 256 bits all carry such a hint."""
    return "256" in modifiers and not _L2_HINTS.isdisjoint(modifiers)


def _memory(opcode: Opcode, modifiers: Modifiers, operands: Operands, destinations: int) -> list[int]:
    width = _words(modifiers)
    if is_in_two_groups(modifiers):
        width = 4
    elif width not in (1, 2, 4):
        raise UnknownFormError(f"{opcode.name} is not known to move {32 * width} bits")
    widths = _registers(operands, width)
    if opcode.name in ("LDC", "LDCU", "ULDC"):
        return [w if i < destinations else 1 for i, w in enumerate(widths)]
    return widths


def _multimem(opcode: Opcode, modifiers: Modifiers, operands: Operands, destinations: int) -> list[int]:
    """A reduction over the copies of an address, of one number or of several packed ones."""
    packed = [m for modifier in modifiers if (m := re.fullmatch(r"(B?F\d+|[USB]\d+)(?:x(\d+))?", modifier))]
    if len(packed) != 1:
        raise UnknownFormError(f"{opcode.name} is not known to reduce .{'.'.join(modifiers)}")
    bits = int(re.sub(r"\D", "", packed[0][1])) * int(packed[0][2] or 1)
    return _registers(operands, max(1, bits // 32))


def _matrix_load(opcode: Opcode, modifiers: Modifiers, operands: Operands, destinations: int) -> list[int]:
    """As many registers as matrices; a 16x16 matrix fills two."""
    shapes = [m for m in modifiers if re.fullmatch(r"MT?\d+", m)]
    if len(shapes) > 1 or not set(shapes) <= {"M88", "MT88", "M816", "MT168", "MT1616"}:
        raise UnknownFormError(f"{opcode.name} is not known to move matrices of .{'.'.join(shapes)}")
    count = next((int(m) for m in reversed(modifiers) if m in ("2", "4")), 1)
    return _registers(operands, count * (2 if "MT1616" in shapes else 1))


def _matrix_move(opcode: Opcode, modifiers: Modifiers, operands: Operands, destinations: int) -> list[int]:
    return [2 if "U4TO8" in modifiers or "S4TO8" in modifiers else 1, 1]


def _mma(opcode: Opcode, modifiers: Modifiers, operands: Operands, destinations: int) -> list[int]:
    """Registers of a fragment = rows x columns x bits / (32 lanes x 32 bits)."""
    rows, columns, depth = _mma_shape(modifiers)
    a_bits, b_bits, accumulator_bits = _mma_bits(opcode, modifiers)
    sparse = "SP" in modifiers
    accumulator = rows * columns * accumulator_bits // 1024
    a = rows * depth * a_bits // 1024 // (2 if sparse else 1)
    b = depth * columns * b_bits // 1024
    # Behind the addend follow the sparsity pattern and scale factors; with both they share a pair.
    extra = 2 if sparse and "SF" in modifiers else 1
    return [accumulator, a, b, accumulator, extra, *[1] * len(operands)][: len(operands)]


def _mma_bits(opcode: Opcode, modifiers: Modifiers) -> tuple[int, int, int]:
    """Bits per element of A, B and the accumulator."""
    types = [m for m in modifiers if m in _ELEMENT_BITS]
    match opcode.name:
        case "DMMA":
            return 64, 64, 64
        case "BMMA":
            return 1, 1, 32
        case "IMMA":
            return _ELEMENT_BITS[types[0]], _ELEMENT_BITS[types[-1]], 32
        case "HMMA":
            inputs = 32 if "TF32" in types else 16
            return inputs, inputs, 16 if types[0] == "F16" else 32
        case "OMMA":
            return 4, 4, 32
        case _:
            # QMMA: every element takes a byte, narrower ones too.
            return 8, 8, 16 if "F16" in types else 32


def _mma_shape(modifiers: Modifiers) -> tuple[int, int, int]:
    for modifier in modifiers:
        if match := _MMA_SHAPE.fullmatch(modifier):
            return int(match[1]), int(match[2]), int(match[3])
    raise UnknownFormError(f"no matrix shape among .{'.'.join(modifiers)}")


def _warpgroup_mma(opcode: Opcode, modifiers: Modifiers, operands: Operands, destinations: int) -> list[int]:
    columns = next((int(m[1]) for text in modifiers if (m := _WARPGROUP_SHAPE.fullmatch(text))), None)
    if columns is None:
        raise UnknownFormError(f"no matrix shape among .{'.'.join(modifiers)}")
    accumulator = columns // 4 if "F16" in modifiers[:2] and "F32" not in modifiers else columns // 2
    # Operands: D, A unless the descriptor gives it, descriptor of four registers, C, sparsity pattern.
    descriptor = [operand.kind for operand in operands].index(Kind.ADDRESS)
    widths = [accumulator, *[4] * descriptor, accumulator, *[1] * len(operands)]
    return widths[: len(operands)]


def _packed(opcode: Opcode, modifiers: Modifiers, operands: Operands, destinations: int) -> list[int]:
    return [1 if o.has("F32") else 2 for o in operands]


def _special(opcode: Opcode, modifiers: Modifiers, operands: Operands, destinations: int) -> list[int]:
    return [1 if "32" in modifiers else 2] * len(operands)


def _tensor_memory(opcode: Opcode, modifiers: Modifiers, operands: Operands, destinations: int) -> list[int]:
    """.xN repeats a pattern of one register, or of more where the pattern is wider than 64 bits."""
    repeat = next((int(m[1:]) for m in modifiers if re.fullmatch(r"x\d+", m)), 1)
    pattern = max((_LANE_SHAPES[m] for m in modifiers if "dp" in m), default=1)
    widths = _registers(operands, repeat * pattern)
    # LDTM.STAT: in front of the data stands a register for their extremum.
    return [1, *widths[1:]] if "STAT" in modifiers else widths


def _tensor_copy(opcode: Opcode, modifiers: Modifiers, operands: Operands, destinations: int) -> list[int]:
    """The first address holds pointers and coordinates, the second that of the tensor map."""
    dimensions = next((int(m[0]) for m in modifiers if re.fullmatch(r"[1-5]D", m)), 0)
    pointers = {"UTMALDG": 2, "UTMASTG": 1, "UTMAREDG": 1, "UTMAPF": 0, "UTMACCTL": 2, "UTMACMDFLUSH": 0}
    if not {"GATHER4", "SCATTER4"}.isdisjoint(modifiers):
        # A column and four rows.
        dimensions = 5
    first = pointers[opcode.name] + dimensions
    return [first if i == 0 else 2 if o.kind is Kind.ADDRESS else 1 for i, o in enumerate(operands)]


def _bulk_copy(opcode: Opcode, modifiers: Modifiers, operands: Operands, destinations: int) -> list[int]:
    """`UBLKCP.S.G [to], [from], size`: a pair is a global address, or a shared one with its mbarrier."""
    source_shared = modifiers[1:2] == ("S",)
    widths = [2 if o.kind is Kind.ADDRESS else 1 for o in operands]
    if source_shared:
        widths[1] = 1
    return widths


def _tensor_core(opcode: Opcode, modifiers: Modifiers, operands: Operands, destinations: int) -> list[int]:
    """Behind the instruction descriptor follow scale factors (a pair) and the mask of disabled lanes."""
    spaces = [o.space for o in operands]
    behind = spaces.index("idesc") if "idesc" in spaces else len(operands)
    mask = 8 if "2CTA" in modifiers else 2 if "WS" in modifiers else 4
    widths = [2 if o.space == "gdesc" else 1 for o in operands]
    for i in range(behind + 1, len(operands)):
        widths[i] = 2 if spaces[i] == "tmem" else 1 if operands[i].is_predicate else mask
    return widths


def _mbarrier(opcode: Opcode, modifiers: Modifiers, operands: Operands, destinations: int) -> list[int]:
    """The barrier's 64-bit state is a pair; an arrival with .TRANS64 answers with it."""
    result = 2 if {"64", "TRANS64"} & set(modifiers) else 1
    source = 2 if "64" in modifiers else 1
    return [*_registers(operands[:destinations], result), *_registers(operands[destinations:], source)]


def _code_address(opcode: Opcode, modifiers: Modifiers, operands: Operands, destinations: int) -> list[int]:
    """A jump target is a pair; the lane mask of BRA.DIV and BRA.CONV is one register."""
    if opcode.name == "BRA" or "32" in modifiers:
        return [1] * len(operands)
    return _registers(operands, 2)


_RULES: dict[Widths, Rule] = {
    Widths.SINGLE: _single,
    Widths.SIZED: _sized,
    Widths.SIZED_SOURCE: _sized_source,
    Widths.DOUBLE: _double,
    Widths.MULTIPLY_ADD: _multiply_add,
    Widths.CONVERT: _convert,
    Widths.MEMORY: _memory,
    Widths.MULTIMEM: _multimem,
    Widths.MATRIX_LOAD: _matrix_load,
    Widths.MATRIX_MOVE: _matrix_move,
    Widths.MMA: _mma,
    Widths.WARPGROUP_MMA: _warpgroup_mma,
    Widths.PACKED: _packed,
    Widths.SPECIAL_TO_REGISTER: _special,
    Widths.TENSOR_MEMORY: _tensor_memory,
    Widths.TENSOR_COPY: _tensor_copy,
    Widths.BULK_COPY: _bulk_copy,
    Widths.TENSOR_CORE: _tensor_core,
    Widths.MBARRIER: _mbarrier,
    Widths.CODE_ADDRESS: _code_address,
}
