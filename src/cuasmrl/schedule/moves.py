"""Moves as values: what a player chooses, a run records and a replay repeats."""

from collections.abc import Iterator
from dataclasses import dataclass

from cuasmrl.binary.sass import MAX_STALL
from cuasmrl.schedule.board import Board


@dataclass(frozen=True, slots=True)
class Swap:
    """Exchange the instructions at a position and the next; control codes travel along."""

    position: int


@dataclass(frozen=True, slots=True)
class SwapInheriting:
    """The same although the lower instruction relies on the upper one's wait: it copies the wait bits."""

    position: int


@dataclass(frozen=True, slots=True)
class Shift:
    """Take an instruction to a position of its block; the block's stalls are recomputed."""

    instruction: int
    position: int


@dataclass(frozen=True, slots=True)
class Drag:
    """Take an instruction towards a position of its block, along with what it is tied to on the way."""

    instruction: int
    position: int


@dataclass(frozen=True, slots=True)
class SetStall:
    instruction: int
    stall: int


@dataclass(frozen=True, slots=True)
class SetYield:
    instruction: int
    yields: bool


@dataclass(frozen=True, slots=True)
class SetReuse:
    instruction: int
    keep: bool


Move = Swap | SwapInheriting | Shift | Drag | SetStall | SetYield | SetReuse


def play(board: Board, move: Move) -> bool:
    """Carry out a move; False, and nothing changed, if it is not legal."""
    match move:
        case Swap(position):
            return board.swap(position)
        case SwapInheriting(position):
            return board.swap_inheriting(position)
        case Shift(instruction, position):
            return board.move(instruction, position)
        case Drag(instruction, position):
            return board.drag(instruction, position)
        case SetStall(instruction, stall):
            return board.set_stall(instruction, stall)
        case SetYield(instruction, yields):
            return board.set_yield(instruction, yields)
        case SetReuse(instruction, keep):
            return board.set_reuse(instruction, keep)


def swaps(board: Board) -> Iterator[Swap | SwapInheriting]:
    """All legal exchanges of neighbours."""
    yield from (Swap(p) for p in board.legal_swaps())
    yield from (SwapInheriting(p) for p in board.inheritable_swaps())


def shifts(board: Board, instruction: int) -> Iterator[Shift]:
    """Where an instruction may go."""
    here = board.position[instruction]
    yield from (Shift(instruction, to) for to in board.reach(instruction) if to != here)


def edits(board: Board, instruction: int) -> Iterator[SetStall | SetYield | SetReuse]:
    """Edits of control bits worth trying; `play` judges the stalls."""
    for stall in range(1, MAX_STALL + 1):
        if stall != board.stall[instruction]:
            yield SetStall(instruction, stall)
    yield SetYield(instruction, not board.yields[instruction])
    if board.code[instruction].control.reuse:
        yield SetReuse(instruction, not board.keeps_reuse[instruction])
