"""What instructions leave outstanding, their results and source reads, and which scoreboards announce it.

The machine behind it (`machine.py`): six counters; an instruction raises its write barrier until its result
is written and its read barrier until its sources are read; waiting means waiting for zero. Instructions of
some queues finish in order, so a barrier of a later one also announces the earlier ones. The memory
pipe reads its source registers in order throughout, whatever the queue; predicates and uniform registers
are read at issue, the latter except by engines that run beside the warp.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from cuasmrl.binary.sass import BARRIERS, Control, File, Instruction, Order, Pipe, file_of
from cuasmrl.schedule.blocks import Block
from cuasmrl.schedule.memory import is_strong, settles, stays_behind_settling


@dataclass(frozen=True, slots=True)
class Outstanding:
    """An unfinished operation: the result of an instruction, or the reading of its sources."""

    index: int
    is_read: bool
    orders: bool = False
    """No register hangs on it: whoever waits for it wants what comes behind in order."""


def registers_of(instruction: Instruction, outstanding: Outstanding) -> frozenset[int]:
    if outstanding.orders:
        return frozenset()
    if outstanding.is_read:
        return frozenset(a.register for a in instruction.uses if _may_wait_to_read(instruction, a.register))
    return frozenset(a.register for a in instruction.defs)


def is_read_late(instruction: Instruction, register: int) -> bool:
    """May the instruction still have to read this source when the next ones issue?"""
    return instruction.is_variable and _may_wait_to_read(instruction, register)


def _may_wait_to_read(instruction: Instruction, register: int) -> bool:
    file, opcode = file_of(register), instruction.declaration
    beside = opcode is None or opcode.pipe is Pipe.ASYNC
    return file is File.R or (file is File.UR and beside)


def reads_in_order(first: Instruction, second: Instruction) -> bool:
    """Does the first read its sources before the second touches any register?"""
    one, other = first.declaration, second.declaration
    if one is None or other is None:
        return False
    return one.pipe is other.pipe is Pipe.MEMORY or same_queue(first, second)


def same_queue(first: Instruction, second: Instruction) -> bool:
    one, other = first.declaration, second.declaration
    return one is not None and other is not None and bool(one.queue) and one.queue == other.queue


def returns_in_order(first: Instruction, second: Instruction) -> bool:
    """Is the first result written before the second? Compilers count on it in some queues only."""
    in_order = all(i.declaration and i.declaration.returns_in_order(i.arch) for i in (first, second))
    return in_order and same_queue(first, second)


def raised_boards(control: Control) -> list[int]:
    return [k for k in (control.write_barrier, control.read_barrier) if k is not None]


def begun(instruction: Instruction) -> list[Outstanding]:
    """What an instruction starts and others may have to wait for: its result, the reading of sources.

    One of fixed latency does so as well if it raises a scoreboard: HMMA in some sm_89 code of nvcc 11.8.
    """
    is_announced = instruction.is_variable or bool(instruction.control.sets)
    found = []
    for is_read in (False, True):
        key = Outstanding(instruction.index, is_read)
        if is_announced and registers_of(instruction, key):
            found.append(key)
        elif own_board(instruction, is_read) is not None:
            found.append(replace(key, orders=True))
    return found


def own_board(instruction: Instruction, is_read: bool) -> int | None:
    return instruction.control.read_barrier if is_read else instruction.control.write_barrier


def is_ordered_by(instruction: Instruction, key: Outstanding, starter: Instruction) -> bool:
    """Must an instruction that stands behind the end of an operation stay there, for more than registers?

    Behind a fence or a strong access that is memory; behind others without registers it is everything.
    """
    is_free = instruction.order is Order.FREE
    if key.orders:
        return not is_free or orders_everything(starter)
    if not key.is_read and settles(starter):
        return stays_behind_settling(instruction)
    return not is_free and not key.is_read and is_strong(starter)


def orders_everything(starter: Instruction) -> bool:
    """Of what touches no register: fences, and what may move, order memory only; USETMAXREG orders all."""
    opcode = starter.declaration
    if opcode is None:
        return True
    return not opcode.fence and opcode.pipe is not Pipe.MEMORY and starter.order is Order.PINNED


def own_boards(instruction: Instruction, is_read: bool) -> set[int]:
    """Barriers of an instruction that announce its result, or that its sources are read."""
    control = instruction.control
    boards = {control.write_barrier, control.read_barrier} if is_read else {control.write_barrier}
    return {k for k in boards if k is not None}


def awaited_boards(instruction: Instruction, wait_mask: int) -> set[int]:
    boards = {k for k in range(BARRIERS) if wait_mask >> k & 1}
    if instruction.depbar is not None:
        boards |= {instruction.depbar[0], *instruction.depbar[2]}
    return boards


def awaited_setters(blocks: Sequence[Block], code: Sequence[Instruction]) -> dict[int, tuple[int, ...]]:
    """For each waiting instruction, those of its block that raised what it waits for since the last wait."""
    found = {}
    for block in blocks:
        setters: dict[int, list[int]] = {k: [] for k in range(BARRIERS)}
        for instruction in code[block.start : block.end]:
            boards = awaited_boards(instruction, instruction.control.wait_mask)
            if boards:
                found[instruction.index] = tuple(s for k in boards for s in setters[k])
            for k in boards:
                if instruction.depbar is None or instruction.depbar[0] != k or not instruction.depbar[1]:
                    setters[k].clear()
            for k in raised_boards(instruction.control):
                setters[k].append(instruction.index)
    return found


def in_order(earlier: Instruction, later: Instruction, is_read: bool, reads_result: bool) -> bool:
    """Does the queue itself keep these two apart? A read of a result is never covered.

    Nor is an overwrite of fixed latency, which comes when its time is up.
    """
    if not later.is_variable:
        return False
    if is_read:
        return reads_in_order(earlier, later)
    return not reads_result and returns_in_order(earlier, later)
