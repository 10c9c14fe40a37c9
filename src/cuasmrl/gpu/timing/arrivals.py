"""When results may be read and registers overwritten: what the sanitizer knows of a kernel before any replay.

A result of variable latency is there when the log says so. For fixed latencies the log has no time; the
numbers of the chip have (`cuasmrl.gpu.timing.latencies`), and they owe nothing to the table of distances that
the board and the checker rely on. Of a class without a number nothing is claimed.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from typing import NamedTuple

import numpy as np

from cuasmrl.binary.sass import (
    Access,
    File,
    Instruction,
    Listing,
    Order,
    Pipe,
    file_of,
)
from cuasmrl.gpu.timing.code import Int
from cuasmrl.gpu.timing.latencies import Latencies, latencies
from cuasmrl.schedule import Block, control_flow
from cuasmrl.schedule.scoreboards import is_read_late


class Clock(IntEnum):
    """What says when a result is there, or a source has been read."""

    FIXED = 0
    """So many cycles after issue; a result also not before the log says so, as of tensor products."""
    COMPLETE = 1
    FREED = 2


class Touch(IntEnum):
    """A register that an instruction reads or writes."""

    REGISTER = 0
    KIND = 1
    """Its row, or column, in the tables of cycles."""
    CLOCK = 2
    WIDTH = 3


class Trait(IntEnum):
    """An instruction."""

    SKIPPED = 0
    """It never executes and only passes time."""
    GUARD = 1
    """Register that decides whether it executes; -1 if it always does."""
    INVERTED = 2
    QUEUE = 3
    """Sources of one queue are read in order; -1 for none."""
    RETURNS = 4
    """Does a result come back through the queue, in the order of issue?"""
    MEMORY = 5
    """The memory pipe reads sources in order, whatever the queue."""
    BLOCK = 6
    START = 7
    """Cycles from the head of its block to its issue, by the stall counts of the listing."""
    USES = 8
    """Where its reads begin; they end where those of the next instruction begin."""
    DEFS = 9
    WAITS = 10
    """Mask of the scoreboards that a DEPBAR waits for to be zero."""
    WIDTH = 11


class Arrivals(NamedTuple):
    """A kernel as compiled code reads it; instructions are named by their index in the listing."""

    traits: Int
    """A `Trait` for each instruction, and one more to end the last."""
    uses: Int
    defs: Int
    """A `Touch` each."""
    kinds: int
    """Rows and columns of the tables: kinds of first instructions by kinds of second ones."""
    read_after: Int
    """Cycles from the issue of a producer to that of a reader; 0 where nothing is known."""
    overwrite_after: Int
    """Cycles from the issue of a producer to that of who overwrites the result."""
    free_after: Int
    """Cycles from the issue of a reader to that of who overwrites the source."""
    reach: Int
    """By kind of producer: cycles after which everybody may read or overwrite."""
    free_reach: Int
    """By kind of reader: cycles after which everybody may overwrite."""
    blocks: int
    heads: Int
    """The first instruction of each block."""
    totals: Int
    """Cycles that each block takes by the stall counts of the listing."""
    edges: Int
    """Blocks by blocks: can control go from one to the other?"""


class _Kinds:
    """Numbers for what latencies tell apart: timing key, role and register file."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[str, str, File], int] = {}
        self.samples: list[tuple[Instruction, Access]] = []
        self.results: set[int] = set()
        self.sources: set[int] = set()

    def number(self, i: Instruction, access: Access) -> int:
        key = (i.timing_key, access.role, file_of(access.register))
        if key not in self._numbers:
            self._numbers[key] = len(self.samples)
            self.samples.append((i, access))
        return self._numbers[key]


def arrivals_of(listing: Listing) -> Arrivals:
    """Everything about a kernel that no schedule changes."""
    code, blocks = listing.instructions, control_flow(listing)
    kinds, times = _Kinds(), latencies(listing.kernel.arch)
    uses = [_touches(i, i.uses, kinds, kinds.sources, is_result=False) for i in code]
    defs = [_touches(i, i.defs, kinds, kinds.results, is_result=True) for i in code]
    read_after = _reading(times, kinds)
    overwrite_after = _overwriting(times, kinds)
    free_after = _freeing(times, kinds)
    traits = np.zeros((len(code) + 1, Trait.WIDTH), np.int64)
    traits[:-1] = _traits(code)
    traits[:, Trait.USES], traits[:, Trait.DEFS] = _starts(uses), _starts(defs)
    totals = _stall_clock(code, blocks, traits)
    edges = np.zeros((len(blocks), len(blocks)), np.int64)
    for block in blocks:
        edges[block.number, list(block.successors)] = 1
    return Arrivals(
        traits=traits.reshape(-1),
        uses=_flat(uses),
        defs=_flat(defs),
        kinds=len(kinds.samples),
        read_after=read_after.reshape(-1),
        overwrite_after=overwrite_after.reshape(-1),
        free_after=free_after.reshape(-1),
        reach=np.maximum(read_after, overwrite_after).max(axis=1, initial=0),
        free_reach=free_after.max(axis=1, initial=0),
        blocks=len(blocks),
        heads=np.array([block.start for block in blocks], np.int64),
        totals=totals,
        edges=edges.reshape(-1),
    )


