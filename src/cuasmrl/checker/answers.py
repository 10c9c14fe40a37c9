"""What the table of distances answers, looked up once for accesses of one kind."""

from typing import NamedTuple

import numpy as np

from cuasmrl.binary.sass import Distances, Hazard, Instruction, Pipe, file_of
from cuasmrl.checker.dependences import Array
from cuasmrl.checker.program import Program

FOREVER = 96
"""Cycles after which no fixed latency is still running; ptxas gives tensor cores up to 44."""
LONGEST = 32
"""The same for all other pipes; ptxas gives them at most 14 where nothing else passes the time."""
_FILES = [file_of(register) for register in range(576)]


class Kind(NamedTuple):
    """Accesses that the table cannot tell apart: it goes by the mnemonic, the register file and the roles."""

    opcode: int
    file: str
    writes: bool
    roles: tuple[str, ...]


class Answers:
    """Cycles that one access needs after another, where the table is silent so much that none come closer."""

    def __init__(self, program: Program, table: Distances):
        self._program, self._table = program, table
        opcodes: dict[tuple[str, bool, bool], int] = {}
        self._opcode = [
            opcodes.setdefault((i.mnemonic, i.declaration is None, i.is_variable), len(opcodes))
            for i in program.instructions
        ]
        self._numbers: dict[Kind, int] = {}
        self._kinds: list[Kind] = []
        self._example: list[tuple[Instruction, int]] = []
        self._known = np.full((64, 64), -1, dtype=np.int64)
        self._reach: dict[tuple[int, int], int] = {}

    def kind(self, i: int, register: int, writes: bool) -> int:
        roles = (self._program.def_roles if writes else self._program.use_roles)[i][register]
        kind = Kind(self._opcode[i], _FILES[register], writes, roles)
        number = self._numbers.get(kind)
        if number is None:
            number = self._numbers[kind] = len(self._kinds)
            self._kinds.append(kind)
            self._example.append((self._program.instructions[i], register))
            if number == len(self._known):
                self._known = np.pad(self._known, (0, number), constant_values=-1)
        return number

    def required(self, producers: Array, consumers: Array) -> Array:
        """By the kinds of both."""
        found = self._known[producers, consumers]
        missing = np.flatnonzero(found < 0)
        if len(missing):
            size = len(self._known)
            for pair in np.unique(producers[missing] * size + consumers[missing]).tolist():
                self.one(*divmod(pair, size))
            found = self._known[producers, consumers]
        return found

    def one(self, producer: int, consumer: int) -> int:
        known = int(self._known[producer, consumer])
        if known < 0:
            known = self._known[producer, consumer] = self._look_up(producer, consumer)
        return known

    def _look_up(self, producer: int, consumer: int) -> int:
        first, second = self._kinds[producer], self._kinds[consumer]
        (p, register), (c, _) = self._example[producer], self._example[consumer]
        hazard = (Hazard.WAW if second.writes else Hazard.RAW) if first.writes else Hazard.WAR
        unknown = FOREVER if _may_take_long(p) else LONGEST
        answers = [
            self._table.required(hazard, p, c, register, role, other)
            for role in first.roles
            for other in second.roles
        ]
        return min(FOREVER, max(unknown if answer is None else answer for answer in answers))

    def reach(self, producer: int, register: int, consumers: set[int]) -> int:
        """The most that anybody needs after a producer, where a register has these kinds of consumers."""
        known = self._reach.get((producer, register))
        if known is None:
            met = (c for c in consumers if self._kinds[producer].writes or self._kinds[c].writes)
            known = max((self.one(producer, c) for c in met), default=0)
            self._reach[producer, register] = known
        return known


def _may_take_long(i: Instruction) -> bool:
    return i.declaration is None or i.declaration.pipe in (Pipe.TENSOR, Pipe.ASYNC)
