"""Register dependences of a block.

Whoever touches a register stays behind all that conflict with it since the register was last overwritten for
sure. Under guards it may never be, and all would be tied to all. So what is far behind is *retired*: it has
an edge to the last write under a guard, that write has one to everybody later, and the two together keep at
least the distance that an edge of its own would ask for.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from cuasmrl.binary.sass import Access, Hazard, Instruction, overwriting_role
from cuasmrl.schedule.boundaries import HORIZON
from cuasmrl.schedule.graph import Graph, Reason
from cuasmrl.schedule.orders import put
from cuasmrl.schedule.scoreboards import is_read_late

if TYPE_CHECKING:
    from cuasmrl.schedule.dependences import Originals

_FEW = 16
"""So many accesses of a register may have edges to everybody later."""


@dataclass(frozen=True, slots=True)
class _Earlier:
    index: int
    access: Access


@dataclass
class _Accesses:
    """Of one register, since it was last overwritten for sure."""

    writers: list[_Earlier] = field(default_factory=list)
    readers: list[_Earlier] = field(default_factory=list)
    kept: dict[int, int] = field(default_factory=dict)
    """Instruction → cycles that edges keep from it to the last write."""
    last_write: int = -1


class Retired:
    """Those that need no edge of their own any more; a rule of `weave`, which counts them all the same."""

    shelters: Sequence[tuple[int, int]] = ()

    def __init__(self) -> None:
        self._at: dict[int, list[tuple[int, int, bool]]] = defaultdict(list)
        """Instruction → register and other instruction that retired there, and whether it wrote."""
        self._position: dict[int, int] = {}
        self._out: dict[tuple[int, bool], int] = {}

    def retire(self, i: int, register: int, other: int, is_write: bool) -> None:
        self._at[i].append((register, other, is_write))

    def step(self, q: int, instruction: Instruction, rows: dict[Reason, int]) -> None:
        if not self._at:
            return
        i = instruction.index
        self._position[i] = q
        if self._out:
            for access in instruction.uses:
                put(rows, Reason.REGISTER, self._out.get((access.register, True), 0))
            for access in instruction.defs:
                for is_write in (False, True):
                    put(rows, Reason.REGISTER, self._out.get((access.register, is_write), 0))
                    if not instruction.is_conditional:
                        self._out.pop((access.register, is_write), None)
        for register, other, is_write in self._at.get(i, ()):
            key = register, is_write
            self._out[key] = self._out.get(key, 0) | 1 << self._position[other]


def register_edges(
    graph: Graph, order: Sequence[int], position: Mapping[int, int], originals: Originals
) -> Retired:
    """Add the dependences of a block in an order; answer those that chains stand for."""
    edges = _RegisterEdges(graph, order, position, originals)
    for i in order:
        edges.step(originals.code[i])
    return edges.retired


class _RegisterEdges:
    def __init__(
        self, graph: Graph, order: Sequence[int], position: Mapping[int, int], originals: Originals
    ) -> None:
        self.retired = Retired()
        self._graph = graph
        self._order = order
        self._position = position
        self._originals = originals
        self._accesses: dict[int, _Accesses] = defaultdict(_Accesses)
        self._touching: dict[int, list[tuple[Instruction, Access, bool]]] = {}
        self._most: dict[tuple[int, str, str, bool], int] = {}

    def step(self, consumer: Instruction) -> None:
        i = consumer.index
        for access in consumer.uses:
            self._tie(Hazard.RAW, self._accesses[access.register].writers, consumer, access)
        for access in consumer.defs:
            self._tie(Hazard.WAW, self._accesses[access.register].writers, consumer, access)
            self._tie(Hazard.WAR, self._accesses[access.register].readers, consumer, access)
        for access in consumer.defs:
            if not consumer.is_conditional:
                self._accesses[access.register] = _Accesses()
            else:
                self._retire(i, access.register)
            self._accesses[access.register].writers.append(_Earlier(i, access))
        for access in consumer.uses:
            self._accesses[access.register].readers.append(_Earlier(i, access))

    def _tie(
        self, hazard: Hazard, earlier: Iterable[_Earlier], consumer: Instruction, access: Access
    ) -> None:
        for other in earlier:
            if other.index != consumer.index:
                self._edge(hazard, other, consumer, access)

    def _edge(self, hazard: Hazard, earlier: _Earlier, consumer: Instruction, access: Access) -> None:
        graph, originals, p, c = self._graph, self._originals, earlier.index, consumer.index
        producer = originals.code[p]
        if _is_late(hazard, producer, access.register):
            graph.add(p, c, 0, Reason.REGISTER)
            return
        distance = originals.distance(p, c)
        required = originals.table.required(
            hazard, producer, consumer, access.register, earlier.access.role, access.role
        )
        if required is not None and required <= distance:
            graph.add(p, c, required, Reason.REGISTER)
            return
        # ptxas came closer than anything known: it may count on a wait in between to pass the time.
        graph.add(p, c, min(distance, HORIZON), Reason.REGISTER)
        if distance < HORIZON:
            pauses = sorted(between(originals.pauses, p, c), key=self._position.__getitem__)
            keep_pauses(graph, p, c, pauses, originals)

    def _retire(self, i: int, register: int) -> None:
        """A write under a guard, which has its edges, may take over for what is far before it."""
        accesses = self._accesses[register]
        if len(accesses.writers) + len(accesses.readers) > _FEW:
            before = self._graph.predecessors[i]
            step = before[accesses.last_write].need if accesses.last_write in before else 0
            kept = {
                e.index: max(before[e.index].need, accesses.kept.get(e.index, -step) + step)
                for e in (*accesses.writers, *accesses.readers)
                if e.index in before
            }
            accesses.writers = [e for e in accesses.writers if not self._goes(i, register, e, True, kept)]
            accesses.readers = [e for e in accesses.readers if not self._goes(i, register, e, False, kept)]
            accesses.kept = kept
        accesses.last_write = i

    def _goes(
        self, i: int, register: int, earlier: _Earlier, is_write: bool, kept: Mapping[int, int]
    ) -> bool:
        p = earlier.index
        if p not in kept:
            return False
        hazard = Hazard.WAW if is_write else Hazard.WAR
        if not _is_late(hazard, self._originals.code[p], register):
            # Nearer ones may count on a wait in between.
            far = self._originals.distance(p, i) >= HORIZON
            if not far or kept[p] < self._most_needed(register, earlier, is_write):
                return False
        self.retired.retire(i, register, p, is_write)
        return True

    def _most_needed(self, register: int, earlier: _Earlier, is_write: bool) -> int:
        """What anybody in the block may need towards such an access of the register."""
        if not self._touching:
            self._touching = self._kinds()
        producer = self._originals.code[earlier.index]
        key = register, producer.timing_key, earlier.access.role, is_write
        if key not in self._most:
            needs = [0]
            for consumer, access, overwrites in self._touching[register]:
                if is_write or overwrites:
                    hazard = Hazard.RAW if not overwrites else Hazard.WAW if is_write else Hazard.WAR
                    need = self._originals.table.required(
                        hazard, producer, consumer, register, earlier.access.role, access.role
                    )
                    needs.append(HORIZON if need is None else need)
            self._most[key] = max(needs)
        return self._most[key]

    def _kinds(self) -> dict[int, list[tuple[Instruction, Access, bool]]]:
        """Register → accesses of the block, of each kind one."""
        found: dict[int, dict[tuple[str, str, str, bool], tuple[Instruction, Access, bool]]] = {}
        for i in self._order:
            instruction = self._originals.code[i]
            for overwrites, accesses in ((False, instruction.uses), (True, instruction.defs)):
                for access in accesses:
                    kinds = found.setdefault(access.register, {})
                    roles = access.role, overwriting_role(instruction, access.role)
                    kind = (instruction.timing_key, *roles, overwrites)
                    kinds.setdefault(kind, (instruction, access, overwrites))
        return {register: list(kinds.values()) for register, kinds in found.items()}


def _is_late(hazard: Hazard, producer: Instruction, register: int) -> bool:
    """Does a scoreboard tell when the register may be touched, rather than a distance?"""
    return is_read_late(producer, register) if hazard is Hazard.WAR else producer.is_variable


def between(instructions: Sequence[int], p: int, c: int) -> Sequence[int]:
    """Of a list in the order of the code, those behind p and up to c."""
    return instructions[bisect_right(instructions, p) : bisect_right(instructions, c)]


def keep_pauses(graph: Graph, p: int, c: int, pauses: Iterable[int], originals: Originals) -> None:
    """A wait in between passes the same time only if what it waits for is not issued earlier."""
    for w in pauses:
        graph.relied.add(w)
        graph.add(p, w, 0, Reason.PAUSE)
        if w < c:
            graph.add(w, c, 0, Reason.PAUSE)
        for s in originals.awaited.get(w, ()):
            keep_behind(graph, p, s, originals)


def keep_behind(graph: Graph, first: int, second: int, originals: Originals) -> None:
    """The second gets no earlier, seen from the first, than it was in the original."""
    distance = originals.distance(first, second)
    if first < second:
        graph.add(first, second, min(distance, HORIZON), Reason.PAUSE)
    elif first > second:
        graph.leashes.append((first, second, -distance))
