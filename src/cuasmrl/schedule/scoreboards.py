"""Which results and source reads are still outstanding at a point, and which scoreboards announce them.

The machine behind it: six counters; an instruction raises its write barrier until its result is
written and its read barrier until its sources are read; waiting means waiting for zero. Instructions of
some queues finish in order, so a barrier of a later one also announces the earlier ones. The memory
pipe reads its source registers in order throughout, whatever the queue; predicates and uniform registers
are read at issue, the latter except by engines that run beside the warp.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from cuasmrl.binary.sass import BARRIERS, GUARD, Control, File, Instruction, Order, Pipe, file_of
from cuasmrl.schedule.blocks import Block
from cuasmrl.schedule.memory import is_strong


@dataclass(frozen=True, slots=True)
class Outstanding:
    """An unfinished operation: the result of an instruction, or the reading of its sources."""

    index: int
    is_read: bool
    orders: bool = False
    """No register hangs on it: whoever waits for it wants what comes behind in order."""


Guards = dict[int, int]
"""Scoreboard → how often it was raised again since it began to guard (DEPBAR counts those)."""
State = dict[Outstanding, Guards]
Follows: TypeAlias = Callable[[Instruction, Instruction, Sequence[Instruction]], bool]


def registers_of(instruction: Instruction, outstanding: Outstanding) -> frozenset[int]:
    if outstanding.orders:
        return frozenset()
    if outstanding.is_read:
        return frozenset(a.register for a in instruction.uses if is_read_late(instruction, a.register))
    return frozenset(a.register for a in instruction.defs)


def is_read_late(instruction: Instruction, register: int) -> bool:
    """May the instruction still have to read this source when the next ones issue?"""
    if not instruction.is_variable:
        return False
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
    opcode = first.declaration
    return opcode is not None and opcode.returns_in_order(first.arch) and same_queue(first, second)


def raised_boards(control: Control) -> list[int]:
    return [k for k in (control.write_barrier, control.read_barrier) if k is not None]


def finished(
    state: State, instruction: Instruction, control: Control, code: Sequence[Instruction]
) -> list[Outstanding]:
    """What is guaranteed to be over when an instruction has issued, by its waits or by its nature."""
    done = set(control.waits)
    depbar = instruction.depbar
    if depbar is not None:
        done |= set(depbar[2])
    # Only on sm_75 does ptxas count on it, so only there is it believed.
    drains = (
        instruction.arch < 80
        and instruction.opcode == "BAR"
        and "SYNC" in instruction.modifiers
        and not instruction.is_conditional
    )
    return [
        key for key, guards in state.items()
        if any(k in guards for k in done)
        or (depbar is not None and guards.get(depbar[0], -1) >= depbar[1])
        or (drains and key.is_read and reads_in_order(code[key.index], instruction))
    ]  # fmt: skip


def issue(
    state: State,
    instruction: Instruction,
    control: Control,
    code: Sequence[Instruction],
    follows_surely: Follows | None = None,
) -> list[Outstanding]:
    """Update the state by one instruction whose waits are already applied; answer whom it covers.

    `follows_surely` says whether a result comes back behind an earlier one, whichever guards they have.
    """
    follows_surely = follows_surely or _surely_follows
    for k in raised_boards(control):
        for guards in state.values():
            if k in guards:
                guards[k] += 1
    covered = []
    for key, guards in state.items():
        if key.orders:
            continue
        if key.is_read:
            follows, boards = reads_in_order(code[key.index], instruction), raised_boards(control)
        else:
            follows = follows_surely(code[key.index], instruction, code)
            boards = [] if control.write_barrier is None else [control.write_barrier]
        if follows and boards:
            covered.append(key)
            for k in boards:
                guards.setdefault(k, 0)
    for key in begun(instruction):
        announced = own_boards(instruction, key.is_read)
        if key.orders:
            announced &= {own_board(instruction, key.is_read) or 0}
        state[key] = dict.fromkeys(announced, 0)
    return covered


def begun(instruction: Instruction) -> list[Outstanding]:
    """What an instruction starts and others may have to wait for: its result, the reading of sources."""
    found = []
    for is_read in (False, True):
        key = Outstanding(instruction.index, is_read)
        if instruction.is_variable and registers_of(instruction, key):
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
        opcode = starter.declaration
        return not is_free or opcode is None or not (opcode.fence or opcode.pipe is Pipe.MEMORY)
    return not is_free and not key.is_read and is_strong(starter)


def _surely_follows(earlier: Instruction, later: Instruction, code: Sequence[Instruction]) -> bool:
    """Is the later one in the queue behind the earlier one whenever that is? Skipped, it is not."""
    if not returns_in_order(earlier, later):
        return False
    if not later.is_conditional:
        return True
    if earlier.guard != later.guard or earlier.index > later.index:
        return False
    guards = {access.register for access in later.uses if access.role == GUARD}
    return not any(
        guards & {access.register for access in i.defs} or (i.declaration is not None and i.declaration.jumps)
        for i in code[earlier.index : later.index]
    )


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


@dataclass(frozen=True)
class Machine:
    """The scoreboards over all paths of the original."""

    entries: list[State]
    """Outstanding operations at the start of each block."""
    covered: Mapping[Outstanding, frozenset[int]]
    """Operations some wait relies on another instruction's barrier for, and its scoreboards."""
    unexplained: frozenset[tuple[int, int]]
    """(producer, consumer) that nothing in this machine keeps apart: they keep their distance."""


