"""Which memory accesses must keep their order."""

from cuasmrl.binary.sass import Instruction, Kind, Operand, Order, Space

_Base = tuple[tuple[tuple[int, int], ...], tuple[tuple[str, ...], ...]]
"""The registers of an address, each with the instruction that last wrote it, and how they are scaled."""


class AddressBook:
    """Follows one block and remembers, for each access, its address in terms of register values."""

    def __init__(self) -> None:
        self._writer: dict[int, int] = {}
        self._base: dict[int, list[tuple[_Base, int, int]]] = {}

    def enter(self, instruction: Instruction) -> None:
        if instruction.order is Order.MEMORY:
            self._base[instruction.index] = [
                self._extent(o, instruction) for o in instruction.operands if _is_address(o)
            ]
        for access in instruction.defs:
            self._writer[access.register] = instruction.index

    def must_keep_order(self, first: Instruction, second: Instruction) -> bool:
        """Same space, one writes, not provably disjoint.

        Disjoint addresses of one thread prove nothing between a write and a read of shared or global
        memory: lanes of a warp exchange data there without any barrier that shows in the code.
        """
        spaces = _shared_spaces(first, second)
        if not spaces:
            return False
        if first.is_dummy_load or second.is_dummy_load or is_strong(first) or is_strong(second):
            return True
        writes = _writes(first, spaces), _writes(second, spaces)
        if not any(writes):
            return False
        if all(writes) or spaces == {Space.LOCAL}:
            return not self._disjoint(first, second)
        return True

    def _disjoint(self, first: Instruction, second: Instruction) -> bool:
        for base, low, high in self._base[first.index]:
            for other, other_low, other_high in self._base[second.index]:
                if base != other or (low < other_high and other_low < high):
                    return False
        return True

    def _extent(self, operand: Operand, instruction: Instruction) -> tuple[_Base, int, int]:
        registers = [r for r in (operand.register, operand.uniform, operand.descriptor) if r is not None]
        values = tuple((r, self._writer.get(r, -1)) for register in registers for r in register.resources(2))
        scales = tuple(register.suffixes for register in registers)
        return (values, scales), operand.offset, operand.offset + _bytes(instruction)


_BYTES = {"U8": 1, "S8": 1, "U16": 2, "S16": 2, "64": 8, "128": 16, "256": 32}


def _bytes(instruction: Instruction) -> int:
    """Bytes one lane touches; a matrix store spreads a warp's rows, 16 bytes from each lane's address."""
    if instruction.opcode in ("STSM", "LDSM"):
        return 16
    return max((_BYTES.get(m, 0) for m in instruction.modifiers), default=0) or 4


def _is_address(operand: Operand) -> bool:
    return operand.kind is Kind.ADDRESS


def _spaces(instruction: Instruction) -> set[Space]:
    opcode = instruction.declaration
    found = {space for space in ((opcode.reads, opcode.writes) if opcode else ()) if space is not None}
    return {Space.GLOBAL, Space.SHARED, Space.LOCAL} if Space.GENERIC in found else found


def _shared_spaces(first: Instruction, second: Instruction) -> set[Space]:
    return _spaces(first) & _spaces(second)


def _writes(instruction: Instruction, spaces: set[Space]) -> bool:
    written = instruction.declaration.writes if instruction.declaration else None
    return written is Space.GENERIC or written in spaces


def is_strong(instruction: Instruction) -> bool:
    opcode = instruction.declaration
    atomic = opcode is not None and opcode.reads is not None and opcode.reads is opcode.writes
    return atomic or "STRONG" in instruction.modifiers or "MMIO" in instruction.modifiers
