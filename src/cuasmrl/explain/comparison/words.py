"""The largest changes in words: what moved or stalls otherwise, and who waits less for it or more."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice

from cuasmrl.binary.cubin import WORD_BYTES
from cuasmrl.explain.comparison.changes import InstructionChange
from cuasmrl.explain.waits.charges import BY_PREDECESSOR
from cuasmrl.gpu.timing import REASON_NAMES, Reason
from cuasmrl.schedule import Schedule

_SENTENCES = 6
_SMALL = 0.02
"""Changes below this share of the largest one are not worth a sentence."""
_HELD_UP = {REASON_NAMES[reason] for reason in BY_PREDECESSOR}


def sentences(changes: Sequence[InstructionChange], before: Schedule, after: Schedule) -> tuple[str, ...]:
    """Sentences for the largest changes that have an explanation; they come first in `changes`."""
    return tuple(islice(_sentences(changes, _Pair(before, after)), _SENTENCES))


def _sentences(changes: Sequence[InstructionChange], pair: _Pair) -> Iterator[str]:
    for change in changes:
        if abs(change.change) < _SMALL * abs(changes[0].change):
            return
        sentence = pair.sentence(change)
        if sentence is not None:
            yield sentence


@dataclass(frozen=True)
class _Pair:
    before: Schedule
    after: Schedule

    @cached_property
    def up(self) -> dict[int, int]:
        """How many positions each instruction moved up."""
        to = {i: position for position, i in enumerate(self.after.order)}
        return {i: position - to[i] for position, i in enumerate(self.before.order)}

    @cached_property
    def address(self) -> dict[int, int]:
        return {i: WORD_BYTES * position for position, i in enumerate(self.before.order)}

    def sentence(self, change: InstructionChange) -> str | None:
        """None where nothing that was done to the schedule explains the change."""
        i, grew = change.index, change.reason_change > 0
        amount = f"{abs(change.reason_change):,.0f} warp cycles {'more' if grew else 'less'}"
        stalls = self.before.controls[i].stall, self.after.controls[i].stall
        if change.reason == REASON_NAMES[Reason.STALL] and stalls[0] != stalls[1]:
            return f"{self.name(i)} has stall count {stalls[1]} instead of {stalls[0]}: {amount}"
        if change.reason in _HELD_UP:
            return self.if_moved(i, f"what follows it waits {amount} ({change.reason})")
        # Where it waits longer shows best whom it waits for.
        causes = change.cause_before, change.cause_after
        cause = causes[grew] if causes[grew] is not None else causes[not grew]
        if cause is None or cause == i:
            return self.if_moved(i, f"it waits {amount} ({change.reason})")
        # The producer coming sooner and the consumer coming later both shorten a wait.
        sign = -1 if grew else 1
        sooner, later = sign * self.up[cause], -sign * self.up[i]
        if sooner > 0 and sooner >= later:
            return self.if_moved(cause, f"{self.name(i)} waits {amount} for it ({change.reason})")
        if later > 0:
            return self.if_moved(i, f"it waits {amount} for {self.name(cause)} ({change.reason})")
        return f"{self.name(i)} waits {amount} for {self.name(cause)} ({change.reason})"

    def name(self, i: int) -> str:
        return f"{self.before.listing.instructions[i].opcode} at {self.address[i]:#06x}"

    def if_moved(self, i: int, rest: str) -> str | None:
        positions = abs(self.up[i])
        if not positions:
            return None
        way = "up" if self.up[i] > 0 else "down"
        return f"{self.name(i)} moved {way} {positions} position{'s' if positions > 1 else ''}: {rest}"
