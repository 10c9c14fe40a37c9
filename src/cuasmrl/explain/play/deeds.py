"""Moves of people: read from what a browser sends, carried out, told in words, refused in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from cuasmrl.binary.sass import MAX_STALL
from cuasmrl.binary.sass.control import LONGEST_STALL_WITHOUT_YIELD
from cuasmrl.checker import Checker, Refusal
from cuasmrl.errors import CuasmrlError
from cuasmrl.explain.play.reach import name, reach_of, why_pinned
from cuasmrl.schedule import Board, Drag, Schedule, SetReuse, SetStall, SetYield, Shift, play
from cuasmrl.schedule.moves import Move

_KINDS = ("drag", "shift", "stall", "yield", "reuse")


class RefusedError(CuasmrlError):
    """The move is not legal; the sentence says why."""


def move_of(data: Mapping[str, Any], board: Board) -> Move:
    """What a browser has sent; refused if it makes no sense."""
    kind, i = data.get("kind"), data.get("instruction")
    if kind not in _KINDS:
        raise CuasmrlError(f"a move is one of {', '.join(_KINDS)}, not {kind!r}")
    i = _number(i, "instruction", len(board.code))
    match kind:
        case "stall":
            return SetStall(i, _number(data.get("stall"), "stall count", MAX_STALL + 1))
        case "yield":
            return SetYield(i, not board.yields[i])
        case "reuse":
            return SetReuse(i, not board.keeps_reuse[i])
    to = _number(data.get("position"), "position", len(board.code))
    return Shift(i, to) if kind == "shift" else Drag(i, to)


def _number(value: Any, what: str, end: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < end:
        raise CuasmrlError(f"{what} is a whole number from 0 to {end - 1}, not {value!r}")
    return value


@dataclass(frozen=True)
class Deed:
    """What a move has done."""

    words: str
    instruction: int


def carry_out(board: Board, move: Move, checker: Checker) -> Deed:
    """Play a move and tell it; raises RefusedError, and nothing has changed, if it is not legal."""
    match move:
        case Drag() | Shift():
            return _drag(board, move, checker)
        case SetStall() | SetYield() | SetReuse():
            return _edit(board, move, checker)
    raise CuasmrlError(f"{move} is no move of this page")


def _drag(board: Board, move: Drag | Shift, checker: Checker) -> Deed:
    i, before, said = move.instruction, list(board.position), name(board, move.instruction)
    if move.position == before[i] or not play(board, move):
        raise RefusedError(_refusal(board, move, checker))
    by, others = board.position[i] - before[i], _tied(board, i, before)
    positions = "1 position" if abs(by) == 1 else f"{abs(by)} positions"
    along = f", with {others} tied to it" if others else ""
    return Deed(f"{said} {'up' if by < 0 else 'down'} {positions}{along}", i)


def _edit(board: Board, move: SetStall | SetYield | SetReuse, checker: Checker) -> Deed:
    said = name(board, move.instruction)
    match move:
        case SetStall(i, stall):
            words = f"{said} gets stall count {stall} instead of {board.stall[i]}"
        case SetYield(yields=yields):
            words = f"{said} {'yields now' if yields else 'yields no more'}"
        case SetReuse(keep=keep):
            words = f"{said} {'keeps' if keep else 'loses'} its reuse flags"
    if not play(board, move):
        raise RefusedError(_objection(board, move, checker))
    return Deed(words, move.instruction)


def _objection(board: Board, move: SetStall | SetYield | SetReuse, checker: Checker) -> str:
    """Why control bits cannot be edited so."""
    i, said = move.instruction, name(board, move.instruction)
    if board.is_opaque:
        return why_pinned(board, i) or ""
    if isinstance(move, SetYield):
        return f"{said} has a stall count of {board.stall[i]}, which leaves the hint no choice"
    if isinstance(move, SetReuse):
        return f"the compiler gave {said} no reuse flags"
    if move.stall == board.stall[i]:
        return f"{said} has a stall count of {move.stall} already"
    broken = _said(checker, _with_stall(board, i, move.stall))
    return broken or f"the board allows {said} no stall count of {move.stall} here"


def _tied(board: Board, i: int, before: Sequence[int]) -> int:
    """How many others went the same way."""
    way = board.position[i] - before[i]
    return sum(j != i and (board.position[j] - was) * way > 0 for j, was in enumerate(before))


def _refusal(board: Board, move: Drag | Shift, checker: Checker) -> str:
    """Why an instruction cannot go there: what the board knows, or what the checker says of the order."""
    i, to = move.instruction, move.position
    here, reach = board.position[i], reach_of(board, i)
    if reach.pinned is not None:
        return reach.pinned
    if to == here:
        return f"{name(board, i)} is there already"
    wall = reach.walls[0] if to < reach.first else reach.walls[1] if to > reach.last else None
    if wall is not None:
        return wall
    if isinstance(move, Shift) and i in board.glued:
        return f"{name(board, i)} belongs to padding, which stays together; drag it with what is tied to it"
    said = (
        _said(checker, _forced(board, i, to)) if isinstance(move, Shift) and to not in reach.alone else None
    )
    return said or f"no stall counts express that order: {name(board, i)} cannot stand at {16 * to:#06x}"


def _said(checker: Checker, schedule: Schedule) -> str | None:
    """What the checker has against a schedule."""
    try:
        checker.check(schedule.apply(checker.original))
    except Refusal as refusal:
        return str(refusal)
    return None


def _forced(board: Board, i: int, to: int) -> Schedule:
    """The order that was asked for, with the control bits as they are where that is possible at all."""
    order, old = list(board.order), list(board.order)
    order.insert(to, order.pop(board.position[i]))
    parted = {a for a, b in pairwise(old)} - {a for a, b in pairwise(order) if (a, b) in set(pairwise(old))}
    controls = [replace(c, reuse=0) if k in parted else c for k, c in enumerate(board.controls)]
    return board.schedule().replaced(order, controls)


def _with_stall(board: Board, i: int, stall: int) -> Schedule:
    controls = list(board.controls)
    yields = controls[i].yield_ or not 0 < stall <= LONGEST_STALL_WITHOUT_YIELD
    controls[i] = replace(controls[i], stall=stall, yield_=yields, reuse=0 if yields else controls[i].reuse)
    return board.schedule().replaced(controls=controls)
