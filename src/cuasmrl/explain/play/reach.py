"""Where an instruction may go: alone, with what is tied to it, and what stands in the way."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from cuasmrl.explain.report.dependences import in_words
from cuasmrl.schedule import Board

_PADDING = "padding"


@dataclass(frozen=True)
class Tie:
    """An instruction that comes along once the one that is dragged goes past it."""

    instruction: int
    to: int
    """To which of those that are taken; the one that is dragged, or one that comes along."""
    why: str


@dataclass(frozen=True)
class Reach:
    """Positions are those of the kernel."""

    instruction: int
    alone: tuple[int, ...]
    """Where dependences and padding let it go by itself, its own among them."""
    first: int
    last: int
    """As far as it goes with all that is tied to it: up to something pinned, or the end of its block."""
    up: tuple[Tie, ...]
    """The nearest first."""
    down: tuple[Tie, ...]
    pinned: str | None
    """Why it stays, if it does."""
    walls: tuple[str | None, str | None]
    """What stops it, above and below."""

    def as_dict(self) -> dict[str, Any]:
        ties = {side: [vars(tie) for tie in getattr(self, side)] for side in ("up", "down")}
        return vars(self) | ties


def reach_of(board: Board, i: int) -> Reach:
    here, block = board.position[i], board.blocks[board.block_of[i]]
    pinned = why_pinned(board, i)
    if pinned is not None:
        return Reach(i, (here,), here, here, (), (), pinned, (None, None))
    neighbours = board.neighbours[block.number]
    first = block.start + int(neighbours.floor[here - block.start])
    last = block.start + int(neighbours.ceiling[here - block.start])
    return Reach(
        i,
        tuple(board.span(i)),
        first,
        last,
        tuple(_ties(board, i, range(here - 1, first - 1, -1))),
        tuple(_ties(board, i, range(here + 1, last + 1))),
        None,
        (_wall(board, first - 1, block.start - 1), _wall(board, last + 1, block.end)),
    )


def why_pinned(board: Board, i: int) -> str | None:
    """In a sentence; None if it may move."""
    instruction, block = board.code[i], board.blocks[board.block_of[i]]
    if board.is_opaque:
        return "something in this kernel is not understood, so nothing in it may change"
    if not board.fixed[i]:
        return None
    if instruction.declaration is None:
        return f"{name(board, i)} is not known, so it and its block stay as they are"
    unknown = next((j for j in range(block.start, block.end) if board.code[j].declaration is None), None)
    if unknown is not None:
        return f"{name(board, unknown)} is not known, so all of its block stays as it is"
    return f"{name(board, i)} is pinned: control flow, fences and fillers stay where they are"


def name(board: Board, i: int) -> str:
    """By where it stands now."""
    return f"{board.code[i].opcode} at {16 * board.position[i]:#06x}"


def _wall(board: Board, position: int, outside: int) -> str | None:
    if position == outside:
        return "its basic block ends here: instructions stay in their block"
    return f"{name(board, board.order[position])} is pinned, and nothing passes it"


def _ties(board: Board, i: int, way: range) -> Iterator[Tie]:
    """What `Board.drag` takes along, in the order in which it is met."""
    graph = board.graphs[board.block_of[i]]
    edges = graph.successors if way.step < 0 else graph.predecessors
    taken = [i]
    for position in way:
        j = board.order[position]
        tied = edges.get(j, {})
        to = next((k for k in taken if k in tied), None)
        if to is not None:
            first, second = (j, to) if way.step < 0 else (to, j)
            reasons = sorted(tied[to].reasons)
            why = in_words(reasons, board.code[first], board.code[second])
            yield Tie(j, to, f"{why}, ≥ {tied[to].need} cycles" if tied[to].need > 1 else why)
            taken.append(j)
        elif (unit := next((k for k in taken if _of_one_unit(board, j, k)), None)) is not None:
            yield Tie(j, unit, _PADDING)
            taken.append(j)


def _of_one_unit(board: Board, j: int, k: int) -> bool:
    return j != k and (board.glued.get(j) == k or board.glued.get(k) == j)
