"""A schedule as the model sees it: one row of numbers per instruction, in the order of execution."""

from __future__ import annotations

import re
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from cuasmrl.binary.sass import File, Instruction, Listing, Opcode, Operand, Order, Pipe, Space
from cuasmrl.binary.sass import Kind as Form
from cuasmrl.binary.sass.control import NO_BARRIER
from cuasmrl.binary.sass.widths import widths_of
from cuasmrl.compiled import compiled
from cuasmrl.errors import CuasmrlError
from cuasmrl.gpu.emulator.events import is_eventful, is_plain_barrier
from cuasmrl.gpu.timing.beside import BESIDE, beside
from cuasmrl.gpu.timing.machine import Needs
from cuasmrl.gpu.timing.operands import grouped, packed, read, result_groups, sources, written
from cuasmrl.gpu.timing.parameters import Parameters
from cuasmrl.gpu.timing.records import (
    CONSTANT_LINES,
    SIXTEENTH,
    Cached,
    Core,
    Kind,
    Row,
    Unit,
    Way,
)
from cuasmrl.schedule import Block, Schedule, control_flow
from cuasmrl.schedule.schedule import Int32

Int: TypeAlias = npt.NDArray[np.int64]

_PIPE_UNITS = {Pipe.ALU: Unit.INT, Pipe.FMA: Unit.FMA, Pipe.HALF: Unit.HALF, Pipe.FP64: Unit.FP64,
               Pipe.XU: Unit.XU, Pipe.UNIFORM: Unit.UNIFORM, Pipe.BRANCH: Unit.BRANCH,
               Pipe.TENSOR: Unit.TENSOR}  # fmt: skip
_HOLDS = {Unit.FMA: "fma_hold", Unit.INT: "int_hold", Unit.HALF: "half_hold", Unit.FP64: "fp64_hold",
          Unit.XU: "xu_hold", Unit.UNIFORM: "uniform_hold", Unit.BRANCH: "branch_hold"}  # fmt: skip
# Only plain single-precision arithmetic may use the second FP32 pipe.
_LITE = frozenset(("FADD", "FMUL", "FFMA"))
_MMA_SHAPE = re.compile(r"\d{3,}")
_PRODUCT_SHAPE = re.compile(r"64x(\d+)x\d+")
_PRODUCT_ROWS, _PRODUCT_DEPTH = 64, 32
"""Rows of a product of a warpgroup, and bytes of its depth, whatever the type."""
_LEAST_FEED = 4
"""Cycles for the operands of the smallest product."""
_NEVER_AS_MANY = 0x36
"""So many or more a scoreboard never holds: compilers wait for that before they allocate tensor memory."""
_FAR_SCOPES = frozenset(("GPU", "SYS"))
Fields: TypeAlias = dict[Row, int]
INSTRUCTIONS_PER_LINE = 8


