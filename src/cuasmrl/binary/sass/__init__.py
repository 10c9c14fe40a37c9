"""The instruction model: opcode, operands, control bits, definitions and uses."""

from cuasmrl.binary.sass.accesses import ACCUMULATOR, ADDRESS, DATA, DESCRIPTOR, GUARD, HIGH, LOW, Access
from cuasmrl.binary.sass.control import BARRIERS, MAX_STALL, Control, without_control
from cuasmrl.binary.sass.disassembler import Listing, disassemble, disassemble_kernel, find_nvdisasm
from cuasmrl.binary.sass.distances import ANY, LATE, Distances, Hazard, Row, distances, overwriting_role
from cuasmrl.binary.sass.instruction import Instruction
from cuasmrl.binary.sass.opcodes import OPCODES, Opcode, Order, Pipe, Space
from cuasmrl.binary.sass.operands import Kind, Operand, Register
from cuasmrl.binary.sass.registers import RESOURCES, File, file_of, name_of, resource

__all__ = [
    "ACCUMULATOR", "ADDRESS", "ANY", "BARRIERS", "DATA", "DESCRIPTOR", "GUARD", "HIGH", "LATE", "LOW",
    "MAX_STALL", "OPCODES", "RESOURCES", "Access", "Control", "Distances", "File", "Hazard",
    "Instruction", "Kind", "Listing", "Opcode", "Operand", "Order", "Pipe", "Register", "Row", "Space",
    "disassemble", "disassemble_kernel", "distances", "file_of", "find_nvdisasm", "name_of",
    "overwriting_role", "resource", "without_control",
]  # fmt: skip
