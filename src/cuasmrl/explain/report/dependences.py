"""What ties the instructions of a region together, for people: who needs whose result, and at what distance.

The edges are those of the board on the compiler's own schedule: what any legal order has to keep, but for
scoreboards, which a schedule may assign otherwise. An order that follows from other edges has no edge.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import astuple, dataclass
from typing import Any

from cuasmrl.binary.sass import Instruction, Listing
from cuasmrl.binary.sass.registers import file_of, name_of
from cuasmrl.schedule import Board, Reason

_TOLD = (Reason.REGISTER, Reason.MEMORY, Reason.SYNC, Reason.QUEUE, Reason.WARP, Reason.PIPE)


@dataclass(frozen=True)
class Dependence:
    first: int
    """By number in the original listing, as is the second."""
    second: int
    need: int
    """Cycles at least from the first to the second; 0 where only the order counts, or a scoreboard tells."""
    what: str
    """Such as `RAW R8-R11`, `memory`."""

    def as_row(self) -> list[Any]:
        return list(astuple(self))


def dependences_of(listing: Listing, inside: Collection[int]) -> tuple[Dependence, ...]:
    """Those between instructions of a region, given by their numbers in the listing."""
    wanted, board = frozenset(inside), Board(listing)
    return tuple(_dependences(board, wanted))


def _dependences(board: Board, wanted: frozenset[int]) -> Iterator[Dependence]:
    for first in sorted(wanted):
        block = board.blocks[board.block_of[first]]
        edges = board.graphs[block.number].successors.get(first, {})
        for second in sorted(wanted.intersection(edges)):
            reasons = [reason for reason in _TOLD if reason in edges[second].reasons]
            if reasons:
                what = in_words(reasons, board.code[first], board.code[second])
                yield Dependence(first, second, edges[second].need, what)


def in_words(reasons: Iterable[Reason], first: Instruction, second: Instruction) -> str:
    """What keeps two instructions in order, such as `RAW R8-R11, memory`."""
    return ", ".join(_registers(first, second) if r is Reason.REGISTER else str(r) for r in reasons)


def _registers(first: Instruction, second: Instruction) -> str:
    """The hazards with their registers."""
    defs, later_defs = ({access.register for access in i.defs} for i in (first, second))
    uses, later_uses = ({access.register for access in i.uses} for i in (first, second))
    hazards = (("RAW", defs & later_uses), ("WAR", uses & later_defs), ("WAW", defs & later_defs))
    return ", ".join(f"{name} {_named(shared)}" for name, shared in hazards if shared) or "register"


def _named(registers: Collection[int]) -> str:
    """Neighbours as one: R8-R11."""
    runs: list[list[int]] = []
    for register in sorted(registers):
        if runs and register == runs[-1][-1] + 1 and file_of(register) is file_of(runs[-1][0]):
            runs[-1].append(register)
        else:
            runs.append([register])
    return " ".join("-".join(dict.fromkeys((name_of(run[0]), name_of(run[-1])))) for run in runs)
