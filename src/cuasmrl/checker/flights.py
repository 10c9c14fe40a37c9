"""Operations under way in one block, found by register, by scoreboard and by queue.

An instruction touches only what concerns it, so a block costs as much as its instructions and the
operations that begin and end in it, however many are under way.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Mapping
from typing import NamedTuple

from cuasmrl.binary.sass import GUARD, Hazard, Instruction, Order, Pipe
from cuasmrl.checker.dependences import Edge
from cuasmrl.checker.flow import Block
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


State = dict[Operation, Status]


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

    def surely_follows(self, earlier: int, later: int) -> bool:
        """Does the later one enter the queue whenever the earlier one did?

        What is skipped vouches for no result: ptxas never relies on that. For the reading of sources it does.
        """
        program = self.program
        if not self.conditional[later]:
            return True
        if program.instructions[earlier].guard != program.instructions[later].guard or earlier > later:
            return False
        if program.block_of[earlier] != program.block_of[later]:
            return False
        guards = {access.register for access in program.instructions[later].uses if access.role == GUARD}
        found = [program.definitions.get(r, []) for r in guards]
        return not any(bisect_left(one, earlier) < bisect_left(one, later) for one in found)


class Flight:
    """Operations that began alike and have met the same since."""

    __slots__ = ("alive", "guards", "operations", "queue", "registers", "status")

    def __init__(self, operations: list[Operation], queue: Queue, status: Status):
        self.operations, self.queue, self.status = operations, queue, status
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
        block: Block,
        entry: State,
        asked: Mapping[int, set[Operation]],
    ):
        self._tables, self._arrangement, self._program = tables, arrangement, tables.program
        self.unprotected: list[Edge] = []
        self.settled: dict[int, set[Operation]] = {}
        self.under_way: dict[int, set[Operation]] = {}
        self.unordered: dict[int, set[Operation]] = {}
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
        self._asked = {i: asked[i] for i in range(block.start, block.end) if i in asked} if asked else {}
        self._where: dict[Operation, Flight] = {}
        """Flights of operations that began in this block, or that are asked for."""
        self._wanted = {operation for operations in self._asked.values() for operation in operations}
        self._enter(block, entry)

    def _enter(self, block: Block, entry: State) -> None:
        alike: dict[tuple[Status, bool, bool, Queue, bool, bool], list[Operation]] = {}
        single: list[tuple[Operation, Status]] = []
        tables = self._tables
        for operation, status in entry.items():
            i, written, orders = operation
            if block.start <= i < block.end:
                single.append((operation, status))
            else:
                key = (status, written, orders, tables.queue[i], tables.strong[i], tables.memory_only[i])
                alike.setdefault(key, []).append(operation)
        found = [(operations, key[0]) for key, operations in alike.items()]
        found += [([operation], status) for operation, status in single]
        for operations, status in found:
            flight = Flight(operations, tables.queue[operations[0].instruction], status)
            for board, count in enumerate(status.guards):
                if count >= 0:
                    flight.guards[board] = -count
            self._take_up(flight)
            if block.start <= operations[0].instruction < block.end:
                self._where[operations[0]] = flight
        for board, flights in enumerate(self._guarded):
            flights.sort(key=lambda flight: flight.guards[board])

    def _take_up(self, flight: Flight) -> None:
        first = flight.operations[0]
        self._flights.append(flight)
        if self._wanted:
            for operation in self._wanted.intersection(flight.operations):
                self._where[operation] = flight
        touching = self._results if first.written else self._sources
        for r in flight.registers:
            touching[r].append(flight)
        if flight.queue.memory and not first.written:
            self._memory_sources.append(flight)
        if first.orders or (first.written and self._tables.strong[first.instruction]):
            self._ordering.append(flight)
            if first.orders and not self._tables.memory_only[first.instruction]:
                self._barring.append(flight)
        for board in flight.guards:
            self._guarded[board].append(flight)
        if not first.orders and (flight.queue.returns_in_order or not first.written):
            key = (first.written, flight.queue)
            if key not in self._lacking:
                self._lacking[key] = [[] for _ in range(_BOARDS)]
            for board, lacking in enumerate(self._lacking[key]):
                if board not in flight.guards:
                    lacking.append(flight)

    def step(self, i: int) -> None:
        tables = self._tables
        waits = self._arrangement.waits[i]
        if waits or tables.watched[i]:
            ended = [operation for board, count in waits for operation in self._wait(board, count)]
            if tables.blocking[i]:
                # Behind it, memory instructions have read their sources.
                ended += _end(self._memory_sources)
                self._memory_sources = []
            if tables.watched[i]:
                self.settled[i] = set(ended)
                if i in self._asked:
                    where = self._where
                    self.under_way[i] = {o for o in self._asked[i] if o in where and where[o].alive}
        self._meet(i)
        if self._ordering:
            self._note_unordered(i)
        self._raise(i)
        self._begin(i)

    def _wait(self, board: int, count: int) -> list[Operation]:
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
                    self.unprotected += [Edge(Hazard.RAW, o.instruction, i, r) for o in flight.operations]
        for r in program.defs[i]:
            for touching in (self._results, self._sources):
                if r in touching:
                    touching[r] = alive = [flight for flight in touching[r] if flight.alive]
                    for flight in alive:
                        self._overwrite(flight, i, r)
                    if program.certain[i]:
                        del touching[r]

    def _overwrite(self, flight: Flight, i: int, register: int) -> None:
        written = flight.operations[0].written
        queue = self._tables.queue[i]
        # In one queue the hardware may keep the two apart by itself.
        in_order = flight.queue.returns_before(queue) if written else flight.queue.reads_before(queue)
        if not in_order or not self._tables.variable[i]:
            hazard = Hazard.WAW if written else Hazard.WAR
            self.unprotected += [Edge(hazard, o.instruction, i, register) for o in flight.operations]
        if self._program.certain[i]:
            flight.registers -= {register}
            flight.alive = bool(flight.registers)

    def _note_unordered(self, i: int) -> None:
        """Some waits are there for more than registers: for memory behind a fence, for more registers."""
        flights = self._barring if self._tables.free[i] else self._ordering
        concerned = {operation for flight in flights if flight.alive for operation in flight.operations}
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
                if written and not self._tables.surely_follows(flight.operations[0].instruction, i):
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
        before = self._where.get(operation)
        if before is not None:
            before.alive = False
        guards = tuple(0 if board in boards else -1 for board in range(_BOARDS))
        status = Status(guards, frozenset(registers))
        flight = Flight([operation], self._tables.queue[operation.instruction], status)
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
            status = Status(tuple(guards), flight.registers)
            if status == flight.status:
                status = flight.status
            for operation in flight.operations:
                state[operation] = status
        return state


def _end(flights: list[Flight]) -> list[Operation]:
    """Operations of those that had not ended before."""
    ended: list[Operation] = []
    for flight in flights:
        if flight.alive:
            flight.alive = False
            ended += flight.operations
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
