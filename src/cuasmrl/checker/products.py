"""Products of a warpgroup, which run beside the warp from a WARPGROUP.ARRIVE to a WARPGROUP.DEPBAR.

A product is over when a DEPBAR lets only so many groups run on as were closed behind its own. Until then
nobody but products may touch what it writes, or write what it reads; nor may anybody between the ARRIVE in
front of it and the product itself. `memory.py` keeps products, ARRIVE and DEPBAR in order, so that counts
mean the same. Here both programs are followed over all paths, and who meets a product in the candidate only
is refused.
"""

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import NamedTuple

from cuasmrl.binary.sass import Distances, File, Hazard, file_of
from cuasmrl.checker.answers import LONGEST
from cuasmrl.checker.graph import Worklist
from cuasmrl.checker.program import Arrangement, Program
from cuasmrl.checker.verdict import Fault, Rule

_OPEN = -1
"""Groups closed since that of a product whose own is not closed yet."""
_MANY = 64
"""No DEPBAR lets so many groups run."""
_Registers = frozenset[int]


class Passing(NamedTuple):
    """What is known at a place, over all paths to it."""

    flying: Mapping[int, int]
    """By product that may be in flight: the fewest groups that were closed behind its own."""
    touched: Mapping[tuple[int, bool], frozenset[int]]
    """By register of products, and whether it is written: who did that since the last ARRIVE."""
    arrivals: frozenset[int]
    """Each may be the last ARRIVE."""


class Met(NamedTuple):
    """What is found over all paths."""

    in_flight: set[tuple[int, int, int]]
    """(product, who touches its register while it is in flight, register)"""
    unfenced: set[tuple[int, int, int]]
    """(who touches a register, product that uses it with no ARRIVE in between, register)"""
    begins: dict[int, _Registers]
    """By ARRIVE: registers of the products behind it."""


