"""Who reads whose result, and how much later at least: a listing as arrays for compiled walks.

A distance depends on opcodes and roles only: so definitions and uses are sorted into classes, and one matrix
holds the answers of the mined table.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from typing import NamedTuple, TypeAlias

import numpy as np

from cuasmrl.binary.sass import (
    RESOURCES,
    Access,
    Distances,
    Hazard,
    Instruction,
    Listing,
    Pipe,
    distances,
    file_of,
)
from cuasmrl.binary.sass import Order as Freedom
from cuasmrl.compiled import compiled
from cuasmrl.gpu.timing.code import Int

WRITERS = 8
"""Definitions of one register that are remembered; more than one only where writers are conditional."""
_UNKNOWN, _UNKNOWN_PRODUCT = 32, 96
"""Where the table is silent nothing comes closer than it was, up to so many cycles; as the checker has it."""
_Class: TypeAlias = tuple[str, str, str]
"""Opcode, role, register file."""
_Example: TypeAlias = tuple[Instruction, Access]


class Fact(IntEnum):
    """Of an instruction of the original listing; one that never executes reads and writes nothing."""

    USES = 0
    """Its uses begin here."""
    USES_END = 1
    DEFS = 2
    DEFS_END = 3
    IS_VARIABLE = 4
    """Is its result announced by a scoreboard?"""
    IS_CONDITIONAL = 5
    ORDER = 6


class Order(IntEnum):
    """How an instruction may move between pinned ones: `sass.Order` as numbers."""

    FREE = 0
    MEMORY = 1
    SYNC = 2


_ORDERS = {Freedom.MEMORY: Order.MEMORY, Freedom.SYNC: Order.SYNC}


class Dataflow(NamedTuple):
    facts: Int
    """A `Fact` per instruction."""
    uses: Int
    """Register, class and instruction of each."""
    defs: Int
    needs: Int
    """By class of definition and of use: cycles from a producer of fixed latency to its consumer."""


class _Accesses:
    """Accesses of one instruction behind those of another, sorted into classes."""

    def __init__(self) -> None:
        self.starts = [0]
        self.rows: list[tuple[int, int, int]] = []
        self.examples: dict[_Class, _Example] = {}
        self._numbers: dict[_Class, int] = {}

    def add(self, instruction: Instruction, accesses: Iterable[Access]) -> None:
        for access in accesses:
            key = instruction.timing_key, access.role, file_of(access.register)
            number = self._numbers.setdefault(key, len(self._numbers))
            self.examples.setdefault(key, (instruction, access))
            self.rows.append((access.register, number, instruction.index))
        self.starts.append(len(self.rows))


def dataflow_of(listing: Listing) -> Dataflow:
    code = listing.instructions
    uses, defs = _Accesses(), _Accesses()
    for i in code:
        uses.add(i, () if i.never_executes else i.uses)
        defs.add(i, () if i.never_executes else i.defs)
    facts = [uses.starts[:-1], uses.starts[1:], defs.starts[:-1], defs.starts[1:]]
    facts += [[i.is_variable for i in code], [i.is_conditional for i in code]]
    facts += [[_ORDERS.get(i.order, Order.FREE) for i in code]]
    return Dataflow(
        np.array(facts, np.int64).T.copy(),
        np.array(uses.rows, np.int64).reshape(-1, 3),
        np.array(defs.rows, np.int64).reshape(-1, 3),
        _needs(distances(listing.kernel.arch), defs.examples, uses.examples),
    )


def _needs(table: Distances, defs: dict[_Class, _Example], uses: dict[_Class, _Example]) -> Int:
    needs = np.zeros((len(defs), len(uses)), np.int64)
    for row, (written, producer) in enumerate(defs.items()):
        for column, (read, consumer) in enumerate(uses.items()):
            if written[2] == read[2] and not producer[0].is_variable:
                needs[row, column] = _need(table, *producer, *consumer)
    return needs


def _need(table: Distances, first: Instruction, written: Access, second: Instruction, read: Access) -> int:
    known = table.required(Hazard.RAW, first, second, written.register, written.role, read.role)
    if known is not None:
        return known
    is_product = first.declaration is not None and first.declaration.pipe is Pipe.TENSOR
    return _UNKNOWN_PRODUCT if is_product else _UNKNOWN


@compiled
def no_writers() -> Int:
    """Of every register, how many definitions may have given it its value, and which."""
    return np.zeros((RESOURCES, 1 + WRITERS), np.int64)


@compiled
def define(flow: Dataflow, writers: Int, i: int) -> None:
    """An instruction writes its results; a conditional one may leave those of earlier ones."""
    for d in range(flow.facts[i, Fact.DEFS], flow.facts[i, Fact.DEFS_END]):
        register = flow.defs[d, 0]
        count = writers[register, 0] if flow.facts[i, Fact.IS_CONDITIONAL] else 0
        kept = 0
        for k in range(1, count + 1):
            # Room for one more: its own last execution is forgotten, else the oldest definition.
            if writers[register, k] != d and not (k == 1 and count == WRITERS):
                kept += 1
                writers[register, kept] = writers[register, k]
        writers[register, kept + 1] = d
        writers[register, 0] = kept + 1
