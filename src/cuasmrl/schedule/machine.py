"""The six scoreboards along all paths: which operations are outstanding where, and what announces them.

Operations of a kernel are numbered in the order of the code, and sets of them are the bits of integers. So
one step costs the same however many are under way, and paths meet by a bitwise "or".
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cuasmrl.binary.sass import BARRIERS, GUARD, Control, Instruction, Order, Pipe
from cuasmrl.schedule.blocks import Block
from cuasmrl.schedule.flow import Flow
from cuasmrl.schedule.memory import is_strong, settles
from cuasmrl.schedule.scoreboards import (
    Outstanding,
    awaited_boards,
    begun,
    orders_everything,
    own_board,
    own_boards,
    raised_boards,
    registers_of,
)


def bits(numbers: int) -> Iterator[int]:
    """The members of a set, smallest first."""
    while numbers:
        lowest = numbers & -numbers
        yield lowest.bit_length() - 1
        numbers ^= lowest


@dataclass(frozen=True, slots=True)
class State:
    """Outstanding operations. What is *not* known is kept, so that paths meet by a bitwise "or"."""

    out: int
    """Those under way on some path."""
    loose: tuple[int, ...]
    """Of these, by scoreboard, those that it does not announce on every path."""
    fresh: tuple[tuple[int, ...], ...]
    """By scoreboard and number n, from 1: those since which it may have been raised less than n times again
    (DEPBAR counts), or that it does not announce."""

    def joined(self, other: State) -> State:
        return State(
            self.out | other.out,
            tuple(a | b for a, b in zip(self.loose, other.loose, strict=True)),
            tuple(
                tuple(a | b for a, b in zip(mine, others, strict=True))
                for mine, others in zip(self.fresh, other.fresh, strict=True)
            ),
        )


class Ledger:
    """All operations of a kernel, and the sets of them that rules speak of."""

    def __init__(self, code: Sequence[Instruction], is_lenient: bool = False) -> None:
        self.code = code
        self.is_lenient = is_lenient
        """Does a result count as behind an earlier one even if its instruction may not be executed, and where
        compilers seldom count on that? So it does for an alarm, never for a proof."""
        self.keys: list[Outstanding] = []
        self.starts: list[int] = []
        """Instruction → the first of its operations; one more at the end."""
        self.registers: list[frozenset[int]] = []
        self.results: dict[int, int] = defaultdict(int)
        """Register → results that are written to it."""
        self.reads: dict[int, int] = defaultdict(int)
        """Register → readings of it that may come late."""
        self.own: list[int] = [0] * BARRIERS
        """Scoreboard → operations whose own instruction raises it for them."""
        self.ordering = 0
        """Those without registers."""
        self.ends_memory = 0
        """Whoever orders memory behind their end (see `is_ordered_by`)."""
        self.ends_tensor = 0
        """Whoever orders what works on tensor memory behind their end."""
        self.ends_all = 0
        """Whoever orders everything behind their end."""
        self._in_class: dict[str, int] = defaultdict(int)
        """Readings by what keeps them in order, and results by the queue that does."""
        self._under_guard: dict[object, int] = defaultdict(int)
        self._ordering_on: dict[frozenset[int], int] = {}
        for instruction in code:
            self.starts.append(len(self.keys))
            for key in begun(instruction):
                self._enter(instruction, key)
        self.starts.append(len(self.keys))
        self.number = {key: n for n, key in enumerate(self.keys)}
        self.counted = _counted(code)
        self._unchanged_since = _unchanged_since(code)

    def _enter(self, instruction: Instruction, key: Outstanding) -> None:
        bit = 1 << len(self.keys)
        registers = registers_of(instruction, key)
        self.keys.append(key)
        self.registers.append(registers)
        for register in registers:
            (self.reads if key.is_read else self.results)[register] |= bit
        for k in own_boards(instruction, key.is_read):
            self.own[k] |= bit
        if key.orders:
            self.ordering |= bit
            if orders_everything(instruction):
                self.ends_all |= bit
            else:
                self.ends_memory |= bit
        elif not key.is_read and is_strong(instruction):
            self.ends_memory |= bit
        elif not key.is_read and settles(instruction):
            self.ends_tensor |= bit
        if key.is_read:
            for name in reading_classes(instruction):
                self._in_class[name] |= bit
        elif not key.orders:
            for name in result_classes(instruction, self.is_lenient):
                self._in_class[name] |= bit
        self._under_guard[instruction.guard] |= bit

    def idle(self) -> State:
        """Nothing is under way."""
        return State(0, (0,) * BARRIERS, tuple((0,) * most for most in self.counted))

    def read_before(self, instruction: Instruction) -> int:
        """Readings that are over when the instruction touches any register (`reads_in_order`)."""
        found = 0
        for name in reading_classes(instruction):
            found |= self._in_class.get(name, 0)
        return found

    def written_before(self, instruction: Instruction) -> int:
        """Results that come back before that of the instruction, if it is executed (`returns_in_order`)."""
        classes = result_classes(instruction, self.is_lenient)
        return sum(self._in_class.get(name, 0) for name in classes)

    def surely_written_before(self, instruction: Instruction) -> int:
        """The same if it may not be executed: skipped, it is not in the queue behind any other."""
        found = self.written_before(instruction)
        if not found or self.is_lenient or not instruction.is_conditional:
            return found
        # Those under the same guard, unless somebody changes it, or leaves, on the way.
        first = self.starts[self._unchanged_since[instruction.index] + 1]
        span = (1 << self.starts[instruction.index + 1]) - (1 << first)
        return found & span & self._under_guard[instruction.guard]

    def ordering_on(self, boards: frozenset[int]) -> int:
        """Operations without registers that these scoreboards announce."""
        if boards not in self._ordering_on:
            found = (n for n in bits(self.ordering) if not self.announced(n).isdisjoint(boards))
            self._ordering_on[boards] = sum(1 << n for n in found)
        return self._ordering_on[boards]

    def announced(self, n: int) -> set[int]:
        """Scoreboards that announce an operation from its start."""
        key = self.keys[n]
        instruction = self.code[key.index]
        if key.orders:
            board = own_board(instruction, key.is_read)
            return set() if board is None else {board}
        return own_boards(instruction, key.is_read)


def result_classes(instruction: Instruction, is_lenient: bool = False) -> list[str]:
    """What keeps its result in order with others, one queue at most."""
    opcode, arch = instruction.declaration, instruction.arch
    if opcode is None:
        return []
    in_order = opcode.may_return_in_order(arch) if is_lenient else opcode.returns_in_order(arch)
    return [f"result {opcode.queue}"] if in_order else []


def reading_classes(instruction: Instruction) -> list[str]:
    """What keeps the reading of its sources in order with others."""
    opcode = instruction.declaration
    if opcode is None:
        return []
    classes = ["pipe"] if opcode.pipe is Pipe.MEMORY else []
    return [*classes, f"queue {opcode.queue}"] if opcode.queue else classes


def _counted(code: Sequence[Instruction]) -> list[int]:
    """Scoreboard → the largest number that some DEPBAR lets it keep."""
    most = [0] * BARRIERS
    for instruction in code:
        if instruction.depbar is not None:
            board, count, _ = instruction.depbar
            most[board] = max(most[board], count)
    return most


def _unchanged_since(code: Sequence[Instruction]) -> list[int]:
    """Instruction → the last one before it that writes its guard or jumps; -1 for none."""
    written: dict[int, int] = {}
    jump, found = -1, []
    for i in code:
        guards = [access.register for access in i.uses if access.role == GUARD] if i.is_conditional else []
        found.append(max([jump, *(written.get(register, -1) for register in guards)]))
        for access in i.defs:
            written[access.register] = i.index
        if i.declaration is not None and i.declaration.jumps:
            jump = i.index
    return found


class Machine:
    """The scoreboards as a block goes by: for each instruction `finished`, `end`, then `issue`."""

    def __init__(self, ledger: Ledger, state: State) -> None:
        self.ledger = ledger
        self.out = state.out
        self._loose = list(state.loose)
        self._fresh = [
            list(levels) or [0] * most for levels, most in zip(state.fresh, ledger.counted, strict=True)
        ]

    @property
    def state(self) -> State:
        return State(
            self.out,
            tuple(loose & self.out for loose in self._loose),
            tuple(tuple(level & self.out for level in levels) for levels in self._fresh),
        )

    def announced_by(self, board: int) -> int:
        """Outstanding operations that a scoreboard announces on every path."""
        return self.out & ~self._loose[board]

    def finished(self, instruction: Instruction, control: Control) -> int:
        """What is guaranteed to be over when an instruction has issued, by its waits or by its nature."""
        left = self.out
        for k in control.waits:
            left &= self._loose[k]
        depbar = instruction.depbar
        if depbar is not None:
            board, count, others = depbar
            left &= self._fresh[board][count - 1] if count else self._loose[board]
            for k in others:
                left &= self._loose[k]
        # Only on sm_75 does ptxas count on it, so only there is it believed.
        if (
            instruction.arch < 80
            and instruction.opcode == "BAR"
            and "SYNC" in instruction.modifiers
            and not instruction.is_conditional
        ):
            left &= ~self.ledger.read_before(instruction)
        return self.out ^ left

    def end(self, operations: int) -> None:
        self.out &= ~operations

    def issue(self, instruction: Instruction, control: Control) -> None:
        """Update the state by one instruction whose waits are already applied."""
        ledger, loose = self.ledger, self._loose
        raised = raised_boards(control)
        for k in raised:
            levels = self._fresh[k]
            for n in range(len(levels) - 1, -1, -1):
                levels[n] = levels[n - 1] if n else loose[k]
        if raised:
            reads = ledger.read_before(instruction) & ~ledger.ordering
            for k in raised:
                self._announce(k, reads)
            if control.write_barrier is not None:
                self._announce(control.write_barrier, ledger.surely_written_before(instruction))
        for n in range(ledger.starts[instruction.index], ledger.starts[instruction.index + 1]):
            bit, boards = 1 << n, ledger.announced(n)
            self.out |= bit
            for k in range(BARRIERS):
                loose[k] = loose[k] & ~bit if k in boards else loose[k] | bit
                for level in range(len(self._fresh[k])):
                    self._fresh[k][level] |= bit

    def _announce(self, board: int, operations: int) -> None:
        """From now on the scoreboard announces them too; those that it announced before are counted on."""
        self._loose[board] &= ~operations

    def unprotected(self, instruction: Instruction) -> int:
        """Outstanding operations that an instruction interferes with, and that no queue keeps in order."""
        if not self.out:
            return 0
        ledger, read, read_over, overwritten = self.ledger, 0, 0, 0
        for access in instruction.uses:
            read |= ledger.results.get(access.register, 0)
        for access in instruction.defs:
            overwritten |= ledger.results.get(access.register, 0)
            read_over |= ledger.reads.get(access.register, 0)
        # A read of a result is never covered.
        found = self.out & (read | overwritten | read_over)
        if not found:
            return 0
        if not instruction.is_variable:
            # It overwrites when its time is up, whatever else is in its queue.
            return found
        overwritten &= ~ledger.written_before(instruction)
        return found & (read | overwritten | (read_over & ~ledger.read_before(instruction)))


@dataclass(frozen=True)
class Analysis:
    """The scoreboards over all paths of the original."""

    ledger: Ledger
    entries: Sequence[State]
    """Outstanding operations at the start of each block."""
    covered: int
    """Operations some wait relies on another instruction's barrier for."""
    covered_by: tuple[int, ...]
    """Of these, those that it relies on a scoreboard for."""
    unexplained_producers: frozenset[int]
    unexplained_consumers: frozenset[int]
    """Pairs that nothing in this machine keeps apart: they keep their distance."""


