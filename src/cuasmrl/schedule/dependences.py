"""The dependence graph of a block: which instructions must keep their order, and at what distance."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import pairwise

from cuasmrl.binary.sass import BARRIERS, Access, Control, Distances, Hazard, Instruction, Order
from cuasmrl.schedule.blocks import Block
from cuasmrl.schedule.boundaries import HORIZON, Boundaries, cross_block_needs, is_pause, issue_times
from cuasmrl.schedule.memory import AddressBook
from cuasmrl.schedule.scoreboards import (
    Guards,
    Outstanding,
    State,
    analyse,
    awaited_boards,
    awaited_setters,
    finished,
    is_ordered_by,
    is_read_late,
    issue,
    own_boards,
    raised_boards,
    registers_of,
    unprotected,
)


class Reason(StrEnum):
    REGISTER = "register"
    MEMORY = "memory"
    SYNC = "synchronisation"
    SCOREBOARD = "scoreboard"
    ANNOUNCED = "announced by a scoreboard"
    WAIT = "wait"
    QUEUE = "in-order queue"
    WARP = "warp-wide order"
    PADDING = "padding"
    PAUSE = "wait that passes the time"


@dataclass(slots=True)
class Edge:
    """`need` cycles at least from the first to the second; 0 where only the order matters."""

    need: int
    reasons: set[Reason]


@dataclass
class Graph:
    """Instructions are named by their index in the original listing."""

    successors: dict[int, dict[int, Edge]] = field(default_factory=lambda: defaultdict(dict))
    predecessors: dict[int, dict[int, Edge]] = field(default_factory=lambda: defaultdict(dict))
    inherits: dict[tuple[int, int], int] = field(default_factory=dict)
    """(waiting instruction, protected instruction) → wait bits the second needs to leave the first's shelter;
    0 where bits cannot replace the shelter (a DEPBAR)."""
    leashes: list[tuple[int, int, int]] = field(default_factory=list)
    """(first, second, cycles): the second issues no earlier than so many cycles before the first."""
    relied: set[int] = field(default_factory=set)
    """Instructions whose waits pass time that others count on."""

    def add(self, first: int, second: int, need: int, reason: Reason) -> None:
        edge = self.successors[first].get(second)
        if edge is None:
            self.successors[first][second] = self.predecessors[second][first] = Edge(need, {reason})
            return
        edge.need = max(edge.need, need)
        edge.reasons.add(reason)


@dataclass(frozen=True)
class Originals:
    """What the original schedule says, which stays the yardstick however far a candidate has moved."""

    code: Sequence[Instruction]
    times: Sequence[int]
    table: Distances
    boundaries: Boundaries
    entries: Sequence[State]
    """Operations outstanding at the start of each block."""
    covered: Mapping[Outstanding, frozenset[int]]
    """Operations that some wait finds finished through a later instruction's barrier: which scoreboards."""
    counted_boards: frozenset[int]
    """Scoreboards on which some DEPBAR counts: their setters keep their order."""
    awaited: Mapping[int, tuple[int, ...]]
    """Waiting instruction → those of its block that raised what it waits for."""

    @staticmethod
    def of(blocks: Sequence[Block], code: Sequence[Instruction], table: Distances) -> "Originals":
        machine = analyse(blocks, code)
        boundaries = cross_block_needs(blocks, code, table)
        for p, c in machine.unexplained:
            boundaries.keep_distance(p, c)
        return Originals(
            code=code,
            times=issue_times(blocks, code),
            table=table,
            boundaries=boundaries,
            entries=machine.entries,
            covered=machine.covered,
            counted_boards=frozenset(i.depbar[0] for i in code if i.depbar is not None and i.depbar[1] > 0),
            awaited=awaited_setters(blocks, code),
        )

    def distance(self, first: int, second: int) -> int:
        return self.times[second] - self.times[first]


def build_graph(
    block: Block, order: Sequence[int], control: Mapping[int, Control], originals: Originals
) -> Graph:
    """Dependences of one block in its present order, under its present control bits."""
    graph = Graph()
    _register_edges(graph, order, originals)
    _memory_edges(graph, [originals.code[i] for i in order])
    _padding_edges(graph, [originals.code[i] for i in order])
    _board_edges(graph, order, control, originals)
    _scoreboard_edges(graph, order, control, originals.entries[block.number], originals)
    _pause_edges(graph, order, originals)
    return graph


def build_loose_graph(block: Block, boards: Sequence[int], originals: Originals) -> Graph:
    """What holds in every order, whichever scoreboards announce what; only these boards stay as they are."""
    order = range(block.start, block.end)
    graph = Graph()
    _register_edges(graph, order, originals)
    _memory_edges(graph, [originals.code[i] for i in order])
    _padding_edges(graph, [originals.code[i] for i in order])
    _board_edges(graph, order, {i: originals.code[i].control for i in order}, originals, boards)
    _pause_edges(graph, order, originals)
    return graph