class Code:
    """The instructions of a kernel under the numbers of a chip, ready to be put into any order."""

    def __init__(self, listing: Listing, parameters: Parameters) -> None:
        code = listing.instructions
        blocks = control_flow(listing)
        slots = traced_slots(listing, blocks)
        products = (i for i in code if i.declaration is not None and i.declaration.pipe is Pipe.TENSOR)
        results = {d.register for i in products for d in i.defs}
        groups = {i.control.write_barrier for i in code if i.opcode == "LDGDEPBAR"}
        stores = _boards_of_stores(code)
        fields_of = [_fields(i, parameters) for i in code]
        written_by = [
            written(i) if f[Row.KIND] == Kind.TENSOR else [] for i, f in zip(code, fields_of, strict=True)
        ]
        group_of = result_groups(written_by)
        constants: dict[int, int] = {}
        self.rows = np.zeros((len(code), Row.WIDTH), np.int64)
        for index, i in enumerate(code):
            fields = fields_of[index] | {Row.ORIGINAL: index, Row.SLOT: slots.get(index, -1)}
            if i.depbar is not None and i.depbar[0] in stores:
                fields[Row.KIND] = Kind.STORES_WAIT
                fields[Row.CLOSES] = int(_must_arrive(code, index))
            elif fields[Row.KIND] == Kind.FLUSH:
                fields[Row.CLOSES] = int(i.control.read_barrier in stores)
            elif i.depbar is not None and i.depbar[0] not in groups and i.depbar[1] >= _NEVER_AS_MANY:
                fields[Row.KIND] = Kind.FIXED
            elif i.depbar is not None and i.depbar[0] not in groups:
                fields[Row.DEPBAR_BOARD] = _waited_for(i, i.depbar)
            fields[Row.GATE] = _gate(fields)
            if fields[Row.CONSTANT] >= 0:
                fields[Row.CONSTANT] = constants.setdefault(
                    fields[Row.CONSTANT] % CONSTANT_LINES, len(constants)
                )
            row = self.rows[index]
            row[list(fields)] = list(fields.values())
            for count, first, values in (
                (Row.SOURCE_COUNT, Row.SOURCES, [packed(*source) for source in sources(i)]),
                (Row.READ_COUNT, Row.READS, grouped(read(i, results), group_of)),
                (Row.WRITE_COUNT, Row.WRITES, grouped(written_by[index], group_of)),
            ):
                row[count] = len(values)
                row[first : first + len(values)] = values
        self.rows = self.rows.astype(_narrowest(self.rows))
        self.needs = Needs(
            lines=-(-len(code) // INSTRUCTIONS_PER_LINE),
            constants=len(constants),
            l1=bool(self.rows[:, Row.CACHED].any()),
            products=any(i.is_product for i in code),
        )
        self._ends = np.array([block.end - 1 for block in blocks], np.int64)

    def table(self, schedule: Schedule) -> Int:
        """One record per instruction in the order of the schedule."""
        table = np.empty_like(self.rows)
        # NumPy copies whole rows, which compiled loops over columns do not. Indices are within bounds.
        np.take(self.rows, schedule.indices, axis=0, out=table, mode="clip")
        _set_controls(table, self._ends, schedule.indices, schedule.bits)
        return table.reshape(-1)


@compiled
def _set_controls(table: Int, ends: Int, indices: Int32, bits: Int32) -> None:
    """What the schedule decides: control bits, and the places of instructions."""
    for p in range(len(indices)):
        row, control = table[p], bits[indices[p]]
        write, read = control >> 5 & 7, control >> 8 & 7
        row[Row.STALL] = control & 15
        row[Row.YIELDS] = 1 - (control >> 4 & 1)
        row[Row.WRITE_BOARD] = -1 if write == NO_BARRIER else write
        row[Row.READ_BOARD] = -1 if read == NO_BARRIER else read
        row[Row.WAIT] = control >> 11 & 63 | row[Row.ALSO]
        row[Row.REUSE] = control >> 17
        row[Row.LINE] = p // INSTRUCTIONS_PER_LINE
        row[Row.FIRST] = p % INSTRUCTIONS_PER_LINE == 0
    for end in ends:
        table[end, Row.LAST] = 1


def _narrowest(rows: Int) -> type[np.integer[Any]]:
    """Rows of 16 bits stay in the processor's cache; a kernel of very many instructions needs wider ones."""
    limits = np.iinfo(np.int16)
    return np.int16 if limits.min <= rows.min() and rows.max() <= limits.max else np.int64


def _boards_of_stores(code: tuple[Instruction, ...]) -> set[int]:
    """Scoreboards that count groups of bulk stores: something waits for such a group by them."""
    raised = {i.control.read_barrier for i in code if i.opcode == "UTMACMDFLUSH"}
    return {i.depbar[0] for i in code if i.depbar is not None and i.depbar[0] in raised}


def _must_arrive(code: tuple[Instruction, ...], index: int) -> bool:
    """Does a wait for stores make sure that others see them? Then compilers empty L1 behind it."""
    return any(i.opcode == "CCTL" and "IVALL" in i.modifiers for i in code[index + 1 : index + 3])


def _waited_for(i: Instruction, depbar: tuple[int, int, tuple[int, ...]]) -> int:
    board, count, _ = depbar
    if count:
        raise CuasmrlError(
            f"{i} counts on a scoreboard that no group of copies raises, which the model does not have."
        )
    return board


def is_traced(instruction: Instruction) -> bool:
    """Does the trace hold accesses or events of it?"""
    declaration = instruction.declaration
    accesses = declaration is not None and not {declaration.reads, declaration.writes} <= {None, Space.TENSOR}
    return accesses or is_eventful(instruction)


def traced_slots(listing: Listing, blocks: tuple[Block, ...]) -> dict[int, int]:
    """Traced instructions by their number among those of their block, in the order of the listing."""
    slots: dict[int, int] = {}
    for block in blocks:
        traced = [i for i in range(block.start, block.end) if is_traced(listing.instructions[i])]
        slots |= {index: number for number, index in enumerate(traced)}
    return slots


def _fields(i: Instruction, parameters: Parameters) -> Fields:
    """What the opcode decides."""
    declaration = i.declaration
    if declaration is None:
        raise CuasmrlError(f"{i} has no timing data: its opcode is not known.")
    fields: Fields = {Row.KIND: Kind.FIXED, Row.UNIT: Unit.NONE, Row.HOLD: 1, Row.WAY: Way.OTHER,
                      Row.LEAST_PASSES: 1, Row.WORDS: 1, Row.CONSTANT: -1}  # fmt: skip
    if i.opcode == "NOP" or i.is_filler:
        return fields
    unit = _PIPE_UNITS.get(declaration.pipe, Unit.NONE)
    if unit in _HOLDS:
        fields |= {Row.UNIT: unit, Row.HOLD: parameters.cycles(_HOLDS[unit])}
        fields[Row.OF_SM] = int(unit is Unit.FP64 and parameters["fp64_units"] == 1)
        fields[Row.LITE] = int(unit is Unit.FMA and i.opcode in _LITE and parameters["fma_units"] > 1)
    fields |= _kind(i, declaration, parameters)
    if fields[Row.KIND] == Kind.FIXED:
        fields[Row.CONSTANT] = _constant_line(i, parameters)
    return fields


def _gate(fields: Fields) -> int:
    """Where the sub-core says whether it has room for an instruction, if one number says it."""
    if fields[Row.KIND] == Kind.TENSOR or fields.get(Row.LITE) or fields[Row.CONSTANT] >= 0:
        return -1
    if fields[Row.KIND] == Kind.QUEUED or fields[Row.KIND] >= Kind.ARRIVE:
        return Core.QUEUE_FREE
    unit = fields[Row.UNIT]
    return Core.OPEN if unit == Unit.NONE else Core.UNIT_FREE + unit


def _kind(i: Instruction, declaration: Opcode, parameters: Parameters) -> Fields:
    match i.opcode:
        case "EXIT":
            return {Row.KIND: Kind.EXIT}
        case "BAR":
            kind = Kind.BARRIER if is_plain_barrier(i) else Kind.MEET
            return {Row.KIND: kind, Row.UNIT: Unit.NONE, Row.HOLD: parameters.cycles("bar_hold")}
        case "DEPBAR":
            _, count, _ = i.depbar or (0, 0, ())
            also = sum(1 << board for board in _named_boards(i))
            wait = {Row.KIND: Kind.DEPBAR, Row.UNIT: Unit.NONE, Row.DEPBAR_BOARD: -1}
            return wait | {Row.DEPBAR_COUNT: count, Row.ALSO: also}
        case "LDGDEPBAR":
            return {Row.KIND: Kind.GROUP, Row.UNIT: Unit.NONE}
    if declaration.jumps:
        return {Row.KIND: Kind.BRANCH}
    if declaration.pipe is Pipe.TENSOR:
        return _tensor(i, parameters)
    if declaration.pipe is Pipe.MEMORY:
        return _queued(i, parameters)
    if i.order is Order.PRODUCT:
        return _product(i, parameters)
    if i.opcode in BESIDE:
        return beside(i, parameters)
    if declaration.pipe is Pipe.ASYNC:
        raise CuasmrlError(f"{i} runs on an engine beside the warp, which the model does not have.")
    if i.is_variable:
        latency = {Pipe.XU: "xu_latency", Pipe.FP64: "fp64_latency"}.get(declaration.pipe, "vote_latency")
        if i.opcode == "DADD":
            latency = "fp64_add_latency"
        cycles = parameters.cycles(latency)
        return {Row.KIND: Kind.UNIT, Row.RAW: cycles, Row.WAR: min(cycles, 8)}
    return {}


def _named_boards(i: Instruction) -> list[int]:
    """Those in braces: `DEPBAR {5,4,3}`."""
    sets = [operand.text for operand in i.operands if operand.kind is Form.BARRIER_SET]
    return [int(digit) for text in sets for digit in text if digit.isdigit()]


def _product(i: Instruction, parameters: Parameters) -> Fields:
    """Of a warpgroup: time of the engine goes by columns, turns of the port by bytes in shared memory."""
    if i.groups_left is not None:
        return {Row.KIND: Kind.PRODUCT_WAIT, Row.DEPBAR_COUNT: i.groups_left}
    if not i.is_product:
        return {}
    columns = next(int(m[1]) for text in i.modifiers if (m := _PRODUCT_SHAPE.fullmatch(text)))
    cycles, size = columns / parameters["product_columns"], _PRODUCT_DEPTH * columns
    if i.operands[i.destinations].kind is Form.REGISTER:
        cycles = max(cycles, parameters["product_least"])
    else:
        size += _PRODUCT_DEPTH * _PRODUCT_ROWS
    return {
        Row.KIND: Kind.PRODUCT,
        Row.RAW: parameters.cycles("product_latency"),
        Row.INTERVAL: round(SIXTEENTH * cycles),
        Row.TURNS: -(-size // parameters.cycles("shared_bytes")),
        Row.CLOSES: int(i.closes_group),
    }


def _tensor(i: Instruction, parameters: Parameters) -> Fields:
    """Results come after whole cycles; the fractions of published latencies are the loop around them.

    Products of one warp may also wait for each other's operands: A comes in at half a register a cycle.
    """
    key = _tensor_key(i, parameters)
    assert i.declaration is not None
    registers = widths_of(i.declaration, i.modifiers, i.operands, i.destinations)[1]
    feed = max(_LEAST_FEED, parameters["tensor_feed"] * registers) + parameters["tensor_same_warp"]
    return {
        Row.KIND: Kind.TENSOR,
        Row.UNIT: Unit.TENSOR,
        Row.RAW: SIXTEENTH * parameters.cycles(f"latency {key}"),
        Row.INTERVAL: round(SIXTEENTH * parameters[f"interval {key}"]),
        Row.SAME_WARP: round(feed),
        Row.AHEAD: parameters.cycles("tensor_ahead"),
    }


def _tensor_key(i: Instruction, parameters: Parameters) -> str:
    """What the chip's file calls a product: a sparse one has lines of its own where it has been measured.

    Elsewhere it takes the time of a dense one of half its depth, as on GA102.
    """
    shape = next((m for m in i.modifiers if _MMA_SHAPE.fullmatch(m)), "")
    if "SP" in i.modifiers:
        sparse = _dense_key(i, shape).replace(i.opcode, f"{i.opcode}.SP", 1)
        if f"interval {sparse}" in parameters:
            return sparse
        if shape.startswith("168"):
            shape = f"168{int(shape[3:]) // 2}"
    return _dense_key(i, shape)


def _dense_key(i: Instruction, shape: str) -> str:
    """Opcode and shape, and for floats the accumulator; TF32 inputs are slower, bfloat16 ones are not."""
    if i.opcode == "IMMA":
        return f"IMMA.{shape}{'.S4' if shape == '16832' and {'S4', 'U4'} & set(i.modifiers) else ''}"
    if i.opcode == "BMMA":
        return f"BMMA.{shape}"
    if i.opcode == "DMMA":
        return "DMMA.884"
    accumulator = "F16" if "F16" in [m for m in i.modifiers if m != "SP"][:2] else "F32"
    return f"{i.opcode}.{shape}.{accumulator}{'.TF32' if 'TF32' in i.modifiers else ''}"


def _queued(i: Instruction, parameters: Parameters) -> Fields:
    """Instructions of the memory pipe, with the latencies of their kind and width."""
    size = _bits(i)
    address = next((o for o in i.operands if o.kind is Form.ADDRESS), None)
    form = "uniform" if address is None or _is_uniform(address) else "regular"
    row: Fields = {Row.KIND: Kind.QUEUED, Row.UNIT: Unit.NONE, Row.WORDS: size // 32}
    way, load = Way.SHARED, True
    match i.opcode:
        case "LDS" | "LDG" | "LD" | "LDL" | "LDGSTS" | "STS" | "STG" | "ST" | "STL" as opcode:
            name = {"LD": "LDG", "LDL": "LDG", "ST": "STG", "STL": "STG"}.get(opcode, opcode)
            load = name.startswith("LD")
            way = {"LDS": Way.SHARED, "STS": Way.SHARED, "LDGSTS": Way.COPY}.get(name, Way.GLOBAL)
            row |= _through_l1(i, opcode, parameters)
            raw, war = f"raw {name}.{size} {form}", f"war {name}.{size} {form}"
            row[Row.LEAST_PASSES] = max(1, size // 32)
        case "LDSM" | "STSM" | "MOVM":
            load = i.opcode != "STSM"
            raw, war = "raw LDSM", "war LDS.32 regular"
            row[Row.WORDS] = next((int(m) for m in reversed(i.modifiers) if m in ("2", "4")), 1)
        case "ATOMS":
            raw, war = "raw atomic shared", "war atomic"
        case "ATOMG" | "ATOM" | "RED" | "REDG":
            way, raw, war = Way.GLOBAL, "raw LDG.32 regular", "war atomic"
        case "LDC" | "LDCU":
            kind = "regular" if _has_index(i) else "immediate"
            way, load, raw, war = Way.CONSTANT, False, f"raw LDC {kind}", f"war LDC {kind}"
        case "SHFL":
            raw, war = "shuffle_latency", "war LDS.32 regular"
            row[Row.LEAST_PASSES] = parameters.cycles("shuffle_turns")
        case _:
            way, load, raw, war = Way.OTHER, False, "special_latency", "war LDS.32 regular"
    result = parameters.cycles(raw) if load or not i.opcode.startswith("ST") else 0
    return row | {Row.WAY: way, Row.RAW: result, Row.WAR: parameters.cycles(war), Row.IS_LOAD: int(load)}


def _through_l1(i: Instruction, opcode: str, parameters: Parameters) -> Fields:
    """How an access uses L1, and does it take turns of the data port there?

    A load that the device or the system has to see is sent on (`ld.cg`, `ld.volatile`); one that the SM has
    to see is not (`ld.ca`), and neither is a copy without `BYPASS`.
    """
    match opcode:
        case "LDG" | "LD":
            is_strong = "STRONG" in i.modifiers and bool(_FAR_SCOPES & set(i.modifiers))
            return {Row.CACHED: Cached.NO if is_strong else Cached.LOADS, Row.BANKS: 1}
        case "LDGSTS":
            return {Row.CACHED: Cached.NO if "BYPASS" in i.modifiers else Cached.LOADS}
        case "STG" | "ST":
            return {Row.BANKS: parameters.cycles("store_turns")}
        case "LDL":
            return {Row.CACHED: Cached.KEEPS, Row.BANKS: 1}
        case "STL":
            return {Row.CACHED: Cached.KEEPS, Row.BANKS: parameters.cycles("store_turns")}
    return {}


def _has_index(i: Instruction) -> bool:
    """Does it read a table of constants?"""
    return any(
        o.kind is Form.CONSTANT and o.register is not None and o.register.index is not None
        for o in i.operands
    )


def _bits(i: Instruction) -> int:
    for name, bits in (("128", 128), ("64", 64)):
        if name in i.modifiers:
            return bits
    return 32


def _is_uniform(address: Operand) -> bool:
    return address.register is None or address.register.index is None or address.register.file is File.UR


def _constant_line(i: Instruction, parameters: Parameters) -> int:
    for operand in i.operands:
        if operand.kind is Form.CONSTANT and operand.bank is not None and operand.register is None:
            return (operand.bank << 16 | operand.offset) // parameters.cycles("constant_line")
    return -1