def analyse(blocks: Sequence[Block], code: Sequence[Instruction], flow: Flow | None = None) -> Analysis:
    ledger = Ledger(code)
    entries = at_entry(blocks, ledger, flow)
    covered, covered_by, exposed, consumers = 0, [0] * BARRIERS, 0, set()
    for block, entry in zip(blocks, entries, strict=True):
        machine = Machine(ledger, entry)
        for instruction in code[block.start : block.end]:
            over = machine.finished(instruction, instruction.control)
            if over:
                boards = awaited_boards(instruction, instruction.control.wait_mask)
                foreign = over
                for k in boards:
                    foreign &= ~(machine.announced_by(k) & ledger.own[k])
                covered |= foreign
                for k in boards:
                    covered_by[k] |= foreign & machine.announced_by(k)
                machine.end(over)
            found = machine.unprotected(instruction)
            if found:
                exposed |= found
                consumers.add(instruction.index)
            machine.issue(instruction, instruction.control)
    producers = frozenset(ledger.keys[n].index for n in bits(exposed))
    return Analysis(ledger, entries, covered, tuple(covered_by), producers, frozenset(consumers))


def at_entry(blocks: Sequence[Block], ledger: Ledger, flow: Flow | None = None) -> list[State]:
    """Outstanding operations at the start of each block, over all paths."""
    # Code only reached by a call or an unresolved jump is analysed too, from an empty machine.
    flow = flow or Flow(blocks)
    code = ledger.code
    entries = [ledger.idle()] * len(flow)
    # Others neither end an operation nor begin one.
    active = [[i for i in code[block.start : block.end] if _is_active(i, ledger)] for block in blocks]

    def leave(node: int) -> State:
        if node >= len(blocks) or not active[node]:
            return entries[node]
        machine = Machine(ledger, entries[node])
        for instruction in active[node]:
            over = machine.finished(instruction, instruction.control)
            if over:
                machine.end(over)
            machine.issue(instruction, instruction.control)
        return machine.state

    def enter(node: int, state: State) -> bool:
        joined = entries[node].joined(state)
        if joined == entries[node]:
            return False
        entries[node] = state if joined == state else joined
        return True

    flow.forwards(leave, enter)
    return entries[: len(blocks)]


def _is_active(instruction: Instruction, ledger: Ledger) -> bool:
    control = instruction.control
    begins = ledger.starts[instruction.index] < ledger.starts[instruction.index + 1]
    return bool(begins or control.wait_mask or control.sets) or instruction.order is Order.SYNC
