"""Operations under way in one block, found by register, by scoreboard and by queue.

An instruction touches only what concerns it, so a block costs as much as its instructions and the
operations that begin and end in it, however many are under way. Operations of other blocks that have met
the same are one flight: a set of them is an integer with a bit for each.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from cuasmrl.binary.sass import GUARD, Hazard, Instruction, Order, Pipe
from cuasmrl.checker.dependences import Edge
from cuasmrl.checker.memory import is_strong
from cuasmrl.checker.program import Arrangement, Program

_BOARDS = 6


class Operation(NamedTuple):
    instruction: int
    written: bool
    """Its result is still to be written; else its sources are still to be read."""
    orders: bool = False
    """It touches no register: whoever waits for it wants what comes next in order."""


class Status(NamedTuple):
    guards: tuple[int, ...]
    """Per scoreboard: the fewest times it was raised again since it vouches for the operation, -1 if not."""
    registers: frozenset[int]
    """Those that nobody has overwritten yet."""


class Queue(NamedTuple):
    """How an instruction takes its turn; unknown opcodes have no queue and are no memory instructions."""

    name: str
    memory: bool
    returns_in_order: bool

    def reads_before(self, later: "Queue") -> bool:
        """One queue reads its sources in order, and so do all memory instructions."""
        return (bool(self.name) and self.name == later.name) or (self.memory and later.memory)

    def returns_before(self, later: "Queue") -> bool:
        """Is its result written before that of a later one? So it is in some queues only."""
        in_order = self.returns_in_order and later.returns_in_order
        return in_order and bool(self.name) and self.name == later.name


class Kind(NamedTuple):
    """What operations have in common from the start."""

    written: bool
    orders: bool
    queue: Queue
    strong: bool
    memory_only: bool


State = dict[Kind, dict[Status, int]]
"""Operations under way, as bits."""


class Tables:
    """What the machine asks about each instruction of a program."""

    def __init__(self, program: Program):
        self.program = program
        code = program.instructions
        self.queue = [_queue(i) for i in code]
        self.variable = [i.is_variable for i in code]
        self.free = [i.order is Order.FREE for i in code]
        self.watched = [i.order in (Order.SYNC, Order.PINNED) for i in code]
        self.strong = [is_strong(i) for i in code]
        self.memory_only = [_orders_memory_only(i) for i in code]
        self.blocking = [_is_blocking_barrier(i) for i in code]
        self.late = [tuple(r for r in program.uses[i.index] if program.reads_late(i.index, r)) for i in code]
        self.conditional = [i.is_conditional for i in code]
        self.most = [0] * _BOARDS
        """Per scoreboard: the highest count that a DEPBAR lets it keep. Beyond that, counts tell nothing."""
        for i in code:
            if i.depbar is not None and i.depbar[0] < _BOARDS:
                self.most[i.depbar[0]] = max(self.most[i.depbar[0]], i.depbar[1])
        self._operations: list[Operation] = []
        self._bits: dict[Operation, int] = {}
        self._bits_of_block = [0] * len(program.blocks)

    def bit(self, operation: Operation) -> int:
        """Its place in sets of operations, the same in the original and in every candidate."""
        bit = self._bits.get(operation)
        if bit is None:
            bit = self._bits[operation] = 1 << len(self._operations)
            self._operations.append(operation)
            self._bits_of_block[self.program.block_of[operation.instruction]] |= bit
        return bit

    def of_block(self, block: int) -> int:
        """Operations that begin in a block."""
        return self._bits_of_block[block]

    def operations(self, bits: int) -> Iterator[Operation]:
        for bit in single_bits(bits):
            yield self._operations[bit.bit_length() - 1]

    def kind(self, operation: Operation) -> Kind:
        i, written, orders = operation
        return Kind(written, orders, self.queue[i], self.strong[i], self.memory_only[i])

    def surely_follows(self, earlier: int | None, later: int) -> bool:
        """Does the later one enter the queue whenever the earlier one, None if of another block, did?

        What is skipped vouches for no result: ptxas never relies on that. For the reading of sources it does.
        """
        program = self.program
        if not self.conditional[later]:
            return True
        if earlier is None:
            return False
        if program.instructions[earlier].guard != program.instructions[later].guard or earlier > later:
            return False
        if program.block_of[earlier] != program.block_of[later]:
            return False
        guards = {access.register for access in program.instructions[later].uses if access.role == GUARD}
        found = [program.definitions.get(r, []) for r in guards]
        return not any(bisect_left(one, earlier) < bisect_left(one, later) for one in found)


class Flight:
    """Operations that began alike and have met the same since."""

    __slots__ = ("alive", "guards", "instruction", "kind", "operations", "registers", "status")

    def __init__(self, operations: int, kind: Kind, status: Status, instruction: int | None = None):
        self.operations, self.kind, self.status = operations, kind, status
        self.instruction = instruction
        """Of the only operation, if that is one of the block."""
        self.registers = status.registers
        self.guards: dict[int, int] = {}
        """{scoreboard that vouches: how often it had been raised when it began to}"""
        self.alive = True


class Visit:
    """One run over a block, from the operations under way at its head."""

    def __init__(
        self,
        tables: Tables,
        arrangement: Arrangement,
        number: int,
        entry: State,
        asked: Mapping[int, int],
    ):
        self._tables, self._arrangement, self._program = tables, arrangement, tables.program
        self.unprotected: list[Edge] = []
        self.settled: dict[int, int] = {}
        self.under_way: dict[int, int] = {}
        self.unordered: dict[int, int] = {}
        self._flights: list[Flight] = []
        self._raised = [0] * _BOARDS
        self._guarded: list[list[Flight]] = [[] for _ in range(_BOARDS)]
        """By scoreboard: flights it vouches for, in the order in which it began to."""
        self._lacking: dict[tuple[bool, Queue], list[list[Flight]]] = {}
        """By (written, queue), then by scoreboard: flights it does not vouch for."""
        self._results: dict[int, list[Flight]] = defaultdict(list)
        """By register: flights that still have to write it."""
        self._sources: dict[int, list[Flight]] = defaultdict(list)
        """The same: to read it."""
        self._memory_sources: list[Flight] = []
        self._ordering: list[Flight] = []
        """Flights that order memory or more: fences, strong accesses, atomics."""
        self._barring: list[Flight] = []
        """Those of them that order everything."""
        self._asked = asked
        self._own: dict[Operation, Flight] = {}
        """Flights of operations that begin in this block."""
        self._enter(number, entry)

    def _enter(self, number: int, entry: State) -> None:
        tables = self._tables
        inside = tables.of_block(number)
        for kind, groups in entry.items():
            for status, operations in groups.items():
                others = operations & ~inside
                if others:
                    self._arrive(Flight(others, kind, status))
                for bit in single_bits(operations & inside):
                    operation = next(tables.operations(bit))
                    flight = Flight(bit, kind, status, operation.instruction)
                    self._arrive(flight)
                    self._own[operation] = flight
        for board, flights in enumerate(self._guarded):
            flights.sort(key=lambda flight: flight.guards[board])

    def _arrive(self, flight: Flight) -> None:
        for board, count in enumerate(flight.status.guards):
            if count >= 0:
                flight.guards[board] = -count
        self._take_up(flight)

    def _take_up(self, flight: Flight) -> None:
        kind = flight.kind
        self._flights.append(flight)
        touching = self._results if kind.written else self._sources
        for r in flight.registers:
            touching[r].append(flight)
        if kind.queue.memory and not kind.written:
            self._memory_sources.append(flight)
        if kind.orders or (kind.written and kind.strong):
            self._ordering.append(flight)
            if kind.orders and not kind.memory_only:
                self._barring.append(flight)
        for board in flight.guards:
            self._guarded[board].append(flight)
        if not kind.orders and (kind.queue.returns_in_order or not kind.written):
            key = (kind.written, kind.queue)
            if key not in self._lacking:
                self._lacking[key] = [[] for _ in range(_BOARDS)]
            for board, lacking in enumerate(self._lacking[key]):
                if board not in flight.guards:
                    lacking.append(flight)

    def step(self, i: int) -> None:
        tables = self._tables
        waits = self._arrangement.waits[i]
        if waits or tables.watched[i]:
            ended = 0
            for board, count in waits:
                ended |= self._wait(board, count)
            if tables.blocking[i]:
                # Behind it, memory instructions have read their sources.
                ended |= _end(self._memory_sources)
                self._memory_sources = []
            if tables.watched[i]:
                self.settled[i] = ended
                asked = self._asked.get(i, 0)
                if asked:
                    self.under_way[i] = asked & _alive(self._flights)
        self._meet(i)
        if self._ordering:
            self._note_unordered(i)
        self._raise(i)
        self._begin(i)

    def _wait(self, board: int, count: int) -> int:
        """Ends what the scoreboard vouches for, if it was raised at least `count` times since."""
        flights = self._guarded[board]
        passed = 0
        while passed < len(flights) and self._raised[board] - flights[passed].guards[board] >= count:
            passed += 1
        ended = _end(flights[:passed])
        del flights[:passed]
        return ended

    def _meet(self, i: int) -> None:
        program = self._program
        for r in program.uses[i]:
            if r in self._results:
                self._results[r] = alive = [flight for flight in self._results[r] if flight.alive]
                for flight in alive:
                    self._note_unprotected(Hazard.RAW, flight, i, r)
        for r in program.defs[i]:
            for touching in (self._results, self._sources):
                if r in touching:
                    touching[r] = alive = [flight for flight in touching[r] if flight.alive]
                    for flight in alive:
                        self._overwrite(flight, i, r)
                    if program.certain[i]:
                        del touching[r]

    def _overwrite(self, flight: Flight, i: int, register: int) -> None:
        written, earlier = flight.kind.written, flight.kind.queue
        queue = self._tables.queue[i]
        # In one queue the hardware may keep the two apart by itself.
        in_order = earlier.returns_before(queue) if written else earlier.reads_before(queue)
        if not in_order or not self._tables.variable[i]:
            self._note_unprotected(Hazard.WAW if written else Hazard.WAR, flight, i, register)
        if self._program.certain[i]:
            flight.registers -= {register}
            flight.alive = bool(flight.registers)

    def _note_unprotected(self, hazard: Hazard, flight: Flight, i: int, register: int) -> None:
        for operation in self._tables.operations(flight.operations):
            self.unprotected.append(Edge(hazard, operation.instruction, i, register))

    def _note_unordered(self, i: int) -> None:
        """Some waits are there for more than registers: for memory behind a fence, for more registers."""
        flights = self._barring if self._tables.free[i] else self._ordering
        concerned = _alive(flights)
        if concerned:
            self.unordered[i] = concerned
        if not self._tables.free[i]:
            self._ordering = [flight for flight in self._ordering if flight.alive]
            self._barring = [flight for flight in self._barring if flight.alive]

    def _raise(self, i: int) -> None:
        control = self._arrangement.controls[i]
        for board in {control.write_barrier, control.read_barrier}:
            if board is not None and board < _BOARDS:
                self._raised[board] += 1
        for board, for_results in ((control.write_barrier, True), (control.read_barrier, False)):
            if board is not None and board < _BOARDS:
                self._vouch(i, board, for_results)

    def _vouch(self, i: int, board: int, for_results: bool) -> None:
        """The scoreboard now vouches for all that is over when this is written, or these sources are read."""
        queue = self._tables.queue[i]
        for (written, earlier), lacking in self._lacking.items():
            if written and not (for_results and earlier.returns_before(queue)):
                continue
            if not written and not earlier.reads_before(queue):
                continue
            left = []
            for flight in lacking[board]:
                if not flight.alive:
                    continue
                if written and not self._tables.surely_follows(flight.instruction, i):
                    left.append(flight)
                else:
                    flight.guards[board] = self._raised[board]
                    self._guarded[board].append(flight)
            lacking[board] = left

    def _begin(self, i: int) -> None:
        tables, control = self._tables, self._arrangement.controls[i]
        write, read = control.write_barrier, control.read_barrier
        if not tables.variable[i] and write is None and read is None:
            return
        writing = set() if write is None else {write}
        reading = writing if read is None else writing | {read}
        for written, registers, boards, own in (
            (True, self._program.defs[i], writing, write),
            (False, tables.late[i], reading, read),
        ):
            if registers:
                self._take_off(Operation(i, written), boards, registers)
            elif own is not None:
                self._take_off(Operation(i, written, True), {own}, ())

    def _take_off(self, operation: Operation, boards: set[int], registers: tuple[int, ...]) -> None:
        before = self._own.get(operation)
        if before is not None:
            before.alive = False
        guards = tuple(0 if board in boards else -1 for board in range(_BOARDS))
        status = Status(guards, frozenset(registers))
        tables = self._tables
        flight = Flight(tables.bit(operation), tables.kind(operation), status, operation.instruction)
        flight.guards = {board: self._raised[board] for board in boards if board < _BOARDS}
        self._take_up(flight)

    def leaving(self) -> State:
        """Operations under way at the end of the block."""
        state: State = {}
        for flight in self._flights:
            if not flight.alive:
                continue
            guards = [-1] * _BOARDS
            for board, since in flight.guards.items():
                guards[board] = min(self._raised[board] - since, self._tables.most[board])
            groups = state.setdefault(flight.kind, {})
            status = Status(tuple(guards), flight.registers)
            groups[status] = groups.get(status, 0) | flight.operations
        return state


def single_bits(bits: int) -> Iterator[int]:
    while bits:
        lowest = bits & -bits
        yield lowest
        bits ^= lowest


def _alive(flights: list[Flight]) -> int:
    found = 0
    for flight in flights:
        if flight.alive:
            found |= flight.operations
    return found


def _end(flights: list[Flight]) -> int:
    """Operations of those that had not ended before."""
    ended = _alive(flights)
    for flight in flights:
        flight.alive = False
    return ended


def _queue(i: Instruction) -> Queue:
    declaration = i.declaration
    if declaration is None:
        return Queue("", False, False)
    memory = declaration.pipe is Pipe.MEMORY
    return Queue(declaration.queue, memory, declaration.returns_in_order(i.arch))


def _orders_memory_only(i: Instruction) -> bool:
    """Fences and memory instructions do; behind the wait for others, such as USETMAXREG, everything stays."""
    return i.declaration is not None and (i.declaration.fence or i.declaration.pipe is Pipe.MEMORY)


def _is_blocking_barrier(i: Instruction) -> bool:
    """Behind BAR.SYNC, memory instructions in front of it have read their sources.

    Seen on sm_75 only, where ptxas relies on it; so only there is it believed.
    """
    return i.arch < 80 and i.opcode == "BAR" and not i.is_conditional and "SYNC" in i.modifiers
