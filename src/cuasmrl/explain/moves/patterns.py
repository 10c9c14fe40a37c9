"""What a step is an example of: which kind of instruction went which way past what, and where."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from cuasmrl.explain.moves.changes import Change, Relocate, Replace, Retime
from cuasmrl.explain.moves.kinds import Kind, kinds_of
from cuasmrl.explain.moves.loops import loops_of, where
from cuasmrl.explain.moves.story import Step
from cuasmrl.schedule import Board, Schedule, SetReuse, SetStall, SetYield


@dataclass(frozen=True, order=True)
class Pattern:
    """Equal for steps that do the same."""

    what: str
    """Such as `shared-memory loads moved up past tensor products`."""
    where: str
    """Such as `in the loop`."""


@dataclass(frozen=True)
class Passage:
    """An instruction on its way from one position of its block to another."""

    instruction: int
    start: int
    end: int
    passed: tuple[tuple[Kind, int], ...]
    """How many of which kind, those first that matter most."""
    origin: str
    destination: str
    """What stood around it, such as `behind a barrier`."""

    @property
    def is_up(self) -> bool:
        return self.end < self.start


class Scenery:
    """What is to be known of a kernel to put a step into words."""

    def __init__(self, board: Board) -> None:
        self.board = board
        self.kinds = kinds_of(board.listing)

    @cached_property
    def loops(self) -> tuple[range, ...]:
        return loops_of(self.board.blocks)

    def where(self, change: Change) -> str:
        return where(self.block_of(change), self.loops)

    def block_of(self, change: Change) -> int:
        if isinstance(change, SetStall | SetYield | SetReuse):
            return self.board.block_of[change.instruction]
        return change.block

    def passage(self, change: Relocate, step: Step) -> Passage:
        """What a unit passes in a step; padding counts with what it pads."""
        subject = change.unit[-1]
        before, after = step.before.order.index(subject), step.after.order.index(subject)
        low, high = (after, before) if after < before else (before, after)
        between = set(step.before.order[low : high + 1]) & set(step.after.order[low : high + 1])
        passed = Counter(self.kinds[i] for i in between if i not in change.unit and not self._is_padding(i))
        return Passage(
            subject,
            before,
            after,
            tuple(sorted(passed.items(), key=lambda entry: list(Kind).index(entry[0]))),
            self._surroundings(step.before, before),
            self._surroundings(step.after, after),
        )

    def pattern(self, step: Step) -> Pattern:
        change = step.changes[0]
        return Pattern(self._what(change, step), self.where(change))

    def way(self, step: Step) -> str | None:
        """From where to where, if an instruction moved and there is a difference."""
        change = step.changes[0]
        if not isinstance(change, Relocate):
            return None
        passage = self.passage(change, step)
        if passage.origin == passage.destination:
            return None
        return f"from {passage.origin} to {passage.destination}"

    def _what(self, change: Change, step: Step) -> str:
        match change:
            case Retime():
                return "stall counts brought to the smallest"
            case Replace():
                return "block rearranged as a whole"
            case Relocate():
                passage = self.passage(change, step)
                kind = self.kinds[passage.instruction]
                # Others of its kind say least about why.
                passed = sorted((other for other, _ in passage.passed), key=lambda other: other is kind)
                past = f" past {passed[0].plural}" if passed else ""
                return f"{kind.plural} moved {'up' if passage.is_up else 'down'}{past}"
            case SetStall(instruction, stall):
                way = "longer" if stall > step.before.controls[instruction].stall else "shorter"
                return f"{way} stall behind {self.kinds[instruction].plural}"
            case SetYield(instruction, yields):
                return f"yield hint {'given to' if yields else 'taken from'} {self.kinds[instruction].plural}"
            case SetReuse(instruction, keep):
                return f"reuse flags {'kept at' if keep else 'dropped at'} {self.kinds[instruction].plural}"

    def _surroundings(self, schedule: Schedule, position: int) -> str:
        """The nearest above and below in the block that are no arithmetic."""
        block = self.board.blocks[self.board.block_of[schedule.order[position]]]
        above = self._nearest(schedule.order[block.start : position][::-1])
        below = self._nearest(schedule.order[position + 1 : block.end])
        if above is None and below is None:
            return "among arithmetic"
        if above is below and above is not None:
            return f"between {above.plural}"
        if above in _FENCES and above is not None:
            return f"behind {above.counted(1)}"
        if below in _FENCES and below is not None:
            return f"ahead of {below.counted(1)}"
        if above is None or below is None:
            known = above or below
            assert known is not None
            return f"{'behind' if above else 'ahead of'} {known.counted(1)}"
        return f"between {above.counted(1)} and {below.counted(1)}"

    def _nearest(self, instructions: Sequence[int]) -> Kind | None:
        for i in instructions:
            if not self.kinds[i].is_arithmetic and not self._is_padding(i):
                return self.kinds[i]
        return None

    def _is_padding(self, i: int) -> bool:
        return self.board.code[i].is_dummy_load


_FENCES = (Kind.BARRIER, Kind.COPY_WAIT)