class Products:
    """The warpgroup products of one original."""

    def __init__(self, program: Program, original: Arrangement, table: Distances):
        self._program, self._original, self._table = program, original, table
        products = [i.index for i in program.instructions if i.is_product]
        self._writes = {p: frozenset(program.defs[p]) for p in products}
        general = {p: frozenset(r for r in program.uses[p] if file_of(r) is File.R) for p in products}
        self._reads = {p: general[p] - self._writes[p] for p in products}
        self._used = _Registers().union(*self._writes.values(), *general.values())
        self._needs: dict[tuple[int, int], int] = {}

    @cached_property
    def _met(self) -> Met:
        return self._follow(self._original)

    # ---- order ----

    def faults(self, candidate: Arrangement) -> Iterator[Fault]:
        """Of a candidate that keeps the order of products, ARRIVE and DEPBAR."""
        if not self._writes or candidate.order == self._original.order:
            return
        met = self._follow(candidate)
        for p, i, register in met.in_flight - self._met.in_flight:
            message = "{c} touches a register of {p}, which no WARPGROUP.DEPBAR in front of it awaits"
            yield Fault(Rule.PRODUCT, i, message, p, register)
        for i, p, register in met.unfenced - self._met.unfenced:
            message = "{c} uses a register that {p} touches, with no WARPGROUP.ARRIVE in between"
            yield Fault(Rule.PRODUCT, p, message, i, register)

    def _follow(self, arrangement: Arrangement) -> Met:
        graph, met = self._program.graph, Met(set(), set(), {})
        entries = [Passing({}, {}, frozenset())] * len(graph.paths)
        work = Worklist(graph)
        while work:
            node = work.pop()
            passing = entries[node]
            if node < graph.blocks:
                block = self._program.blocks[node]
                for i in arrangement.order[block.start : block.end]:
                    passing = self._step(i, passing, met)
            for following in graph.paths[node]:
                known = entries[following]
                entries[following] = _joined(known, passing)
                if entries[following] != known:
                    work.push(following)
        return met

    def _step(self, i: int, passing: Passing, met: Met) -> Passing:
        instruction = self._program.instructions[i]
        flying, touched, arrivals = passing
        certain = not instruction.is_conditional
        if instruction.never_executes:
            return passing
        if instruction.is_product:
            self._begin(i, passing, met)
            flying = {**flying, i: _OPEN}
            if instruction.closes_group and certain:
                flying = {p: min(closed + 1, _MANY) for p, closed in flying.items()}
        elif instruction.groups_left is not None:
            if certain:
                flying = {p: closed for p, closed in flying.items() if closed < instruction.groups_left}
        elif instruction.is_arrival:
            touched = {} if certain else touched
            arrivals = frozenset((i,)) if certain else arrivals | {i}
        else:
            touched = self._touch(i, passing, met)
        return Passing(flying, touched, arrivals)

    def _begin(self, p: int, passing: Passing, met: Met) -> None:
        written, read = self._writes[p], self._reads[p]
        for arrival in passing.arrivals:
            met.begins[arrival] = met.begins.get(arrival, _Registers()) | written | read
        for (register, is_write), touching in passing.touched.items():
            if register in written or (is_write and register in read):
                met.unfenced.update((i, p, register) for i in touching)

    def _touch(self, i: int, passing: Passing, met: Met) -> Mapping[tuple[int, bool], frozenset[int]]:
        program = self._program
        read, written = self._used.intersection(program.uses[i]), self._used.intersection(program.defs[i])
        if not read and not written:
            return passing.touched
        for p in passing.flying:
            held = (read | written) & self._writes[p] | written & self._reads[p]
            met.in_flight.update((p, i, register) for register in held)
        touched = dict(passing.touched)
        for registers, is_write in ((read, False), (written, True)):
            for register in registers:
                key = register, is_write
                touched[key] = touched.get(key, frozenset()) | {i}
        return touched

    # ---- distances ----

    def closeness_faults(self, candidate: Arrangement) -> Iterator[Fault]:
        """Values are there when an ARRIVE is issued; what a DEPBAR awaits is there after its own stall."""
        if not self._writes:
            return
        for number, block in enumerate(self._program.blocks):
            for w in range(block.start, block.end):
                if w in self._met.begins:
                    yield from self._before_beginning(w, number, candidate)
                elif w in self._writers:
                    yield from self._before_border(w, number, candidate)

    def _before_beginning(self, w: int, number: int, candidate: Arrangement) -> Iterator[Fault]:
        block, before = self._program.blocks[number], self._original.start
        needed = min(before[w], max((self._settled(i, w) for i in self._writers), default=0))
        if candidate.start[w] < needed:
            message = f"{{c}} is issued {candidate.start[w]} cycles into its block, but needs {needed}"
            yield Fault(Rule.DISTANCE, w, message, needed=needed, found=candidate.start[w])
        for i in reversed(candidate.order[block.start : candidate.position[w]]):
            found = candidate.start[w] - candidate.start[i]
            if found >= LONGEST:
                return
            needed = self._settled(i, w)
            yield from _too_close(i, w, min(needed, before[w] - before[i]) if i < w else needed, found)

    def _before_border(self, i: int, number: int, candidate: Arrangement) -> Iterator[Fault]:
        """A value is as far ahead of the end of its block as an ARRIVE behind it may ask for."""
        needed = max(self._settled(i, w) for w in self._met.begins)
        needed = min(needed, self._original.total[number] - self._original.start[i])
        found = candidate.total[number] - candidate.start[i]
        if found < needed:
            message = f"{{c}} is issued {found} cycles ahead of the end of its block, but needs {needed}"
            yield Fault(Rule.DISTANCE, i, message, needed=needed, found=found)

    @cached_property
    def _writers(self) -> frozenset[int]:
        """Whoever gives registers of products values after a fixed time."""
        begun = _Registers().union(*self._met.begins.values())
        return frozenset(
            i.index
            for i in self._program.instructions
            if not i.is_variable and not i.is_product and not begun.isdisjoint(self._program.defs[i.index])
        )

    def _settled(self, i: int, w: int) -> int:
        """Cycles until an ARRIVE may follow; 0 if no product behind it uses what is written."""
        if i not in self._writers:
            return 0
        if (i, w) not in self._needs:
            code = self._program.instructions
            answers = [
                self._table.required(Hazard.RAW, code[i], code[w], register, role)
                for register, role in code[i].defs
                if register in self._met.begins[w]
            ]
            self._needs[i, w] = max((LONGEST if a is None else a for a in answers), default=0)
        return self._needs[i, w]

    def relied_on(self) -> Iterator[bytes]:
        """The cycles between those that give registers values and each ARRIVE, each behind a blank."""
        for w in sorted(self._met.begins) if self._writes else ():
            for i in sorted(self._writers):
                yield b" %d" % self._settled(i, w)


def _too_close(first: int, second: int, needed: int, found: int) -> Iterator[Fault]:
    if found < needed:
        message = f"{{c}} is issued {found} cycles after {{p}}, but needs {needed}"
        yield Fault(Rule.DISTANCE, second, message, first, needed=needed, found=found)


def _joined(known: Passing, arriving: Passing) -> Passing:
    flying = dict(known.flying)
    for p, closed in arriving.flying.items():
        flying[p] = min(closed, flying.get(p, _MANY))
    touched = dict(known.touched)
    for key, touching in arriving.touched.items():
        touched[key] = touched.get(key, frozenset()) | touching
    return Passing(flying, touched, known.arrivals | arriving.arrivals)
