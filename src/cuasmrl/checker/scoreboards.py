"""Variable latencies: an abstract machine with six scoreboards finds every dependence left unprotected.

An instruction with write barrier k raises scoreboard k until its result is written, with read barrier k
until its sources are read; a wait for k holds until k is zero. For each operation still under way the
machine knows which scoreboards vouch for it: its own, and those raised later in the same in-order queue.
It follows all paths at once; where two meet, an operation is under way if it is on either, and a
scoreboard vouches for it only if it does on both.
"""

from collections import defaultdict
from collections.abc import Mapping
from typing import NamedTuple

from cuasmrl.binary.sass import GUARD, Hazard, Instruction, Order, Pipe
from cuasmrl.checker.memory import is_strong
from cuasmrl.checker.program import Arrangement, Edge, Program, boards_waited


class Operation(NamedTuple):
    instruction: int
    written: bool
    """Its result is still to be written; else its sources are still to be read."""
    orders: bool = False
    """It touches no register: whoever waits for it wants what comes next in order."""


class Status(NamedTuple):
    guards: dict[int, int]
    """Scoreboards that vouch for it: {scoreboard: fewest times it was raised again since}."""
    registers: frozenset[int]
    """Those that nobody has overwritten yet."""


State = dict[Operation, Status]


class Findings(NamedTuple):
    """What the machine saw over all paths."""

    unprotected: set[Edge]
    """Dependences on a variable-latency instruction that no scoreboard and no queue keeps, on some path."""
    settled: dict[int, set[Operation]]
    """By synchronising or pinned instruction: operations that its waits end on some path."""
    under_way: dict[int, set[Operation]]
    """The same: operations that are under way behind its waits on some path."""
    unordered: dict[int, set[Operation]]
    """By instruction that they order: operations that order memory, or more, and are under way there."""


def run(program: Program, arrangement: Arrangement) -> Findings:
    machine = _Machine(program, arrangement)
    entries: list[State] = [{} for _ in program.blocks]
    work = list(range(len(program.blocks)))[::-1]
    while work:
        number = work.pop()
        state = dict(entries[number])
        block = program.blocks[number]
        for i in arrangement.order[block.start : block.end]:
            machine.step(state, i)
        for following in block.successors:
            joined = _join(entries[following], state)
            if joined != entries[following]:
                entries[following] = joined
                if following not in work:
                    work.append(following)
    return Findings(machine.unprotected, machine.settled, machine.under_way, machine.unordered)


def _join(first: Mapping[Operation, Status], second: Mapping[Operation, Status]) -> State:
    joined = dict(first)
    for operation, status in second.items():
        other = joined.get(operation)
        if other is None:
            joined[operation] = status
        elif other != status:
            guards = {
                k: min(raised, other.guards[k]) for k, raised in status.guards.items() if k in other.guards
            }
            joined[operation] = Status(guards, status.registers | other.registers)
    return joined


