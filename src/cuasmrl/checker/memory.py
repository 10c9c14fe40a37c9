"""The order of memory accesses, synchronisation and warp-wide operations inside a block."""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Hashable, Iterator
from itertools import pairwise
from typing import NamedTuple

from cuasmrl.binary.sass import Instruction, Kind, Operand, Order, Register, Space
from cuasmrl.checker.program import Arrangement, Program
from cuasmrl.checker.verdict import Fault, Rule

_BYTES = {"U8": 1, "S8": 1, "U16": 2, "S16": 2, "64": 8, "128": 16, "256": 32}
_PRIVATE = frozenset((Space.LOCAL,))


class _Group(NamedTuple):
    """Instructions that `MemoryOrder.conflict` treats alike, apart from their addresses."""

    order: Order
    is_dummy_load: bool
    is_shared_queue: bool
    is_warp_wide: bool
    is_strong: bool
    changes_tiles: bool
    """It might write what products of a warpgroup read."""
    reads: Space | None
    writes: Space | None
    counted: frozenset[int]


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

        self._groups: dict[int, _Group] = {}
        self._places: dict[int, tuple[Hashable, range]] = {}
        self._relations: dict[tuple[_Group, _Group], bool | None] = {}

    def faults(self, candidate: Arrangement) -> Iterator[Fault]:
        """Of the first block that has any."""
        for block in self.program.blocks:
            inside = [i for i in candidate.order[block.start : block.end] if self.ordered[i]]
            if all(first < second for first, second in pairwise(inside)):
                continue
            found = list(self._overtakings(inside))
            for rule, first, second in found:
                # What came later in the original is the consumer: it now stands in front.
                yield Fault(rule, second, "{p} must stay before {c}", first)
            if found:
                return

    def _overtakings(self, inside: list[int]) -> Iterator[tuple[Rule, int, int]]:
        """(rule, first, second) where `second` overtook `first` and must not."""
        seen: list[int] = []
        noted = _Noted(self)
        for i in inside:
            if noted.may_conflict(i):
                for later in seen[bisect_right(seen, i) :]:
                    rule = self.conflict(i, later)
                    if rule is not None:
                        yield rule, i, later
            noted.add(i)
            insort(seen, i)

    def group(self, i: int) -> "_Group":
        """What `conflict` goes by, apart from addresses."""
        if i not in self._groups:
            code = self.program.instructions[i]
            declaration = code.declaration
            self._groups[i] = _Group(
                code.order,
                code.is_dummy_load,
                _is_shared_queue(code),
                _is_warp_wide(code),
                is_strong(code),
                _changes_tiles(code),
                None if declaration is None else declaration.reads,
                None if declaration is None else declaration.writes,
                frozenset(self._counted[i]),
            )
        return self._groups[i]

    def place(self, i: int) -> tuple[Hashable, range]:
        """A base value, and the bytes that it touches behind it. Without an address, a base of its own."""
        if i not in self._places:
            code = self.program.instructions[i]
            address = _address(code)
            base: Hashable = i
            if address is not None:
                parts = (address.register, address.uniform, address.descriptor)
                registers = sorted(self._based_on(parts, i))
                versions = [bisect_left(self.program.definitions.get(r, []), i) for r in registers]
                base = (parts, tuple(registers), tuple(versions))
            offset = 0 if address is None else address.offset
            self._places[i] = base, range(offset, offset + _width(code))
        return self._places[i]

    def _based_on(self, parts: tuple[Register | None, ...], i: int) -> set[int]:
        """Registers of an address that an instruction reads."""
        named = {r for part in parts if part is not None for r in part.resources(2)}
        return named.intersection(self.program.uses[i])

    def conflict(self, first: int, second: int) -> Rule | None:
        """Why `second` may not overtake `first`."""
        a, b = self.program.instructions[first], self.program.instructions[second]
        return _conflict(self.group(first), self.group(second), lambda: self._disjoint(a, b))

    def relation(self, first: _Group, second: _Group) -> bool | None:
        """May members of the two change places? None where that depends on their addresses."""
        known = (first, second)
        if known not in self._relations:
            apart = _conflict(first, second, lambda: True) is None
            together = _conflict(first, second, lambda: False) is None
            self._relations[known] = together if apart == together else None
        return self._relations[known]

    def _disjoint(self, a: Instruction, b: Instruction) -> bool:
        """Same base value, and byte ranges that do not overlap."""
        x, y = _address(a), _address(b)
        if x is None or y is None:
            return False
        if (x.register, x.uniform, x.descriptor) != (y.register, y.uniform, y.descriptor):
            return False
        for r in self._based_on((x.register, x.uniform, x.descriptor), a.index):
            found = self.program.definitions.get(r, [])
            if bisect_left(found, a.index) < bisect_left(found, b.index):
                return False
        return x.offset + _width(a) <= y.offset or y.offset + _width(b) <= x.offset


