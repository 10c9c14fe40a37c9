"""A block as compiled: its operations, who needs each to be over, and what other blocks rely on."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TypeAlias

from cuasmrl.binary.sass import Instruction, Order
from cuasmrl.schedule.blocks import Block
from cuasmrl.schedule.dependences import Originals
from cuasmrl.schedule.machine import Machine, bits
from cuasmrl.schedule.memory import stays_behind_settling
from cuasmrl.schedule.scoreboards import Outstanding, in_order, own_boards, raised_boards


@dataclass(frozen=True)
class Operation:
    """A result to be written, or sources to be read."""

    key: Outstanding
    is_earlier: bool
    """It is under way when the block begins."""
    waiters: frozenset[int]
    """Instructions of the block that need it to be over."""
    board: int | None
    """The compiler's scoreboard for it: its own, or of an earlier one any that others rely on as well."""
    is_left: bool
    """It may be under way when the block ends."""


@dataclass(frozen=True)
class Found:
    """What a survey finds."""

    operations: tuple[Operation, ...]
    kept: frozenset[int]
    """Whoever announces, by whatever scoreboard, what is under way at the end: others wait for it."""
    covers: frozenset[tuple[int, int]]
    """(instruction, another one that has to stay behind it to announce it as well)"""


_Name: TypeAlias = tuple[int, bool]
"""An operation by its number, and whether it was under way when the block began: a loop has it twice."""


