"""What the scoreboard machine asks about each instruction, and the operations that instructions begin.

Every operation that can ever be under way has a place, in the order of the code. A set of operations is an
integer with a bit at the place of each.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cache
from typing import NamedTuple

import numpy as np

from cuasmrl.binary.sass import GUARD, Instruction, Order, Pipe
from cuasmrl.checker.memory import is_strong, may_overwrite_tensors
from cuasmrl.checker.program import Program

BOARDS = 6
_NONE = -1
_FEW = 8
"""Up to so many places it is quicker to take them out of a set one by one."""


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
    """Results are still to be written; else sources are still to be read."""
    orders: bool
    """They touch no register: whoever waits for one wants what comes next in order."""
    queue: Queue
    strong: bool
    settles: bool
    """Loads from tensor memory, which nobody overwrites before they are over."""
    memory_only: bool

    @property
    def is_ordering(self) -> bool:
        """Does it order memory, tensor memory or more? Fences, strong accesses and atomics do."""
        return self.orders or (self.written and (self.strong or self.settles))

    @property
    def is_barring(self) -> bool:
        """Does it order everything?"""
        return self.orders and not self.memory_only

    def is_over_before(self, later: Queue, result: bool) -> bool:
        """Is it over when an instruction behind it has written its result, or else has read its sources?"""
        if self.orders:
            return False
        if self.written:
            return result and self.queue.returns_before(later)
        return self.queue.reads_before(later)


class Tables:
    """What the machine asks about each instruction of a program, the same for every candidate."""

    def __init__(self, program: Program):
        self.program = program
        code = program.instructions
        self.queue = [_queue(i) for i in code]
        self.variable = [i.is_variable for i in code]
        self.free = [i.order is Order.FREE for i in code]
        self.watched = [i.order.is_strict for i in code]
        self.overwriting = [may_overwrite_tensors(i) for i in code]
        self.blocking = [_is_blocking_barrier(i) for i in code]
        self.late = [tuple(r for r in program.uses[i.index] if program.reads_late(i.index, r)) for i in code]
        self.conditional = [i.is_conditional for i in code]
        self.most = [0] * BOARDS
        """Per scoreboard: the highest count that a DEPBAR lets it keep. Beyond that, counts tell nothing."""
        for i in code:
            if i.depbar is not None and i.depbar[0] < BOARDS:
                self.most[i.depbar[0]] = max(self.most[i.depbar[0]], i.depbar[1])
        self.kinds: list[Kind] = []
        self.kind_of: list[int] = []
        """Per place: the number of its kind."""
        self.instruction_of: list[int] = []
        self.result_place, self.source_place = [_NONE] * len(code), [_NONE] * len(code)
        self._find_places()
        self._first_place = np.searchsorted(self.instruction_of, [block.start for block in program.blocks])
        self.companions = {True: _together(program.defs), False: _together(self.late)}
        """By whether it is written, then by register: all that some instruction touches along with it."""
        self.passed_by = cache(self._passed_by)
        self.kinds_over = cache(self._kinds_over)

    def _find_places(self) -> None:
        """No candidate has others: what has no barrier and no variable latency is not given one."""
        numbers: dict[Kind, int] = {}
        for i in self.program.instructions:
            control = i.control
            write, read = control.write_barrier is not None, control.read_barrier is not None
            if not (i.is_variable or write or read):
                continue
            for written, places, registers, announced in (
                (True, self.result_place, self.program.defs[i.index], write),
                (False, self.source_place, self.late[i.index], read),
            ):
                if registers or announced:
                    queue = self.queue[i.index]
                    kind = Kind(
                        written, not registers, queue, is_strong(i), _settles(i), _orders_memory_only(i)
                    )
                    places[i.index] = len(self.instruction_of)
                    self.instruction_of.append(i.index)
                    self.kind_of.append(numbers.setdefault(kind, len(numbers)))
        self.kinds = list(numbers)

    def of_block(self, block: int) -> int:
        """Operations that begin in a block."""
        first = int(self._first_place[block])
        is_last = block + 1 == len(self._first_place)
        end = len(self.instruction_of) if is_last else int(self._first_place[block + 1])
        return ((1 << (end - first)) - 1) << first

    def instructions(self, operations: int) -> Iterator[int]:
        return (self.instruction_of[place] for place in places_of(operations))

    def _passed_by(self, queue: Queue, written: bool) -> int:
        """Operations that a later one of a queue does not overtake: the hardware may keep them apart."""
        kinds = [
            number
            for number, kind in enumerate(self.kinds)
            if kind.written is written
            and (kind.queue.returns_before(queue) if written else kind.queue.reads_before(queue))
        ]
        return as_bits(np.isin(self.kind_of, kinds))

    def _kinds_over(self, queue: Queue, result: bool) -> list[int]:
        """Kinds of operations that are over when a later one of a queue has written its result, or read."""
        return [number for number, kind in enumerate(self.kinds) if kind.is_over_before(queue, result)]

    def surely_follows(self, earlier: int, later: int) -> bool:
        """Does the later one, under a condition, enter the queue whenever the earlier one of its block did?

        What is skipped vouches for no result: ptxas never relies on that. For the reading of sources it does.
        """
        code = self.program.instructions
        if code[earlier].guard != code[later].guard or earlier > later:
            return False
        guards = {access.register for access in code[later].uses if access.role == GUARD}
        found = [self.program.definitions.get(r, []) for r in guards]
        return not any(bisect_left(one, earlier) < bisect_left(one, later) for one in found)


def places_of(operations: int) -> list[int]:
    if operations.bit_count() > _FEW:
        packed = operations.to_bytes((operations.bit_length() + 7) // 8, "little")
        bits = np.unpackbits(np.frombuffer(packed, dtype=np.uint8), bitorder="little")
        found: list[int] = np.flatnonzero(bits).tolist()
        return found
    found = []
    while operations:
        lowest = operations & -operations
        found.append(lowest.bit_length() - 1)
        operations ^= lowest
    return found


def as_bits(members: np.typing.NDArray[np.bool_]) -> int:
    """The set of those places that are members."""
    return int.from_bytes(np.packbits(members, bitorder="little").tobytes(), "little")


def _together(registers_of: Iterable[tuple[int, ...]]) -> dict[int, set[int]]:
    found: dict[int, set[int]] = defaultdict(set)
    for registers in set(registers_of):
        for r in registers:
            found[r].update(registers)
    return found


def _queue(i: Instruction) -> Queue:
    declaration = i.declaration
    if declaration is None:
        return Queue("", False, False)
    memory = declaration.pipe is Pipe.MEMORY
    return Queue(declaration.queue, memory, declaration.returns_in_order(i.arch))


def _settles(i: Instruction) -> bool:
    return i.declaration is not None and i.declaration.settles


def _orders_memory_only(i: Instruction) -> bool:
    """Behind the wait for others, such as USETMAXREG, everything stays. Those never move.

    Who tells an mbarrier may: nothing but memory hangs on it.
    """
    if i.declaration is None:
        return False
    return i.declaration.fence or i.declaration.pipe is Pipe.MEMORY or i.order is not Order.PINNED


def _is_blocking_barrier(i: Instruction) -> bool:
    """Behind BAR.SYNC, memory instructions in front of it have read their sources.

    Seen on sm_75 only, where ptxas relies on it; so only there is it believed.
    """
    return i.arch < 80 and i.opcode == "BAR" and not i.is_conditional and "SYNC" in i.modifiers
