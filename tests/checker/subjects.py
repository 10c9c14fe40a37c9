"""A real kernel to plant faults in, with just enough analysis to know that a fault is one.

Nothing here uses the checker: what is dangerous is decided from definitions, uses and the distance table.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

from cuasmrl.binary.cubin import Cubin
from cuasmrl.binary.sass import (
    DATA,
    Control,
    Distances,
    File,
    Hazard,
    Instruction,
    Kind,
    Listing,
    Order,
    Pipe,
    Space,
    file_of,
    without_control,
)

_WINDOW = 40
"""Cycles; what is further apart is not looked at."""


class Uniform(Distances):
    """A table by hand: the same distance for every pair, and nothing else to keep."""

    def __init__(self, arch: int, cycles: int):
        super().__init__(arch, ())
        self.cycles = cycles

    def required(
        self,
        hazard: Hazard,
        producer: Instruction,
        consumer: Instruction,
        register: int,
        producer_role: str = DATA,
        consumer_role: str = DATA,
    ) -> int | None:
        return self.cycles

    def spacing(self, first: Instruction, pipe: Pipe | None = None) -> int | None:
        return 1

    def minimum_stall(self, instruction: Instruction) -> int | None:
        return 1

    def release(self, setter: Instruction) -> int | None:
        return 2


class Pair(NamedTuple):
    """Two instructions of a block that touch one register."""

    hazard: Hazard
    producer: int
    consumer: int
    register: int
    producer_role: str
    consumer_role: str


class Timed(NamedTuple):
    """A dependence inside a block that time keeps, and the cycles that nothing may go below."""

    pair: Pair
    """In one of its roles."""
    needed: int
    known: int | None
    """What the table says; None where it is silent."""
    was: int
    """Cycles in the original."""


class Origin(NamedTuple):
    """What the compiler made of a kernel that has been rescheduled since."""

    subject: "Subject"
    indices: tuple[int, ...]
    """By instruction of the new order: its index in the compiler's."""


