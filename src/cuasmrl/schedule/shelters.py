"""What the compiler's scoreboards tie together: the shelter of somebody's wait, and in-order queues.

Whoever touches a register of an outstanding operation stays behind the wait that ended it. What is
outstanding and announced by somebody else's barrier stays ahead of that one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from cuasmrl.binary.sass import Control, Instruction, Order
from cuasmrl.schedule.graph import Reason
from cuasmrl.schedule.machine import Analysis, Machine, State, bits, reading_classes, result_classes
from cuasmrl.schedule.memory import stays_behind_settling
from cuasmrl.schedule.scoreboards import awaited_boards, raised_boards

Unexplained: TypeAlias = dict[int, list[int]]
"""Instruction → those whose outstanding operations it interferes with, though nothing protects them."""
_Waits: TypeAlias = dict[int, int]
"""Wait bits that replace a shelter → positions of such waits."""


def _ended(machine: Machine, instruction: Instruction, control: Control, analysis: Analysis) -> int:
    """What an instruction finds over, now and in any other order."""
    over = machine.finished(instruction, control)
    if not over:
        return 0
    # In the present order another barrier may happen to announce something, but nothing keeps it so.
    sure = analysis.covered
    for k in awaited_boards(instruction, control.wait_mask):
        sure |= analysis.ledger.own[k]
    return over & sure


def unexplained_in(
    order: Sequence[int],
    control: Mapping[int, Control],
    entry: State,
    code: Sequence[Instruction],
    analysis: Analysis,
) -> Unexplained:
    """An instruction stands in the list once for each of its operations that is met."""
    ledger, machine = analysis.ledger, Machine(analysis.ledger, entry)
    found: Unexplained = {}
    issued = 0
    for i in order:
        instruction = code[i]
        machine.end(_ended(machine, instruction, control[i], analysis))
        exposed = {ledger.keys[n].index for n in bits(machine.unprotected(instruction) & issued)}
        if exposed:
            touched = {access.register for access in (*instruction.uses, *instruction.defs)}
            under_way = machine.out & issued
            met = [
                p
                for p in sorted(exposed)
                for n in range(ledger.starts[p], ledger.starts[p + 1])
                if under_way >> n & 1 and not touched.isdisjoint(ledger.registers[n])
            ]
            if met:
                found[i] = met
        machine.issue(instruction, control[i])
        issued |= (1 << ledger.starts[i + 1]) - (1 << ledger.starts[i])
    return found


class Shelters:
    """A block under its present control bits; for each instruction what its waits and queues ask for."""

    def __init__(
        self,
        order: Sequence[int],
        control: Mapping[int, Control],
        entry: State,
        code: Sequence[Instruction],
        analysis: Analysis,
        exposed: Unexplained,
    ) -> None:
        self.shelters: list[tuple[int, int]] = []
        self._control = control
        self._analysis = analysis
        self._ledger = analysis.ledger
        self._machine = Machine(analysis.ledger, entry)
        self._exposed = exposed
        self._position = {i: q for q, i in enumerate(order)}
        self._issued = 0
        """Operations that began in this block; others are of what came before it."""
        self._under_way: dict[tuple[int, bool], int] = defaultdict(int)
        """Register, and whether it is read or written → positions whose operation is outstanding."""
        self._relying: dict[str, int] = defaultdict(int)
        """Queue → positions in it whose operation is outstanding, and announced by others."""
        self._waits: dict[tuple[int, bool], _Waits] = defaultdict(dict)
        """Register, and whether it was read or written → where that ended."""
        self._earlier: list[tuple[int, int, int, int]] = []
        """The same for operations of what came before: position, wait bits, operations that ended there."""
        self._written: dict[int, int] = {}
        """Register → where the block last wrote it for sure."""
        self._orders_memory: _Waits = {}
        self._orders_tensor: _Waits = {}
        self._orders_all: _Waits = {}

    def step(self, q: int, instruction: Instruction, rows: dict[Reason, int]) -> None:
        control = self._control[instruction.index]
        over = _ended(self._machine, instruction, control, self._analysis)
        if over:
            for boards, operations in self._by_wait_bits(over, control):
                self._note_end(q, boards, operations)
            self._machine.end(over)
        self._shelter(q, instruction, control.wait_mask, rows)
        queue = self._queued(instruction) | self._announced(instruction, control)
        if queue:
            rows[Reason.QUEUE] = rows.get(Reason.QUEUE, 0) | queue
        first, last = self._ledger.starts[instruction.index : instruction.index + 2]
        if self._ledger.ends_all & (1 << last) - (1 << first):
            # In a loop, who stands before it stands behind its end in the turn before: nobody comes between.
            rows[Reason.WAIT] = rows.get(Reason.WAIT, 0) | (1 << q) - 1
        self._machine.issue(instruction, control)
        self._note_start(q, instruction)

    def _by_wait_bits(self, over: int, control: Control) -> Iterator[tuple[int, int]]:
        """Operations by the wait bits that end them: its own barriers', else those of whom it stays ahead of.

        Without any, bits cannot replace the wait.
        """
        machine, own = self._machine, 0
        for k in control.waits:
            own |= machine.announced_by(k) & self._ledger.own[k]
        groups = [(0, over & own, True), (0, over & ~own, False)]
        for k in control.waits:
            split = []
            for boards, operations, is_own in groups:
                announced = operations & machine.announced_by(k)
                if is_own:
                    announced &= self._ledger.own[k]
                split += [(boards | 1 << k, announced, is_own), (boards, operations & ~announced, is_own)]
            groups = [group for group in split if group[1]]
        yield from ((boards, operations) for boards, operations, _ in groups if operations)

    def _note_end(self, q: int, boards: int, operations: int) -> None:
        ledger, bit = self._ledger, 1 << q
        for n in bits(operations & self._issued):
            key = ledger.keys[n]
            began = ~(1 << self._position[key.index])
            for register in ledger.registers[n]:
                _add(self._waits[register, key.is_read], boards, bit)
                self._under_way[register, key.is_read] &= began
            for name in self._relied_classes(n):
                self._relying[name] &= began
        earlier = operations & ~self._issued & ~ledger.ordering
        if earlier:
            self._earlier.append((q, boards, bit, earlier))
        if operations & ledger.ends_memory:
            _add(self._orders_memory, boards, bit)
        if operations & ledger.ends_tensor:
            _add(self._orders_tensor, boards, bit)
        if operations & ledger.ends_all:
            _add(self._orders_all, boards, bit)

    def _note_start(self, q: int, instruction: Instruction) -> None:
        ledger, bit = self._ledger, 1 << q
        first, last = ledger.starts[instruction.index], ledger.starts[instruction.index + 1]
        self._issued |= (1 << last) - (1 << first)
        for n in range(first, last):
            for register in ledger.registers[n]:
                self._under_way[register, ledger.keys[n].is_read] |= bit
            for name in self._relied_classes(n):
                self._relying[name] |= bit

    def _relied_classes(self, n: int) -> Sequence[str]:
        """The queues that an operation is known to be in, if somebody relies on that."""
        key = self._ledger.keys[n]
        if key.orders or not self._analysis.covered >> n & 1:
            return ()
        instruction = self._ledger.code[key.index]
        return reading_classes(instruction) if key.is_read else result_classes(instruction)

    def _shelter(self, q: int, instruction: Instruction, own_waits: int, rows: dict[Reason, int]) -> None:
        """An instruction that waits for the same scoreboard itself needs no shelter."""
        read = {access.register for access in instruction.uses}
        written = {access.register for access in instruction.defs}
        touched = [(register, False) for register in read | written]
        touched += [(register, True) for register in written]
        waits: _Waits = {}
        for key in touched:
            for boards, positions in self._waits.get(key, {}).items():
                _add(waits, boards, positions)
        for place, boards, bit, operations in self._earlier:
            if any(self._has_ended(operations, place, *key) for key in touched):
                _add(waits, boards, bit)
        ordered = [self._orders_all]
        if instruction.order is not Order.FREE:
            ordered.append(self._orders_memory)
        if stays_behind_settling(instruction):
            ordered.append(self._orders_tensor)
        for ended in ordered:
            for boards, positions in ended.items():
                _add(waits, boards, positions)
        others = ~(1 << q)
        self.shelters = [
            (boards, positions & others)
            for boards, positions in waits.items()
            if not boards & own_waits and positions & others
        ]
        row = 0
        for _, positions in self.shelters:
            row |= positions
        if row:
            rows[Reason.WAIT] = row
        if not instruction.is_conditional:
            for register in written:
                self._waits.pop((register, False), None)
                self._waits.pop((register, True), None)
                self._written[register] = q

    def _has_ended(self, operations: int, place: int, register: int, is_read: bool) -> bool:
        """Did one of these on the register end there, and was it not overwritten since?"""
        if self._written.get(register, -1) >= place:
            return False
        on = self._ledger.reads if is_read else self._ledger.results
        return bool(operations & on.get(register, 0))

    def _queued(self, instruction: Instruction) -> int:
        """Those outstanding in this block on the same registers; what nothing explains has its distance."""
        found = 0
        for access in (*instruction.uses, *instruction.defs):
            for is_read in (False, True):
                found |= self._under_way.get((access.register, is_read), 0)
        for p in self._exposed.get(instruction.index, ()):
            found &= ~(1 << self._position[p])
        return found

    def _announced(self, instruction: Instruction, control: Control) -> int:
        """Those that rely on others, and that the barriers of this one announce as well."""
        if not raised_boards(control):
            return 0
        found = 0
        for name in reading_classes(instruction):
            found |= self._relying.get(name, 0)
        if control.write_barrier is None:
            return found
        if not instruction.is_conditional:
            for name in result_classes(instruction):
                found |= self._relying.get(name, 0)
            return found
        surely = self._ledger.surely_written_before(instruction) & ~self._ledger.ordering
        for n in bits(surely & self._machine.out & self._issued & self._analysis.covered):
            found |= 1 << self._position[self._ledger.keys[n].index]
        return found


def _add(waits: _Waits, boards: int, positions: int) -> None:
    waits[boards] = waits.get(boards, 0) | positions
