"""What a winning schedule consists of: changes, of which any may be left out or come before others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from cuasmrl.explain.moves.rearrangement import Unit
from cuasmrl.schedule import SetReuse, SetStall, SetYield


@dataclass(frozen=True, slots=True)
class Retime:
    """The compiler's stall counts of a block give way to the smallest; the order stays."""

    block: int


@dataclass(frozen=True, slots=True)
class Relocate:
    """A unit goes to where the winner has it, as far as those around it are there."""

    block: int
    unit: Unit


@dataclass(frozen=True, slots=True)
class Replace:
    """All of a block becomes the winner's at once, where single changes do not lead there."""

    block: int


Change: TypeAlias = Retime | Relocate | Replace | SetStall | SetYield | SetReuse


def instructions_of(change: Change) -> Unit:
    """Those that a change is about, if it is not a whole block."""
    match change:
        case Relocate(unit=unit):
            return unit
        case SetStall(i) | SetYield(i) | SetReuse(i):
            return (i,)
    return ()
