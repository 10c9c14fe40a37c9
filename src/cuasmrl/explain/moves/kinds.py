"""What instructions are for, in words: a shared-memory load, a tensor product, address arithmetic."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum

from cuasmrl.binary.sass import ADDRESS, Instruction, Listing, Pipe, Space
from cuasmrl.explain.moves.loops import loops_of
from cuasmrl.schedule import control_flow


class Kind(StrEnum):
    """Those first that weigh more when it is said what an instruction was moved past."""

    BARRIER = "barrier"
    COPY_WAIT = "wait for copies"
    PRODUCT = "tensor product"
    COPY = "asynchronous copy"
    COPY_GROUP = "end of a group of copies"
    SHARED_LOAD = "shared-memory load"
    SHARED_STORE = "shared-memory store"
    GLOBAL_LOAD = "global load"
    GLOBAL_STORE = "global store"
    LOCAL = "local-memory access"
    ATOMIC = "atomic"
    EXCHANGE = "exchange between lanes"
    CONSTANT = "read of a constant or special register"
    DOUBLE = "double-precision instruction"
    SPECIAL = "special function"
    FLOW = "pinned instruction"
    FLOAT = "floating-point instruction"
    ADDRESS = "address arithmetic"
    INTEGER = "integer arithmetic"

    @property
    def is_arithmetic(self) -> bool:
        return self in (Kind.FLOAT, Kind.ADDRESS, Kind.INTEGER)

    def counted(self, count: int) -> str:
        """`3 tensor products`, `a barrier`."""
        one = f"{self.split()[0]} instruction" if self in (Kind.ADDRESS, Kind.INTEGER) else str(self)
        if count == 1:
            return f"{'an' if one[0] in 'aeiou' else 'a'} {one}"
        return f"{count} {one}s" if one != self else f"{count} {self.plural}"

    @property
    def plural(self) -> str:
        return _PLURALS.get(self, f"{self}s")


_PLURALS = {
    Kind.COPY_WAIT: "waits for copies",
    Kind.COPY: "asynchronous copies",
    Kind.COPY_GROUP: "ends of groups of copies",
    Kind.LOCAL: "local-memory accesses",
    Kind.EXCHANGE: "exchanges between lanes",
    Kind.CONSTANT: "reads of constants or special registers",
    Kind.ADDRESS: "address arithmetic",
    Kind.INTEGER: "integer arithmetic",
}
_BY_OPCODE = {
    "BAR": Kind.BARRIER,
    "DEPBAR": Kind.COPY_WAIT,
    "LDGDEPBAR": Kind.COPY_GROUP,
    "LDGSTS": Kind.COPY,
    **dict.fromkeys(("SHFL", "MOVM", "MATCH", "VOTE", "VOTEU", "REDUX", "CREDUX"), Kind.EXCHANGE),
    **dict.fromkeys(("S2R", "S2UR", "LDC", "LDCU", "ULDC"), Kind.CONSTANT),
    **dict.fromkeys(("ATOM", "ATOMG", "ATOMS", "RED", "REDG"), Kind.ATOMIC),
}
_BY_PIPE = {
    Pipe.TENSOR: Kind.PRODUCT,
    Pipe.XU: Kind.SPECIAL,
    Pipe.FP64: Kind.DOUBLE,
    Pipe.HALF: Kind.FLOAT,
    Pipe.BRANCH: Kind.FLOW,
    Pipe.ASYNC: Kind.FLOW,
}
_LOADS = {Space.SHARED: Kind.SHARED_LOAD, Space.LOCAL: Kind.LOCAL, Space.TENSOR: Kind.FLOW}
_STORES = {Space.SHARED: Kind.SHARED_STORE, Space.LOCAL: Kind.LOCAL, Space.TENSOR: Kind.FLOW}


def kinds_of(listing: Listing) -> tuple[Kind, ...]:
    """By instruction of the original."""
    addressing = _addressing(listing)
    return tuple(Kind.ADDRESS if i.index in addressing else _kind(i) for i in listing.instructions)


def _kind(instruction: Instruction) -> Kind:
    declaration = instruction.declaration
    if declaration is None:
        return Kind.FLOW
    if instruction.opcode in _BY_OPCODE:
        return _BY_OPCODE[instruction.opcode]
    if declaration.writes is not None:
        return _STORES.get(declaration.writes, Kind.GLOBAL_STORE)
    if declaration.reads is not None:
        return _LOADS.get(declaration.reads, Kind.GLOBAL_LOAD)
    if declaration.pipe in _BY_PIPE:
        return _BY_PIPE[declaration.pipe]
    # Floating-point opcodes of the two arithmetic pipes begin with F, but for conversions to integers.
    return Kind.FLOAT if instruction.opcode.lstrip("U").startswith("F") else Kind.INTEGER


def _addressing(listing: Listing) -> frozenset[int]:
    """Integer instructions whose result becomes an address, or part of one."""
    code = listing.instructions
    ways = _Ways(listing)
    readers = {i.index: tuple(_readers(ways.on(i.index), i)) for i in code if _kind(i) is Kind.INTEGER}
    found = {i for i, users in readers.items() if any(role == ADDRESS for _, role in users)}
    grown = True
    while grown:
        more = {i for i, users in readers.items() if i not in found and any(u in found for u, _ in users)}
        found |= more
        grown = bool(more)
    return frozenset(found)


def _readers(way: Iterable[Instruction], instruction: Instruction) -> Iterator[tuple[int, str]]:
    """Who reads a result on the way on, and as what."""
    live = {access.register for access in instruction.defs}
    for other in way:
        for use in other.uses:
            if use.register in live:
                yield other.index, use.role
        if not other.is_conditional:
            live -= {access.register for access in other.defs}
        if not live:
            return


class _Ways:
    """Where control goes from an instruction: down the code, then once round the loop it is in."""

    def __init__(self, listing: Listing) -> None:
        self.code = listing.instructions
        self.blocks = control_flow(listing)
        self.loops = loops_of(self.blocks)

    def on(self, index: int) -> Sequence[Instruction]:
        """Branches forward count as not taken."""
        number = next(block.number for block in self.blocks if block.start <= index < block.end)
        inside = [loop for loop in self.loops if number in loop]
        if not inside:
            return self.code[index + 1 :]
        loop = min(inside, key=len)
        start, end = self.blocks[loop.start].start, self.blocks[loop[-1]].end
        return self.code[index + 1 : end] + self.code[start : index + 1] + self.code[end:]