class _Machine:
    def __init__(self, program: Program, arrangement: Arrangement):
        self.program, self.arrangement = program, arrangement
        self.unprotected: set[Edge] = set()
        self.settled: dict[int, set[Operation]] = defaultdict(set)
        self.under_way: dict[int, set[Operation]] = defaultdict(set)
        self.unordered: dict[int, set[Operation]] = defaultdict(set)

    def step(self, state: State, i: int) -> None:
        is_watched = self.program.instructions[i].order in (Order.SYNC, Order.PINNED)
        before = set(state) if is_watched else set()
        for board, count in boards_waited(self.program, self.arrangement, i):
            for operation in [o for o, status in state.items() if status.guards.get(board, -1) >= count]:
                del state[operation]
        if _is_blocking_barrier(self.program.instructions[i]):
            for operation in [o for o in state if not o.written]:
                if _is_memory(self.program.instructions[operation.instruction]):
                    del state[operation]
        if is_watched:
            self.settled[i] |= before - state.keys()
            self.under_way[i] |= state.keys()
        if state:
            self._meet(state, i)
            self._note_unordered(state, i)
        self._raise(state, i)
        self._begin(state, i)

    def _meet(self, state: State, i: int) -> None:
        uses, defs = self.program.uses[i], self.program.defs[i]
        for operation, status in list(state.items()):
            for r in status.registers.intersection(uses) if operation.written else ():
                self.unprotected.add(Edge(Hazard.RAW, operation.instruction, i, r))
            touched = status.registers.intersection(defs)
            if not touched:
                continue
            if not self._in_order(operation, i):
                hazard = Hazard.WAW if operation.written else Hazard.WAR
                self.unprotected.update(Edge(hazard, operation.instruction, i, r) for r in touched)
            if self.program.overwrites(i):
                left = status.registers - touched
                if left:
                    state[operation] = Status(status.guards, left)
                else:
                    del state[operation]

    def _note_unordered(self, state: State, i: int) -> None:
        """Some waits are there for more than registers: for memory behind a fence, for more registers."""
        is_free = self.program.instructions[i].order is Order.FREE
        for operation in state:
            starter = self.program.instructions[operation.instruction]
            if operation.orders:
                concerns = not is_free or not _orders_memory_only(starter)
            else:
                concerns = not is_free and operation.written and is_strong(starter)
            if concerns:
                self.unordered[i].add(operation)

    def _in_order(self, operation: Operation, i: int) -> bool:
        """Does the hardware keep the two apart by itself?"""
        first, second = self.program.instructions[operation.instruction], self.program.instructions[i]
        if not second.is_variable:
            return False
        return _returns_in_order(first, second) if operation.written else _reads_in_order(first, second)

    def _raise(self, state: State, i: int) -> None:
        control, instruction = self.arrangement.controls[i], self.program.instructions[i]
        for raised in control.sets:
            for operation, status in state.items():
                if raised in status.guards:
                    state[operation] = Status(
                        {**status.guards, raised: status.guards[raised] + 1}, status.registers
                    )
        for board, for_results in ((control.write_barrier, True), (control.read_barrier, False)):
            if board is None:
                continue
            for operation, status in state.items():
                if board not in status.guards and self._vouches(instruction, for_results, operation):
                    state[operation] = Status({**status.guards, board: 0}, status.registers)

    def _vouches(self, later: Instruction, for_results: bool, operation: Operation) -> bool:
        """Is the operation over when this later result has been written, or these sources read?"""
        earlier = self.program.instructions[operation.instruction]
        if operation.orders:
            return False
        if operation.written:
            return for_results and _returns_in_order(earlier, later) and self._surely_follows(earlier, later)
        return _reads_in_order(earlier, later)

    def _surely_follows(self, earlier: Instruction, later: Instruction) -> bool:
        """Does the later one enter the queue whenever the earlier one did?

        What is skipped vouches for no result: ptxas never relies on that. For the reading of sources it does.
        """
        if not later.is_conditional:
            return True
        if earlier.guard != later.guard or earlier.index > later.index:
            return False
        between = range(earlier.index, later.index)
        guards = {access.register for access in later.uses if access.role == GUARD}
        same_block = self.program.block_of[earlier.index] == self.program.block_of[later.index]
        return same_block and not any(guards.intersection(self.program.defs[i]) for i in between)

    def _begin(self, state: State, i: int) -> None:
        instruction, control = self.program.instructions[i], self.arrangement.controls[i]
        if not instruction.is_variable and not control.sets:
            return
        writing = {} if control.write_barrier is None else {control.write_barrier: 0}
        reading = writing if control.read_barrier is None else {**writing, control.read_barrier: 0}
        for written, registers, guards, own in (
            (True, self.program.defs[i], writing, control.write_barrier),
            (False, [r for r in self.program.uses[i] if self.program.reads_late(i, r)], reading,
             control.read_barrier),
        ):  # fmt: skip
            if registers:
                state[Operation(i, written)] = Status(guards, frozenset(registers))
            elif own is not None:
                state[Operation(i, written, True)] = Status({own: 0}, frozenset())


def _orders_memory_only(i: Instruction) -> bool:
    """Fences and memory instructions do; behind the wait for others, such as USETMAXREG, everything stays."""
    return i.declaration is not None and (i.declaration.fence or i.declaration.pipe is Pipe.MEMORY)


def _same_queue(first: Instruction, second: Instruction) -> bool:
    if first.declaration is None or second.declaration is None:
        return False
    return bool(first.declaration.queue) and first.declaration.queue == second.declaration.queue


def _returns_in_order(first: Instruction, second: Instruction) -> bool:
    """Is the first result written before the second? So it is in some queues only."""
    in_order = first.declaration is not None and first.declaration.returns_in_order(first.arch)
    return in_order and _same_queue(first, second)


def _reads_in_order(first: Instruction, second: Instruction) -> bool:
    """One queue reads its sources in order, and so do all memory instructions."""
    return _same_queue(first, second) or (_is_memory(first) and _is_memory(second))


def _is_blocking_barrier(i: Instruction) -> bool:
    """Behind BAR.SYNC, memory instructions in front of it have read their sources.

    Seen on sm_75 only, where ptxas relies on it; so only there is it believed.
    """
    return i.arch < 80 and i.opcode == "BAR" and not i.is_conditional and "SYNC" in i.modifiers


def _is_memory(i: Instruction) -> bool:
    return i.declaration is not None and i.declaration.pipe is Pipe.MEMORY