class _Noted:
    """What of a block stands in front of some position: enough to see that nothing there was overtaken.

    By group the latest instruction, so that only those are looked at one by one which may be in conflict.
    """

    def __init__(self, order: MemoryOrder):
        self._order = order
        self._latest: dict[_Group, int] = {}
        self._bases: dict[_Group, tuple[tuple[int, Hashable], tuple[int, Hashable]]] = {}
        """By group: the latest instruction and its base, and the latest one of those with another base."""
        self._bytes: dict[tuple[_Group, Hashable, int], int] = {}
        """By group, base and offset: the latest instruction that touches this byte."""

    def add(self, i: int) -> None:
        group = self._order.group(i)
        self._latest[group] = max(self._latest.get(group, -1), i)
        if group.order is Order.MEMORY:
            base, touched = self._order.place(i)
            first, second = self._bases.get(group, ((-1, base), (-1, None)))
            if base == first[1]:
                first = max(first[0], i), base
            elif i > first[0]:
                first, second = (i, base), first
            elif i > second[0]:
                second = i, base
            self._bases[group] = first, second
            for byte in touched:
                key = (group, base, byte)
                self._bytes[key] = max(self._bytes.get(key, -1), i)

    def may_conflict(self, i: int) -> bool:
        """Might an instruction that stands in front of it have overtaken it without leave?"""
        group = self._order.group(i)
        for other, latest in self._latest.items():
            if latest > i:
                free = self._order.relation(group, other)
                if free is False or (free is None and self._may_overlap(i, other)):
                    return True
        return False

    def _may_overlap(self, i: int, other: _Group) -> bool:
        base, touched = self._order.place(i)
        if any(latest > i and known != base for latest, known in self._bases[other]):
            return True
        return any(self._bytes.get((other, base, byte), -1) > i for byte in touched)


def _conflict(a: _Group, b: _Group, disjoint: Callable[[], bool]) -> Rule | None:
    """Why members of these groups keep their order; `disjoint` tells whether they touch other bytes."""
    if Order.SYNC in (a.order, b.order) and {a.order, b.order} <= {Order.SYNC, Order.MEMORY}:
        return Rule.SYNC_ORDER
    if Order.PRODUCT in (a.order, b.order) and _meets_product(a) and _meets_product(b):
        return Rule.SYNC_ORDER
    if (a.is_dummy_load or b.is_dummy_load) and a.is_shared_queue and b.is_shared_queue:
        return Rule.PADDING
    if a.is_warp_wide and b.is_warp_wide:
        return Rule.WARP_ORDER
    if a.order is b.order is Order.MEMORY and _must_keep(a, b, disjoint):
        return Rule.MEMORY_ORDER
    # DEPBAR.LE SBk, n lets the last n that raised SBk run on: which these are must not change.
    return Rule.SYNC_ORDER if a.counted & b.counted else None


def _must_keep(a: _Group, b: _Group, disjoint: Callable[[], bool]) -> bool:
    if a.is_dummy_load or b.is_dummy_load:
        return False
    writes_a, writes_b, reads_a, reads_b = (_set(space) for space in (a.writes, b.writes, a.reads, b.reads))
    if a.is_strong or b.is_strong:
        return _meet(writes_a | reads_a, writes_b | reads_b)
    if Space.TENSOR in (a.writes, b.writes):
        # Its addresses count columns, and how many of them are touched depends on the shape.
        return Space.TENSOR in (a.reads, a.writes) and Space.TENSOR in (b.reads, b.writes)
    if _meet(writes_a, writes_b):
        return not disjoint()
    if _meet(writes_a, reads_b) or _meet(reads_a, writes_b):
        # Lanes of a warp may talk through shared or global memory; local memory is a thread's own.
        private = writes_a | writes_b | reads_a | reads_b <= _PRIVATE
        return not (private and disjoint())
    return False


def _meets_product(group: _Group) -> bool:
    """Products read shared memory while they are in flight, and nothing tells when but their order."""
    return group.order in (Order.PRODUCT, Order.SYNC) or group.changes_tiles


def _changes_tiles(i: Instruction) -> bool:
    shared = i.declaration is not None and i.declaration.writes in (Space.SHARED, Space.GENERIC)
    return i.order is Order.MEMORY and (shared or is_strong(i))


def _takes_part(i: Instruction) -> bool:
    return i.order is not Order.FREE or i.is_dummy_load or _is_warp_wide(i) or _is_shared_queue(i)


def _is_warp_wide(i: Instruction) -> bool:
    return i.declaration is not None and i.declaration.warp_wide


def _is_shared_queue(i: Instruction) -> bool:
    return i.declaration is not None and i.declaration.queue == "shared"


def may_overwrite_tensors(i: Instruction) -> bool:
    """Might it overwrite tensor memory that an earlier load still reads, or let others do so?"""
    if i.order is Order.FREE:
        return False
    stores = i.declaration is not None and i.declaration.writes is Space.TENSOR
    return stores or i.order is not Order.MEMORY


def is_strong(i: Instruction) -> bool:
    """Ordered beyond its own thread: atomics, reductions and .STRONG accesses."""
    declaration = i.declaration
    if declaration is None or declaration.order is not Order.MEMORY:
        return False
    atomic = declaration.reads is not None and declaration.writes is declaration.reads
    return atomic or "STRONG" in i.modifiers or "MMIO" in i.modifiers


def _set(space: Space | None) -> frozenset[Space]:
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