def _register_edges(graph: Graph, order: Sequence[int], originals: Originals) -> None:
    writers: dict[int, list[tuple[int, Access]]] = defaultdict(list)
    readers: dict[int, list[tuple[int, Access]]] = defaultdict(list)
    pauses = [i for i in order if is_pause(originals.code[i], originals.code[i].control.wait_mask)]
    for i in order:
        consumer = originals.code[i]
        for hazard, table, accesses in (
            (Hazard.RAW, writers, consumer.uses),
            (Hazard.WAW, writers, consumer.defs),
            (Hazard.WAR, readers, consumer.defs),
        ):
            for access in accesses:
                for p, earlier in table[access.register]:
                    if p != i:
                        _register_edge(graph, hazard, p, earlier, i, access, pauses, originals)
        for access in consumer.defs:
            if not consumer.is_conditional:
                writers[access.register].clear()
                readers[access.register].clear()
            writers[access.register].append((i, access))
        for access in consumer.uses:
            readers[access.register].append((i, access))


def _register_edge(
    graph: Graph,
    hazard: Hazard,
    p: int,
    earlier: Access,
    c: int,
    access: Access,
    pauses: list[int],
    originals: Originals,
) -> None:
    producer, consumer = originals.code[p], originals.code[c]
    late = is_read_late(producer, access.register) if hazard is Hazard.WAR else producer.is_variable
    if late:
        graph.add(p, c, 0, Reason.REGISTER)
        return
    distance = originals.distance(p, c)
    required = originals.table.required(
        hazard, producer, consumer, access.register, earlier.role, access.role
    )
    if required is not None and required <= distance:
        graph.add(p, c, required, Reason.REGISTER)
        return
    # ptxas came closer than anything known: it may count on a wait in between to pass the time.
    graph.add(p, c, min(distance, HORIZON), Reason.REGISTER)
    if distance < HORIZON:
        _keep_pauses_between(graph, p, c, pauses, originals)


def _keep_pauses_between(graph: Graph, p: int, c: int, pauses: list[int], originals: Originals) -> None:
    """A wait in between passes the same time only if what it waits for is not issued earlier."""
    for w in pauses:
        if p < w <= c:
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


def _memory_edges(graph: Graph, code: Sequence[Instruction]) -> None:
    book = AddressBook()
    since_sync: list[Instruction] = []
    last_sync: int | None = None
    last_warp_wide: int | None = None
    for instruction in code:
        book.enter(instruction)
        if instruction.order is Order.SYNC:
            for other in since_sync:
                graph.add(other.index, instruction.index, 0, Reason.SYNC)
            if last_sync is not None:
                graph.add(last_sync, instruction.index, 0, Reason.SYNC)
            since_sync, last_sync = [], instruction.index
        elif instruction.order is Order.MEMORY:
            if last_sync is not None:
                graph.add(last_sync, instruction.index, 0, Reason.SYNC)
            for other in since_sync:
                if book.must_keep_order(other, instruction):
                    graph.add(other.index, instruction.index, 0, Reason.MEMORY)
            since_sync.append(instruction)
        if instruction.declaration is not None and instruction.declaration.warp_wide:
            if last_warp_wide is not None:
                graph.add(last_warp_wide, instruction.index, 0, Reason.WARP)
            last_warp_wide = instruction.index


_PADDED_SLOTS = 4
"""Padding fills up to four slots of the shared-memory queue, some of them with real loads."""


def _padding_edges(graph: Graph, code: Sequence[Instruction]) -> None:
    """In front of a padded instruction the shared-memory queue keeps its order, dummies included."""
    queue = [i.index for i in code if i.declaration is not None and i.declaration.queue == "shared"]
    dummies = {i.index for i in code if i.is_dummy_load}
    for position, dummy in enumerate(queue):
        if dummy not in dummies:
            continue
        window = queue[max(0, position + 1 - _PADDED_SLOTS) : position + 1]
        for first, second in pairwise(window):
            graph.add(first, second, 0, Reason.PADDING)
        for earlier in queue[: position + 1 - len(window)]:
            graph.add(earlier, window[0], 0, Reason.PADDING)
        for later in queue[position + 1 :]:
            graph.add(dummy, later, 0, Reason.PADDING)


def _board_edges(
    graph: Graph,
    order: Sequence[int],
    control: Mapping[int, Control],
    originals: Originals,
    boards: Sequence[int] = range(BARRIERS),
) -> None:
    """Raising a scoreboard and waiting for it keep their order, in alternating phases."""
    for board in boards:
        setters: list[int] = []
        waiters: list[int] = []
        earlier_waiters: list[int] = []
        for i in order:
            if board in awaited_boards(originals.code[i], control[i].wait_mask):
                for s in setters:
                    graph.add(s, i, _release_need(s, i, board, originals), Reason.SCOREBOARD)
                waiters.append(i)
            if board not in raised_boards(control[i]):
                continue
            if waiters:
                setters, waiters, earlier_waiters = [], [], waiters
            for w in earlier_waiters:
                if w != i:
                    graph.add(w, i, 0, Reason.SCOREBOARD)
            if setters and board in originals.counted_boards:
                graph.add(setters[-1], i, 0, Reason.SCOREBOARD)
            setters.append(i)


