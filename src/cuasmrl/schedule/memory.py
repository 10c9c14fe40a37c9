"""Which memory accesses must keep their order."""

from __future__ import annotations

from collections import defaultdict
from enum import Enum
from functools import cache
from typing import NamedTuple, TypeAlias

from cuasmrl.binary.sass import Instruction, Kind, Operand, Order, Space

_Base: TypeAlias = tuple[tuple[tuple[int, int], ...], tuple[tuple[str, ...], ...]]
"""The registers of an address, each with the instruction that last wrote it, and how they are scaled."""
_Extent: TypeAlias = tuple[_Base, int, int]


class _Sort(NamedTuple):
    """Accesses that are alike but for their addresses."""

    spaces: frozenset[Space]
    written: Space | None
    is_strict: bool
    """Strong, or padding: it keeps its order with everything in its spaces."""
    is_awaited: bool
    """Strong, with a result: whoever waits for it wants memory in order, so it overtakes no access at all."""

    def writes(self, spaces: frozenset[Space]) -> bool:
        return self.written is Space.GENERIC or self.written in spaces


class _Ordered(Enum):
    NEVER = 0
    UNLESS_DISJOINT = 1
    ALWAYS = 2


@cache
def _ordered(first: _Sort, second: _Sort) -> _Ordered:
    """Same space, one writes, not provably disjoint.

    Disjoint addresses of one thread prove nothing between a write and a read of shared or global
    memory: lanes of a warp exchange data there without any barrier that shows in the code.
    """
    spaces = first.spaces & second.spaces
    if second.is_awaited:
        return _Ordered.ALWAYS
    if not spaces:
        return _Ordered.NEVER
    if first.is_strict or second.is_strict:
        return _Ordered.ALWAYS
    writes = first.writes(spaces), second.writes(spaces)
    if not any(writes):
        return _Ordered.NEVER
    if Space.TENSOR in spaces:
        # Offsets count columns, and how many are touched depends on the shape.
        return _Ordered.ALWAYS
    if all(writes) or spaces == {Space.LOCAL}:
        return _Ordered.UNLESS_DISJOINT
    return _Ordered.ALWAYS


class MemoryOrder:
    """Follows one block: which accesses before it an access has to stay behind, as bits of an integer.

    Numbers of instructions are those that the caller gives, in the order of the block.
    """

    def __init__(self) -> None:
        self._writer: dict[int, int] = {}
        self._met: dict[_Sort, _Met] = {}

    def forget(self) -> None:
        """No access crosses this place."""
        self._met = {}

    @property
    def met(self) -> int:
        """All accesses since the last such place."""
        found = 0
        for met in self._met.values():
            found |= met.all
        return found

    def enter(self, instruction: Instruction, number: int) -> int:
        """Those that it has to stay behind, if it is an access; then it counts as met."""
        found = 0
        if instruction.order is Order.MEMORY:
            sort = _sort(instruction)
            extents = [self._extent(o, instruction) for o in instruction.operands if _is_address(o)]
            for other, met in self._met.items():
                match _ordered(other, sort):
                    case _Ordered.ALWAYS:
                        found |= met.all
                    case _Ordered.UNLESS_DISJOINT:
                        found |= met.not_disjoint(extents)
            self._met.setdefault(sort, _Met()).add(extents, 1 << number)
        for access in instruction.defs:
            self._writer[access.register] = instruction.index
        return found

    def _extent(self, operand: Operand, instruction: Instruction) -> _Extent:
        registers = [r for r in (operand.register, operand.uniform, operand.descriptor) if r is not None]
        values = tuple((r, self._writer.get(r, -1)) for register in registers for r in register.resources(2))
        scales = tuple(register.suffixes for register in registers)
        return (values, scales), operand.offset, operand.offset + _bytes(instruction)


_BUCKET = 32
"""Bytes; as many as one lane touches at most."""


class _Met:
    """Accesses of one sort, found again by their addresses."""

    def __init__(self) -> None:
        self.all = 0
        self._mixed = 0
        """Those with addresses of several bases, which are disjoint with nothing that has an address."""
        self._based = 0
        """Those with one base."""
        self._on: dict[_Base, int] = defaultdict(int)
        self._at: dict[tuple[_Base, int], dict[tuple[int, int], int]] = defaultdict(dict)
        """Base and bucket → extents that touch it, and the accesses that have them."""

    def add(self, extents: list[_Extent], bit: int) -> None:
        self.all |= bit
        if len({base for base, _, _ in extents}) > 1:
            self._mixed |= bit
            return
        for base, low, high in extents:
            self._based |= bit
            self._on[base] |= bit
            for bucket in _buckets(low, high):
                alike = self._at[base, bucket]
                alike[low, high] = alike.get((low, high), 0) | bit

    def not_disjoint(self, extents: list[_Extent]) -> int:
        """Disjoint are extents of the same base that do not overlap, and accesses without an address."""
        bases = {base for base, _, _ in extents}
        if not bases:
            return 0
        if len(bases) > 1:
            return self._mixed | self._based
        found = self._mixed | (self._based & ~self._on.get(extents[0][0], 0))
        for base, low, high in extents:
            for bucket in _buckets(low, high):
                for (other_low, other_high), accesses in self._at.get((base, bucket), {}).items():
                    if low < other_high and other_low < high:
                        found |= accesses
        return found


def _buckets(low: int, high: int) -> range:
    return range(low // _BUCKET, (high - 1) // _BUCKET + 1)


_BYTES = {"U8": 1, "S8": 1, "U16": 2, "S16": 2, "64": 8, "128": 16, "256": 32}


def _bytes(instruction: Instruction) -> int:
    """Bytes one lane touches; a matrix store spreads a warp's rows, 16 bytes from each lane's address."""
    if instruction.opcode in ("STSM", "LDSM"):
        return 16
    return max((_BYTES.get(m, 0) for m in instruction.modifiers), default=0) or 4


def _is_address(operand: Operand) -> bool:
    return operand.kind is Kind.ADDRESS


def _sort(instruction: Instruction) -> _Sort:
    opcode = instruction.declaration
    found = {space for space in ((opcode.reads, opcode.writes) if opcode else ()) if space is not None}
    spaces = {Space.GLOBAL, Space.SHARED, Space.LOCAL} if Space.GENERIC in found else found
    strong = is_strong(instruction)
    strict = instruction.is_dummy_load or strong
    awaited = strong and bool(instruction.defs)
    return _Sort(frozenset(spaces), opcode.writes if opcode else None, strict, awaited)


def changes_tiles(instruction: Instruction) -> bool:
    """Might it write what products of a warpgroup read from shared memory, or order such writes?"""
    opcode = instruction.declaration
    writes = opcode is not None and opcode.writes in (Space.SHARED, Space.GENERIC)
    return writes or is_strong(instruction)


def stays_behind_settling(instruction: Instruction) -> bool:
    """Might it overwrite what a load from tensor memory in front of it reads, or let others do so?"""
    opcode = instruction.declaration
    if instruction.order in (Order.FREE, Order.MEMORY):
        return opcode is not None and opcode.writes is Space.TENSOR
    return True


def settles(instruction: Instruction) -> bool:
    return instruction.declaration is not None and instruction.declaration.settles


def is_strong(instruction: Instruction) -> bool:
    opcode = instruction.declaration
    atomic = opcode is not None and opcode.reads is not None and opcode.reads is opcode.writes
    return atomic or "STRONG" in instruction.modifiers or "MMIO" in instruction.modifiers