@dataclass(frozen=True)
class Subject:
    """Faults are planted in the schedule that `cubin` has; what is asked for is what the compiler left."""

    cubin: Cubin
    listing: Listing
    table: Distances
    origin: Origin | None = None

    @property
    def code(self) -> tuple[Instruction, ...]:
        return self.listing.instructions

    @cached_property
    def block(self) -> list[int]:
        """Number of the block of each instruction, from labels and jumps."""
        heads = {0} | {offset // 16 for offset, _ in self.listing.kernel.entry_points}
        heads |= {t // 16 for targets in self.listing.kernel.branch_targets().values() for t in targets}
        for i in self.code:
            if i.target is not None:
                heads |= {i.target // 16} | (set() if i.opcode == "BSSY" else {i.index + 1})
            if i.declaration is None or i.declaration.jumps:
                heads.add(i.index + 1)
        numbers, number = [], -1
        for i in self.code:
            number += i.index in heads
            numbers.append(number)
        return numbers

    @cached_property
    def region(self) -> list[int]:
        """As `block`, but pinned instructions stand alone and part what is around them."""
        unknown = {self.block[i.index] for i in self.code if i.declaration is None}
        alone = [
            i.order is Order.PINNED or self.block[i.index] in unknown or self.is_padded(i.index)
            for i in self.code
        ]
        numbers = [0]
        for i in range(1, len(self.code)):
            cut = alone[i] or alone[i - 1] or self.block[i] != self.block[i - 1]
            numbers.append(numbers[-1] + cut)
        return numbers

    @cached_property
    def cycle(self) -> list[int]:
        """Cycle of issue of each instruction, from the head of its block."""
        cycles: list[int] = []
        for i in self.code:
            first = not i.index or self.block[i.index] != self.block[i.index - 1]
            cycles.append(0 if first else cycles[-1] + self.code[i.index - 1].control.stall)
        return cycles

    @cached_property
    def leads_outside(self) -> bool:
        """Does it call code that is not in it? A call through a register may."""
        return any(i.opcode == "CALL" and i.target is None for i in self.code)

    # ---- in the compiler's order ----

    def compiled(self, i: int) -> Control:
        """The control bits that the compiler gave it."""
        if self.origin is None:
            return self.code[i].control
        return self.origin.subject.code[self.origin.indices[i]].control

    def was(self, p: int, c: int) -> int:
        """Cycles that the compiler left between two instructions of a block."""
        if self.origin is None:
            return self.cycle[c] - self.cycle[p]
        return self.origin.subject.was(self.origin.indices[p], self.origin.indices[c])

    def was_across(self, p: int, last: int, c: int) -> int:
        """The same from an instruction of a block that ends with `last` to one of a block that follows."""
        first, indices = (self, range(len(self.code))) if self.origin is None else self.origin
        end = first.cycle[last] + first.code[last].control.stall
        return end - first.cycle[indices[p]] + first.cycle[indices[c]]

    def was_behind(self, first: int, second: int) -> bool:
        """Did the compiler, too, put the second behind the first?"""
        return self.origin is None or self.origin.indices[first] < self.origin.indices[second]

    # ---- as it stands ----

    def waits_of(self, i: int) -> tuple[int, ...]:
        """Scoreboards that it waits for, by its control bits or as a DEPBAR."""
        first, _, others = self.code[i].depbar or (None, 0, ())
        return (*self.code[i].control.waits, *(() if first is None else (first, *others)))

    def is_movable(self, i: int) -> bool:
        """Neither pinned, nor padding, nor beside padding."""
        if self.is_padded(i) or self.code[i].order is Order.PINNED or self.code[i].is_dummy_load:
            return False
        return not (i and self.code[i - 1].is_dummy_load)

    def is_padded(self, i: int) -> bool:
        """Does a NOP behind it belong to it?"""
        return self.code[i].opcode == "UTCBAR" and self.code[i + 1].opcode == "NOP"

    @cached_property
    def twins(self) -> list[bool]:
        """Does the same word stand in its region again? Then nobody can tell which of the two has moved."""
        seen = Counter((self.region[i.index], without_control(i.word)) for i in self.code)
        return [seen[self.region[i.index], without_control(i.word)] > 1 for i in self.code]

    # ---- candidates ----

    def build(
        self,
        order: list[int] | None = None,
        controls: Mapping[int, Control] | None = None,
        follow: bool = True,
    ) -> Cubin:
        """The cubin with this order and these control bits; without `follow`, records stay behind."""
        order = list(range(len(self.code))) if order is None else order
        chosen = dict(controls or {})
        for place, i in enumerate(order):
            displaced = place + 1 < len(order) and order[place + 1] != i + 1
            if displaced and i not in chosen and self.code[i].control.reuse:
                chosen[i] = replace(self.code[i].control, reuse=0)
        words = tuple(
            chosen[i].encode(self.code[i].word) if i in chosen else self.code[i].word for i in order
        )
        moved = {16 * i: 16 * place for place, i in enumerate(order)} if follow else {}
        return self.cubin.with_words(self.listing.kernel, words, moved)

    def moved(self, i: int, before: int) -> list[int]:
        """The order with instruction `i` directly before instruction `before`."""
        order = [j for j in range(len(self.code)) if j != i]
        order.insert(order.index(before), i)
        return order

    # ---- what depends on what ----

    def hazards(self, first: int, second: int) -> list[Pair]:
        a, b = self.code[first], self.code[second]
        if a.never_executes or b.never_executes:
            return []
        kinds = ((Hazard.RAW, a.defs, b.uses), (Hazard.WAR, a.uses, b.defs), (Hazard.WAW, a.defs, b.defs))
        return [
            Pair(hazard, first, second, x.register, x.role, y.role)
            for hazard, left, right in kinds
            for x in left
            for y in right
            if x.register == y.register
        ]

    @cached_property
    def obstacles(self) -> list[int | None]:
        """For each movable instruction: the nearest above it, in its region, that it must not pass."""
        return [self._obstacle(i.index) for i in self.code]

    def _obstacle(self, i: int) -> int | None:
        if not self.is_movable(i):
            return None
        for p in range(i - 1, -1, -1):
            if self.region[p] != self.region[i]:
                return None
            if self.hazards(p, i) or self.may_be_ordered(p, i):
                return p if self.is_movable(p) else None
        return None

    def may_be_ordered(self, first: int, second: int) -> bool:
        """Might they be ordered by something else than a register? Asked generously."""
        a, b = self.code[first], self.code[second]
        if Order.FREE not in (a.order, b.order) or a.is_dummy_load or b.is_dummy_load:
            return True
        if set(a.control.sets) & set(b.control.sets):
            return True
        return all(i.declaration is not None and i.declaration.warp_wide for i in (a, b))

    def may_overlap(self, first: int, second: int) -> Space | None:
        """The memory in which these two may meet, one of them writing; None where not for certain."""
        a, b = self.code[first].declaration, self.code[second].declaration
        if a is None or b is None:
            return None
        spaces = [s for s in (a.writes, a.reads) if s is not None and s in (b.writes, b.reads)]
        if not spaces or spaces[0] not in (a.writes, b.writes):
            return None
        x, y = (next(o for o in self.code[i].operands if o.kind is Kind.ADDRESS) for i in (first, second))
        same_base = (x.register, x.uniform) == (y.register, y.uniform)
        return spaces[0] if not same_base or x.offset == y.offset else None

    # ---- timing ----

    @cached_property
    def timed(self) -> list[Pair]:
        """Dependences inside a block on a fixed latency that the table knows and the original keeps."""
        return [pair for i in self.code for pair in self._timed_from(i.index)]

    def _timed_from(self, p: int) -> Iterator[Pair]:
        if self.code[p].is_variable or self.code[p].declaration is None:
            return
        dead: set[int] = set()
        for c in range(p + 1, len(self.code)):
            distance = self.cycle[c] - self.cycle[p]
            if self.block[c] != self.block[p] or distance > _WINDOW:
                return
            for pair in self.hazards(p, c):
                needed = self.required(pair)
                if pair.register not in dead and needed is not None and needed <= self.was(p, c):
                    yield pair
            if not self.code[c].is_conditional and not self.code[c].never_executes:
                dead |= {access.register for access in self.code[c].defs}

    @cached_property
    def kept_by_time(self) -> list[Timed]:
        """As `timed`, with all that the table does not know, and with one entry for all roles."""
        return [found for i in self.code for found in self._kept_from(i.index)]

    def _kept_from(self, p: int) -> Iterator[Timed]:
        dead: set[int] = set()
        for c in range(p + 1, len(self.code) if self.code[p].declaration is not None else 0):
            if self.block[c] != self.block[p] or self.cycle[c] - self.cycle[p] > _WINDOW:
                return
            yield from (found for found in self.between(p, c) if found.pair.register not in dead)
            if not self.code[c].is_conditional and not self.code[c].never_executes:
                dead |= {access.register for access in self.code[c].defs}

    def between(self, p: int, c: int, was: int | None = None) -> list[Timed]:
        """The dependences of `c` on `p` that time keeps; over the border of a block, say how long it was."""
        roles: dict[tuple[Hazard, int], list[Pair]] = defaultdict(list)
        for pair in self.hazards(p, c):
            if self._is_kept_by_time(pair):
                roles[pair.hazard, pair.register].append(pair)
        was, found = self.was(p, c) if was is None else was, []
        for pairs in roles.values():
            answers = [self.required(pair) for pair in pairs]
            known = None if None in answers else max(answer for answer in answers if answer is not None)
            needed = min(was, self.longest(p) if known is None else known)
            found.append(Timed(pairs[0], needed, known, was))
        return found

    def _is_kept_by_time(self, pair: Pair) -> bool:
        producer, file = self.code[pair.producer], file_of(pair.register)
        rewrites = not producer.is_conditional and pair.register in {a.register for a in producer.defs}
        if pair.hazard is Hazard.WAR and rewrites:
            # Who overwrites its result comes late enough for its source.
            return False
        if not producer.is_variable:
            return True
        # Predicates and uniform registers are read at issue, the latter not by engines beside the warp.
        beside = producer.declaration is None or producer.declaration.pipe is Pipe.ASYNC
        return pair.hazard is Hazard.WAR and file is not File.R and not (beside and file is File.UR)

    def longest(self, p: int) -> int:
        """Cycles for which a result is waited for where nothing is known."""
        declaration = self.code[p].declaration
        return 96 if declaration is None or declaration.pipe in (Pipe.TENSOR, Pipe.ASYNC) else 32

    def required(self, pair: Pair) -> int | None:
        a, b = self.code[pair.producer], self.code[pair.consumer]
        return self.table.required(pair.hazard, a, b, pair.register, pair.producer_role, pair.consumer_role)

    def shortened(self, i: int, by: int) -> Control | None:
        """The instruction's control bits with a smaller stall, if that alone breaks no rule."""
        control = self.code[i].control
        least = self.table.minimum_stall(self.code[i])
        floor = control.stall if least is None else max(least, 1)
        return replace(control, stall=control.stall - by) if control.stall - by >= floor else None