def _release_need(setter: int, waiter: int, board: int, originals: Originals) -> int:
    """As close as the compiler had the two, if it had this wait at all."""
    release = originals.table.release(originals.code[setter])
    needed = HORIZON if release is None else release
    if board in awaited_boards(originals.code[waiter], originals.code[waiter].control.wait_mask):
        return min(originals.distance(setter, waiter), needed)
    return needed


def _scoreboard_edges(
    graph: Graph, order: Sequence[int], control: Mapping[int, Control], entry: State, originals: Originals
) -> None:
    """Whoever touches a register of an outstanding operation stays behind the wait that ended it."""
    code = originals.code
    state: State = {key: dict(guards) for key, guards in entry.items()}
    issued: set[int] = set()
    shelters: dict[tuple[int, bool], list[tuple[int, int]]] = defaultdict(list)
    ended: list[tuple[Outstanding, int, int]] = []
    for i in order:
        instruction = code[i]
        for key in finished(state, instruction, control[i], code):
            own = own_boards(code[key.index], key.is_read)
            if key not in originals.covered and not own & awaited_boards(instruction, control[i].wait_mask):
                # In the present order another barrier happens to announce it, but nothing keeps it so.
                continue
            bits = _sheltering_bits(code[key.index], key, state[key], control[i])
            for register in registers_of(code[key.index], key):
                shelters[register, key.is_read].append((i, bits))
            ended.append((key, i, bits))
            del state[key]
        _shelter_edges(graph, instruction, control[i].wait_mask, shelters)
        for key, w, bits in ended:
            if is_ordered_by(instruction, key, code[key.index]):
                _shelter(graph, w, instruction.index, bits, control[i].wait_mask)
        _queue_edges(graph, instruction, state, issued, originals)
        for key in issue(state, instruction, control[i], code):
            if key.index in issued and key in originals.covered:
                graph.add(key.index, i, 0, Reason.QUEUE)
        issued.add(i)


def _sheltering_bits(producer: Instruction, key: Outstanding, guards: Guards, control: Control) -> int:
    """Wait bits that end an operation: its own barriers', else those of whom it stays ahead of."""
    waited = {k for k in guards if control.wait_mask >> k & 1}
    return sum(1 << k for k in waited & own_boards(producer, key.is_read) or waited)


def _shelter_edges(
    graph: Graph,
    instruction: Instruction,
    own_waits: int,
    shelters: dict[tuple[int, bool], list[tuple[int, int]]],
) -> None:
    """An instruction that waits for the same scoreboard itself needs no shelter."""
    touched = [(a.register, False) for a in instruction.uses]
    touched += [(a.register, is_read) for a in instruction.defs for is_read in (False, True)]
    for key in touched:
        for w, bits in shelters.get(key, ()):
            _shelter(graph, w, instruction.index, bits, own_waits)
    if not instruction.is_conditional:
        for access in instruction.defs:
            shelters.pop((access.register, False), None)
            shelters.pop((access.register, True), None)


def _shelter(graph: Graph, w: int, i: int, bits: int, own_waits: int) -> None:
    if w != i and not bits & own_waits:
        graph.add(w, i, 0, Reason.WAIT)
        known = graph.inherits.get((w, i), bits)
        graph.inherits[w, i] = known | bits if known and bits else 0


def _queue_edges(
    graph: Graph, instruction: Instruction, state: State, issued: set[int], originals: Originals
) -> None:
    """Overwrites that the queue keeps in order stay in order; what nothing explains keeps its distance.

    What is outstanding from the previous iteration is before everything in this one, wherever it stands.
    """
    unexplained = {key.index for key in unprotected(state, instruction, originals.code)}
    reads = {a.register for a in instruction.uses}
    writes = {a.register for a in instruction.defs}
    for key in state:
        p, i = key.index, instruction.index
        if p not in issued or not registers_of(originals.code[p], key) & (reads | writes):
            continue
        if p not in unexplained:
            graph.add(p, i, 0, Reason.QUEUE)
        elif p < i:
            graph.add(p, i, min(originals.distance(p, i), HORIZON), Reason.SCOREBOARD)
            _keep_pauses_between(graph, p, i, sorted(originals.awaited), originals)


def _pause_edges(graph: Graph, order: Sequence[int], originals: Originals) -> None:
    """Pairs across a border that count on a wait: the wait stays between them and the border."""
    pauses = [i for i in order if is_pause(originals.code[i], originals.code[i].control.wait_mask)]
    for i in order:
        if i in originals.boundaries.waits_after:
            for w in pauses:
                if i < w:
                    graph.relied.add(w)
                    graph.add(i, w, 0, Reason.PAUSE)
                    for s in originals.awaited.get(w, ()):
                        keep_behind(graph, i, s, originals)
        if i in originals.boundaries.waits_before:
            for w in pauses:
                if w <= i:
                    graph.relied.add(w)
                if w < i:
                    graph.add(w, i, 0, Reason.PAUSE)
