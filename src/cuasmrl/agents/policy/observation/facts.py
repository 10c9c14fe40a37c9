"""What a policy knows of a block whatever its schedule: opcodes, dependences, where results go."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from cuasmrl.binary.sass import Instruction, Order, Pipe
from cuasmrl.binary.sass.opcodes import Space
from cuasmrl.schedule import Block, Board, loop_depths

Float: TypeAlias = npt.NDArray[np.float32]
Int: TypeAlias = npt.NDArray[np.int64]

_PIPES = tuple(Pipe)
_DEEPEST = 3
_WIDEST = 4


class Kind(IntEnum):
    """What an instruction is to others that pass it."""

    TENSOR = 0
    SHARED_LOAD = 1
    SHARED_STORE = 2
    GLOBAL_LOAD = 3
    COPY = 4
    GLOBAL_STORE = 5
    SYNC = 6
    SPECIAL = 7
    """Special functions, conversions, double precision."""
    FLOAT = 8
    INTEGER = 9
    UNIFORM = 10
    OTHER = 11


_KIND_OF_PIPE = {
    Pipe.TENSOR: Kind.TENSOR, Pipe.XU: Kind.SPECIAL, Pipe.FP64: Kind.SPECIAL, Pipe.FMA: Kind.FLOAT,
    Pipe.HALF: Kind.FLOAT, Pipe.ALU: Kind.INTEGER, Pipe.UNIFORM: Kind.UNIFORM,
}  # fmt: skip
_GUESSED = {Kind.SHARED_LOAD: 33.0, Kind.SPECIAL: 25.0, Kind.GLOBAL_LOAD: 450.0}
"""Cycles until a scoreboard falls, of which a profile says nothing if nobody waits for it."""
_OTHERS_GUESSED = 45.0

STATIC = (
    *(f"kind {kind.name.lower()}" for kind in Kind), *(f"pipe {pipe}" for pipe in _PIPES), "fixed",
    "variable latency", "predicated", "results", "operands", "dependences before", "dependences behind",
    "loop depth", "loops to itself",
)  # fmt: skip


class Facts(NamedTuple):
    """Of one block; its instructions are counted from its first."""

    start: int
    rows: Float
    """A column for each of `STATIC`."""
    kinds: Int
    pipes: Int
    opcodes: Int
    named: Int
    """Scoreboards that a DEPBAR wants at zero, as bits."""
    guessed: npt.NDArray[np.float64]
    """Cycles until its scoreboard falls."""
    results: Int
    """Results that have to be waited for, and who reads them: producer, consumer, whether in the next
    iteration."""
    has_reuse: Int
    """Are there operand-cache flags, for the instruction that follows in the original?"""
    repeats: bool
    """Does the block jump to itself?"""

    @staticmethod
    def of(board: Board, block: Block) -> Facts:
        code = board.code[block.start : block.end]
        kinds = [kind_of(i) for i in code]
        repeats = block.number in block.successors
        return Facts(
            block.start,
            _rows(board, block, kinds, repeats),
            np.array(kinds, np.int64),
            np.array([_PIPES.index(i.declaration.pipe) if i.declaration else 0 for i in code], np.int64),
            board.opcodes[block.start : block.end].copy(),
            np.array([sum(1 << k for k in _named(i)) for i in code], np.int64),
            np.array([_GUESSED.get(kind, _OTHERS_GUESSED) for kind in kinds]),
            _results(code, block.start, repeats),
            np.array([i.control.reuse != 0 for i in code], np.int64),
            repeats,
        )


def _named(instruction: Instruction) -> tuple[int, ...]:
    """Not those on which it counts groups of copies: these belong to iterations before."""
    if instruction.depbar is None:
        return ()
    board, count, others = instruction.depbar
    return others if count else (board, *others)


def kind_of(instruction: Instruction) -> Kind:
    opcode = instruction.declaration
    if opcode is None:
        return Kind.OTHER
    if instruction.order is Order.SYNC:
        return Kind.SYNC
    if opcode.reads is Space.GLOBAL and opcode.writes is Space.SHARED:
        return Kind.COPY
    if opcode.pipe is Pipe.MEMORY and (opcode.reads or opcode.writes):
        if opcode.reads is Space.SHARED:
            return Kind.SHARED_LOAD
        if opcode.writes is Space.SHARED:
            return Kind.SHARED_STORE
        return Kind.GLOBAL_LOAD if opcode.reads else Kind.GLOBAL_STORE
    return _KIND_OF_PIPE.get(opcode.pipe, Kind.OTHER)


def _rows(board: Board, block: Block, kinds: Iterable[Kind], repeats: bool) -> Float:
    graph = board.graphs[block.number]
    depth = min(_DEEPEST, loop_depths(board.blocks)[block.number])
    rows = np.zeros((len(block), len(STATIC)), np.float32)
    for row, i, kind in zip(rows, board.code[block.start : block.end], kinds, strict=True):
        pipe = i.declaration.pipe if i.declaration else None
        row[:] = [
            *(kind is k for k in Kind), *(pipe is p for p in _PIPES), board.fixed[i.index], i.is_variable,
            i.is_conditional, min(len(i.defs), _WIDEST) / _WIDEST, min(len(i.uses), 2 * _WIDEST) / _WIDEST,
            np.log1p(graph.before.get(i.index, 0)) / 4, np.log1p(graph.behind.get(i.index, 0)) / 4,
            depth / _DEEPEST, repeats,
        ]  # fmt: skip
    return rows


def _results(code: tuple[Instruction, ...], start: int, repeats: bool) -> Int:
    """Who reads results of the tensor pipe and of variable latency; the same under every legal schedule."""
    last: dict[int, int] = {}
    found: set[tuple[int, int, int]] = set()
    for turn in range(2 if repeats else 1):
        for i in code:
            here = i.index - start
            for use in i.uses:
                producer = last.get(use.register)
                if producer is not None and (turn == 0 or producer >= here):
                    found.add((producer, here, turn))
            opcode = i.declaration
            is_late = i.is_variable or (opcode is not None and opcode.pipe is Pipe.TENSOR)
            for written in i.defs:
                if is_late:
                    last[written.register] = here
                else:
                    last.pop(written.register, None)
    return np.array(sorted(found), np.int64).reshape(-1, 3)
