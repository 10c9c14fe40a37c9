"""The order of memory accesses, synchronisation and warp-wide operations inside a block."""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator

from cuasmrl.binary.sass import Instruction, Kind, Operand, Order, Space
from cuasmrl.checker.program import Arrangement, Program
from cuasmrl.checker.verdict import Fault, Rule

_BYTES = {"U8": 1, "S8": 1, "U16": 2, "S16": 2, "64": 8, "128": 16, "256": 32}
_PRIVATE = frozenset((Space.LOCAL,))


class MemoryOrder:
    """Answers whether two instructions of a block may change places, as far as memory is concerned."""

    def __init__(self, program: Program):
        self.program = program
        counted = {i.depbar[0] for i in program.instructions if i.depbar is not None and i.depbar[1]}
        self._counted = [
            counted & (set(i.control.sets) | ({i.depbar[0]} if i.depbar else set()))
            for i in program.instructions
        ]
        """Scoreboards on which a DEPBAR counts, and which this instruction raises or waits for."""
        self.ordered = [
            _takes_part(i) or bool(boards)
            for i, boards in zip(program.instructions, self._counted, strict=True)
        ]

    def faults(self, candidate: Arrangement) -> Iterator[Fault]:
        for block in self.program.blocks:
            seen: list[int] = []
            for i in candidate.order[block.start : block.end]:
                if not self.ordered[i]:
                    continue
                for later in seen[bisect_right(seen, i) :]:
                    rule = self.conflict(i, later)
                    if rule is not None:
                        # What came later in the original is the consumer: it now stands in front.
                        yield Fault(rule, later, "{p} must stay before {c}", i)
                insort(seen, i)

    def conflict(self, first: int, second: int) -> Rule | None:
        """Why `second` may not overtake `first`."""
        a, b = self.program.instructions[first], self.program.instructions[second]
        if Order.SYNC in (a.order, b.order) and {a.order, b.order} <= {Order.SYNC, Order.MEMORY}:
            return Rule.SYNC_ORDER
        if (a.is_dummy_load or b.is_dummy_load) and _is_shared_queue(a) and _is_shared_queue(b):
            return Rule.PADDING
        if _is_warp_wide(a) and _is_warp_wide(b):
            return Rule.WARP_ORDER
        if a.order is b.order is Order.MEMORY and self._must_keep(a, b):
            return Rule.MEMORY_ORDER
        # DEPBAR.LE SBk, n lets the last n that raised SBk run on: which these are must not change.
        return Rule.SYNC_ORDER if self._counted[first] & self._counted[second] else None

    def _must_keep(self, a: Instruction, b: Instruction) -> bool:
        if a.is_dummy_load or b.is_dummy_load:
            return False
        writes_a, writes_b = _spaces(a, True), _spaces(b, True)
        reads_a, reads_b = _spaces(a, False), _spaces(b, False)
        if is_strong(a) or is_strong(b):
            return _meet(writes_a | reads_a, writes_b | reads_b)
        if _meet(writes_a, writes_b):
            return not self._disjoint(a, b)
        if _meet(writes_a, reads_b) or _meet(reads_a, writes_b):
            # Lanes of a warp may talk through shared or global memory; local memory is a thread's own.
            private = writes_a | writes_b | reads_a | reads_b <= _PRIVATE
            return not (private and self._disjoint(a, b))
        return False

    def _disjoint(self, a: Instruction, b: Instruction) -> bool:
        """Same base value, and byte ranges that do not overlap."""
        x, y = _address(a), _address(b)
        if x is None or y is None:
            return False
        if (x.register, x.uniform, x.descriptor) != (y.register, y.uniform, y.descriptor):
            return False
        parts = [part for part in (x.register, x.uniform, x.descriptor) if part is not None]
        for r in {r for part in parts for r in part.resources(2)}.intersection(self.program.uses[a.index]):
            found = self.program.definitions.get(r, [])
            if bisect_left(found, a.index) < bisect_left(found, b.index):
                return False
        return x.offset + _width(a) <= y.offset or y.offset + _width(b) <= x.offset


def _takes_part(i: Instruction) -> bool:
    return i.order in (Order.MEMORY, Order.SYNC) or i.is_dummy_load or _is_warp_wide(i) or _is_shared_queue(i)


def _is_warp_wide(i: Instruction) -> bool:
    return i.declaration is not None and i.declaration.warp_wide


def _is_shared_queue(i: Instruction) -> bool:
    return i.declaration is not None and i.declaration.queue == "shared"


def is_strong(i: Instruction) -> bool:
    """Ordered beyond its own thread: atomics, reductions and .STRONG accesses."""
    declaration = i.declaration
    if declaration is None or declaration.order is not Order.MEMORY:
        return False
    atomic = declaration.reads is not None and declaration.writes is declaration.reads
    return atomic or "STRONG" in i.modifiers or "MMIO" in i.modifiers


def _spaces(i: Instruction, written: bool) -> frozenset[Space]:
    declaration = i.declaration
    assert declaration is not None
    space = declaration.writes if written else declaration.reads
    return frozenset() if space is None else frozenset((space,))


def _meet(first: frozenset[Space], second: frozenset[Space]) -> bool:
    if not first or not second:
        return False
    return bool(first & second) or Space.GENERIC in first | second


def _address(i: Instruction) -> Operand | None:
    """Where it writes (or, for a load, reads): LDGSTS names its shared destination first."""
    return next((o for o in i.operands if o.kind is Kind.ADDRESS), None)


def _width(i: Instruction) -> int:
    """Bytes from each lane's address; a matrix store puts a row of 16 there."""
    if i.opcode == "STSM":
        return 16
    return max((_BYTES[m] for m in i.modifiers if m in _BYTES), default=4)