_Touches = list[tuple[int, int, Clock]]


def _touches(
    i: Instruction, accesses: Iterable[Access], kinds: _Kinds, seen: set[int], is_result: bool
) -> _Touches:
    found: _Touches = []
    for access in accesses if i.declaration is not None else ():
        register = access.register
        # Barrier registers hold where lanes meet; no table times them.
        if file_of(register) is not File.B:
            kind = kinds.number(i, access)
            seen.add(kind)
            found.append(
                (register, kind, _result_clock(i, register) if is_result else _source_clock(i, register))
            )
    return found


def _result_clock(i: Instruction, register: int) -> Clock:
    early = i.declaration is not None and i.declaration.predicate_with_sources
    if early and file_of(register) is File.P:
        return Clock.FREED
    return Clock.COMPLETE if i.is_variable else Clock.FIXED


def _source_clock(i: Instruction, register: int) -> Clock:
    return Clock.FREED if is_read_late(i, register) else Clock.FIXED


def _reading(times: Latencies, kinds: _Kinds) -> Int:
    cycles = np.zeros((len(kinds.samples), len(kinds.samples)), np.int64)
    for p, c in _pairs(kinds, kinds.sources):
        (producer, result), (reader, use) = kinds.samples[p], kinds.samples[c]
        file = file_of(result.register)
        known = times.read_after(file, producer.timing_key, result.role, reader.timing_key, use.role)
        cycles[p, c] = known or 0
    return cycles


def _overwriting(times: Latencies, kinds: _Kinds) -> Int:
    cycles = np.zeros((len(kinds.samples), len(kinds.samples)), np.int64)
    for p, c in _pairs(kinds, kinds.results):
        (producer, old), (writer, new) = kinds.samples[p], kinds.samples[c]
        # A result of variable latency comes long after its issue; the log has its time.
        if not writer.is_variable:
            file = file_of(old.register)
            known = times.overwrite_after(file, producer.timing_key, old.role, writer.timing_key, new.role)
            cycles[p, c] = known or 0
    return cycles


def _freeing(times: Latencies, kinds: _Kinds) -> Int:
    cycles = np.zeros((len(kinds.samples), len(kinds.samples)), np.int64)
    for r in kinds.sources:
        reader, use = kinds.samples[r]
        file = file_of(use.register)
        for c in kinds.results:
            writer, new = kinds.samples[c]
            if file_of(new.register) is file and not writer.is_variable:
                cycles[r, c] = times.free_after(file, reader.timing_key, use.role, writer.timing_key) or 0
    return cycles


def _pairs(kinds: _Kinds, seconds: set[int]) -> Iterable[tuple[int, int]]:
    """Results of fixed latency and what may meet them in the same register file."""
    for p in kinds.results:
        producer, result = kinds.samples[p]
        if not producer.is_variable:
            for c in seconds:
                if file_of(kinds.samples[c][1].register) is file_of(result.register):
                    yield p, c


def _traits(code: tuple[Instruction, ...]) -> Int:
    queues: dict[str, int] = {}
    traits = np.zeros((len(code), Trait.WIDTH), np.int64)
    traits[:, Trait.GUARD] = traits[:, Trait.QUEUE] = -1
    for i in code:
        row = traits[i.index]
        row[Trait.SKIPPED] = i.never_executes
        if i.is_conditional and i.guard is not None and i.guard.register is not None:
            (row[Trait.GUARD],) = i.guard.register.resources()
            row[Trait.INVERTED] = i.guard.inverted
        if i.depbar is not None:
            board, count, others = i.depbar
            row[Trait.WAITS] = sum(1 << k for k in {*others, *(() if count else (board,))})
        # A synchronisation does not go through the queue whose name it bears.
        if i.declaration is not None and i.is_variable and i.order is not Order.SYNC:
            row[Trait.QUEUE] = queues.setdefault(i.declaration.queue, len(queues))
            row[Trait.RETURNS] = bool(i.defs) and i.declaration.returns_in_order(i.arch)
            row[Trait.MEMORY] = i.declaration.pipe is Pipe.MEMORY
    return traits


def _stall_clock(code: tuple[Instruction, ...], blocks: tuple[Block, ...], traits: Int) -> Int:
    """Fills in blocks and starts; answers with the length of each block."""
    totals = []
    for block in blocks:
        stalls = [max(1, i.control.stall) for i in code[block.start : block.end]]
        ends = np.cumsum(stalls)
        traits[block.start : block.end, Trait.BLOCK] = block.number
        traits[block.start : block.end, Trait.START] = ends - stalls
        totals.append(int(ends[-1]))
    return np.array(totals, np.int64)


def _starts(touches: list[_Touches]) -> Int:
    return Touch.WIDTH * np.concatenate([[0], np.cumsum([len(found) for found in touches])]).astype(np.int64)


def _flat(touches: list[_Touches]) -> Int:
    return np.array([touch for found in touches for touch in found], np.int64).reshape(-1)
