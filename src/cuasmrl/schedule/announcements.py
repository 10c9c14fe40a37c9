"""A block in arrays, for the assignment of its scoreboards (`slots.py`)."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

import numpy as np

from cuasmrl.binary.sass import Pipe
from cuasmrl.schedule.blocks import Block
from cuasmrl.schedule.dependences import Originals
from cuasmrl.schedule.operations import Traffic
from cuasmrl.schedule.retiming import Int
from cuasmrl.schedule.scoreboards import awaited_boards


class Trait(IntEnum):
    """What is to be known of an instruction, a row each."""

    WRITE = 0
    """The compiler's scoreboard for its result, -1 for none."""
    READ = 1
    """The same for its sources."""
    IS_FROZEN = 2
    """It keeps both."""
    RESULT = 3
    """Number of the operation that writes its result, or -1."""
    SOURCES = 4
    """Number of the operation that reads its sources, or -1."""
    WAITS = 5
    """Wait bits that stay."""
    RELEASE = 6
    """Cycles until what it raises is seen."""
    FIRST = 7
    """Bits of the scoreboards that it is the first of the block to wait for, in the original."""
    WIDTH = 8


class Sign(IntEnum):
    """What is to be known of an operation, a row each."""

    STARTER = 0
    """The instruction, or -1 if it is under way when the block begins."""
    BOARD = 1
    """The scoreboard that it has in any case, or -1."""
    IS_RESULT = 2
    QUEUE = 3
    """Number of its queue, 0 for none."""
    IS_MEMORY = 4
    IS_CONDITIONAL = 5
    IS_LEFT = 6
    """It may be under way when the block ends."""
    RETURNS_IN_ORDER = 7
    """Results of its queue are written in the order of issue."""
    WIDTH = 8


class Announcements(NamedTuple):
    """A block for compiled code; its instructions are counted from 0."""

    traits: Int
    signs: Int
    needed: Int
    """Operations that an instruction has to find over, lists laid end to end."""
    needed_starts: Int
    boards: Int
    """Those that may be reassigned."""
    entry: Int
    """Scoreboard → when what an earlier block has raised is seen for sure."""


def announcements(block: Block, traffic: Traffic, originals: Originals) -> Announcements:
    code = originals.code[block.start : block.end]
    traits = np.full((len(block), Trait.WIDTH), -1, np.int64)
    for row, i in zip(traits, code, strict=True):
        control = i.control
        row[Trait.WRITE] = -1 if control.write_barrier is None else control.write_barrier
        row[Trait.READ] = -1 if control.read_barrier is None else control.read_barrier
        row[Trait.IS_FROZEN] = i.index in traffic.frozen
        row[Trait.WAITS] = traffic.kept_waits.get(i.index, 0)
        row[Trait.RELEASE] = originals.table.release(i) or 0
    waited = 0
    for row, i in zip(traits, code, strict=True):
        boards_of = sum(1 << k for k in awaited_boards(i, i.control.wait_mask))
        row[Trait.FIRST] = boards_of & ~waited
        waited |= boards_of
    needed: list[list[int]] = [[] for _ in range(len(block))]
    for number, operation in enumerate(traffic.operations):
        if not operation.is_earlier:
            column = Trait.SOURCES if operation.key.is_read else Trait.RESULT
            traits[operation.key.index - block.start, column] = number
        for c in operation.waiters:
            needed[c - block.start].append(number)
    starts = np.concatenate([[0], np.cumsum([len(numbers) for numbers in needed])]).astype(np.int64)
    flat = np.array([number for numbers in needed for number in numbers], np.int64)
    boards = np.array(sorted(traffic.boards), np.int64)
    entry = np.array(originals.releases[block.number], np.int64)
    return Announcements(traits, _signs(block, traffic, originals), flat, starts, boards, entry)


def _signs(block: Block, traffic: Traffic, originals: Originals) -> Int:
    queues: dict[str, int] = {"": 0}
    signs = np.full((len(traffic.operations), Sign.WIDTH), -1, np.int64)
    for row, operation in zip(signs, traffic.operations, strict=True):
        starter = originals.code[operation.key.index]
        declaration = starter.declaration
        queue = "" if declaration is None else declaration.queue
        keeps = operation.is_earlier or starter.index in traffic.frozen
        row[Sign.STARTER] = -1 if operation.is_earlier else starter.index - block.start
        row[Sign.BOARD] = operation.board if keeps and operation.board is not None else -1
        row[Sign.IS_RESULT] = not operation.key.is_read
        row[Sign.QUEUE] = queues.setdefault(queue, len(queues))
        row[Sign.IS_MEMORY] = declaration is not None and declaration.pipe is Pipe.MEMORY
        row[Sign.IS_CONDITIONAL] = starter.is_conditional
        row[Sign.IS_LEFT] = operation.is_left
        row[Sign.RETURNS_IN_ORDER] = declaration is not None and declaration.returns_in_order(starter.arch)
    return signs