class Survey:
    """Goes through a block once."""

    def __init__(self, block: Block, originals: Originals) -> None:
        self._block = block
        self._originals = originals
        self._ledger = originals.machine.ledger
        self._entry = originals.machine.entries[block.number]
        # A DEPBAR ends these, which keeps its order with all of memory anyway.
        self._counted = self._ledger.ordering_on(originals.named_boards)
        self._machine = Machine(self._ledger, self._entry)
        self._machine.end(self._counted)
        self._earlier = self._machine.out
        self._begun = 0
        """Operations that began in this block."""
        self._own: dict[tuple[int, bool], list[int]] = defaultdict(list)
        """Register, and whether it is read or written → operations of the block on it, till it is
        overwritten; of earlier ones the numbers tell."""
        self._overwritten: set[int] = set()
        self._waiters: dict[_Name, set[int]] = {}
        self._enders: dict[_Name, int] = {}
        self._orders_memory: list[_Name] = []
        self._orders_tensor: list[_Name] = []
        self._orders_all: list[_Name] = []

    def taken(self) -> Found | None:
        """None if the block is not explained."""
        for instruction in self._originals.code[self._block.start : self._block.end]:
            if not self._step(instruction):
                return None
        # A result has a smaller number than the reading of sources.
        for name in sorted(self._enders):
            needing = self._waiters.setdefault(name, set())
            if not needing and not self._result_is_awaited(name):
                # Somebody in another block needs it to be over.
                needing.add(self._enders[name])
        relied = self._relied()
        left = self._machine.out
        return Found(
            tuple(self._operation(name, left) for name in self._names()),
            frozenset(
                {i for _, i in relied} | {self._ledger.keys[n].index for n in bits(left & self._begun)}
            ),
            frozenset((self._ledger.keys[n].index, i) for n, i in relied if self._begun >> n & 1),
        )

    def _step(self, instruction: Instruction) -> bool:
        machine, i = self._machine, instruction.index
        over = machine.finished(instruction, instruction.control)
        for n in bits(over):
            name = n, not self._begun >> n & 1
            self._enders[name] = i
            if self._ledger.ends_memory >> n & 1:
                self._orders_memory.append(name)
            elif self._ledger.ends_tensor >> n & 1:
                self._orders_tensor.append(name)
            elif self._ledger.ends_all >> n & 1:
                self._orders_all.append(name)
            if instruction.order.is_strict:
                self._note(name, i)
        machine.end(over)
        if machine.unprotected(instruction):
            return False
        self._meet(instruction)
        for name in self._orders_all:
            self._note(name, i)
        if instruction.order is not Order.FREE:
            for name in self._orders_memory:
                self._note(name, i)
        if stays_behind_settling(instruction):
            for name in self._orders_tensor:
                self._note(name, i)
        first, last = self._ledger.starts[i], self._ledger.starts[i + 1]
        own = (1 << last) - (1 << first)
        if machine.out & own & ~self._ledger.ordering:
            return False
        for n in bits(machine.out & own & ~self._begun):
            # Begun again before anything ended it: two of them are under way.
            self._waiters.setdefault((n, True), set())
        machine.issue(instruction, instruction.control)
        machine.end(own & self._counted)
        self._begun |= own & ~self._counted
        for n in bits(own & ~self._counted):
            for register in self._ledger.registers[n]:
                self._own[register, self._ledger.keys[n].is_read].append(n)
        return True

    def _note(self, name: _Name, i: int) -> None:
        self._waiters.setdefault(name, set()).add(i)

    def _meet(self, instruction: Instruction) -> None:
        """Note whose operations it has to find over; what it overwrites nobody behind it meets."""
        if instruction.never_executes:
            return
        reads = {access.register for access in instruction.uses}
        writes = {access.register for access in instruction.defs}
        for is_read, registers in ((False, reads | writes), (True, writes)):
            met: dict[_Name, set[int]] = defaultdict(set)
            for register in registers:
                for n in self._own.get((register, is_read), ()):
                    met[n, False].add(register)
                if self._earlier and register not in self._overwritten:
                    on = self._ledger.reads if is_read else self._ledger.results
                    for n in bits(self._earlier & on.get(register, 0)):
                        met[n, True].add(register)
            for name, touched in met.items():
                starter = self._originals.code[self._ledger.keys[name[0]].index]
                if not in_order(starter, instruction, is_read, not touched.isdisjoint(reads)):
                    self._note(name, instruction.index)
        if not instruction.is_conditional:
            self._overwritten |= writes
            for register in writes:
                self._own.pop((register, False), None)
                self._own.pop((register, True), None)

    def _result_is_awaited(self, name: _Name) -> bool:
        """The reading of sources is announced by the result as well, as that comes later."""
        index = self._ledger.keys[name[0]].index
        result = self._ledger.number.get(Outstanding(index, False))
        return result is not None and bool(self._waiters.get((result, name[1])))

    def _relied(self) -> set[tuple[int, int]]:
        """What is under way at the end and relies on others, with whoever announces it as well."""
        found = set()
        analysis, ledger = self._originals.machine, self._ledger
        for instruction in self._originals.code[self._block.start : self._block.end]:
            i, control = instruction.index, instruction.control
            if not raised_boards(control):
                continue
            announced = ledger.read_before(instruction)
            if control.write_barrier is not None:
                announced |= ledger.surely_written_before(instruction)
            boards = 0
            for k in control.sets:
                boards |= self._machine.announced_by(k) & analysis.covered_by[k]
            for n in bits(announced & boards & ~ledger.ordering):
                # Of the block's own, only those that began before.
                if not self._begun >> n & 1 or n < ledger.starts[i]:
                    found.add((n, i))
        return found

    def _names(self) -> list[_Name]:
        """All that matter here: an earlier one that nobody waits for and nothing ends does not."""
        own = [(n, False) for n in bits(self._begun)]
        return [*sorted(name for name in self._waiters if name[1]), *own]

    def _operation(self, name: _Name, left: int) -> Operation:
        n, is_earlier = name
        is_left = bool(left >> n & 1) and is_earlier == (not self._begun >> n & 1)
        waiters = frozenset(self._waiters.get(name, ()))
        return Operation(self._ledger.keys[n], is_earlier, waiters, self._board(name), is_left)

    def _board(self, name: _Name) -> int | None:
        """The reading of sources is announced by the result as well, as that comes later."""
        n, is_earlier = name
        key = self._ledger.keys[n]
        instruction = self._originals.code[key.index]
        if not is_earlier:
            control = instruction.control
            if key.is_read and control.read_barrier is not None:
                return control.read_barrier
            return control.write_barrier
        loose, covered_by = self._entry.loose, self._originals.machine.covered_by
        guards = {k for k, unknown in enumerate(loose) if not unknown >> n & 1} - self._originals.named_boards
        own = guards & own_boards(instruction, key.is_read)
        # Other blocks keep those that somebody relies on.
        return min(own or {k for k in guards if covered_by[k] >> n & 1}, default=None)