def analyse(blocks: Sequence[Block], code: Sequence[Instruction]) -> Machine:
    entries = at_entry(blocks, code)
    covered: dict[Outstanding, frozenset[int]] = {}
    unexplained = set()
    for block, entry in zip(blocks, entries, strict=True):
        state = {key: dict(guards) for key, guards in entry.items()}
        for instruction in code[block.start : block.end]:
            waited = awaited_boards(instruction, instruction.control.wait_mask)
            for key in finished(state, instruction, instruction.control, code):
                guards = waited & state[key].keys()
                if not guards & own_boards(code[key.index], key.is_read):
                    covered[key] = covered.get(key, frozenset()) | guards
                del state[key]
            unexplained |= {(key.index, instruction.index) for key in unprotected(state, instruction, code)}
            issue(state, instruction, instruction.control, code)
    return Machine(entries, covered, frozenset(unexplained))


def unprotected(state: State, instruction: Instruction, code: Sequence[Instruction]) -> list[Outstanding]:
    """Outstanding operations that an instruction interferes with, and that no queue keeps in order."""
    reads = {a.register for a in instruction.uses}
    writes = {a.register for a in instruction.defs}
    found = []
    for key in state:
        registers = registers_of(code[key.index], key)
        hit = registers & (writes if key.is_read else writes | reads)
        if hit and not in_order(code[key.index], instruction, key.is_read, bool(registers & reads)):
            found.append(key)
    return found


def in_order(earlier: Instruction, later: Instruction, is_read: bool, reads_result: bool) -> bool:
    """Does the queue itself keep these two apart? A read of a result is never covered."""
    if is_read:
        return reads_in_order(earlier, later)
    return not reads_result and returns_in_order(earlier, later)


def at_entry(
    blocks: Sequence[Block], code: Sequence[Instruction], follows_surely: Follows | None = None
) -> list[State]:
    """Outstanding operations at the start of each block, over all paths."""
    # Code only reached by a call or an unresolved jump is analysed too, from an empty machine.
    entries: list[State] = [{} for _ in blocks]
    work = [block.number for block in blocks]
    while work:
        block = blocks[work.pop()]
        state = {key: dict(guards) for key, guards in entries[block.number].items()}
        for instruction in code[block.start : block.end]:
            for key in finished(state, instruction, instruction.control, code):
                del state[key]
            issue(state, instruction, instruction.control, code, follows_surely)
        work += [successor for successor in block.successors if _merge(entries[successor], state)]
    return entries


def _merge(target: State, incoming: Mapping[Outstanding, Guards]) -> bool:
    """A guard counts only if it holds on every path that leaves the operation outstanding."""
    changed = False
    for key, guards in incoming.items():
        present = target.get(key)
        if present is None:
            target[key] = {k: min(n, 64) for k, n in guards.items()}
            changed = True
            continue
        for k in list(present):
            if k not in guards:
                del present[k]
                changed = True
            elif guards[k] < present[k]:
                present[k] = guards[k]
                changed = True
    return changed
