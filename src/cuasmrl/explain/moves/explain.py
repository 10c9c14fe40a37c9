"""From a winning schedule to the few changes that make it fast, each with what it saves and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, TypeAlias

from cuasmrl.explain.comparison import ReasonChange, compare
from cuasmrl.explain.moves.changes import Retime, instructions_of
from cuasmrl.explain.moves.decompose import Decomposition
from cuasmrl.explain.moves.excerpts import Line, excerpt
from cuasmrl.explain.moves.judge import SEEDS, Judge, Limit, of_model, sampler
from cuasmrl.explain.moves.minimise import Minimum, minimise
from cuasmrl.explain.moves.opinion import Opinion
from cuasmrl.explain.moves.patterns import Pattern, Scenery
from cuasmrl.explain.moves.story import Step, shares_of, steps_of
from cuasmrl.explain.moves.words import deed, effects
from cuasmrl.gpu.devices import Timer, VirtualTimer
from cuasmrl.gpu.timing.uncertainty import Gain
from cuasmrl.gpu.traced import TracedKernel
from cuasmrl.schedule import Schedule

Advance: TypeAlias = Callable[[int, int], None]
"""Hears how many steps of how many are explained."""


@dataclass(frozen=True)
class ExplainedMove:
    """A step of the story."""

    pattern: Pattern
    deed: str
    effects: tuple[str, ...]
    in_order: float
    """What it saves where it stands in the story; these sum to the whole gain."""
    share: float
    """What it saves in the mean over other orders of the steps; these sum to the whole gain too."""
    alone: float | None
    """What it saves if nothing but the retimings is done too; None if it is not legal alone."""
    without: float | None
    """What is lost if only it is left out, with those that need it; None if the rest is not legal, or implies
    it, as relocations imply the retiming of their block."""
    needed_by: int
    """How many others go with it."""
    reasons: tuple[ReasonChange, ...]
    """Their changes sum to what it saves in order, in modelled cycles."""
    way: str | None
    """Of what moved: what stood around it, such as `from behind a barrier to between tensor products`."""
    lines: tuple[Line | None, ...]
    block: int
    """Its number."""
    instructions: tuple[int, ...]
    """What it is about, by number in the original listing; none for a whole block."""
    policy: float | None = None
    """Share of all moves from there that the policy ranks below it; None if it cannot judge it."""


@dataclass(frozen=True)
class Explanation:
    kernel: str
    config: str
    device: str
    unit: str
    changes: tuple[tuple[str, int], ...]
    """What the winner consists of, by name."""
    replaced: int
    """Blocks that could not be taken apart."""
    original: float
    winner: float
    minimal: float
    """With the changes that were kept."""
    tolerance: float
    tried: int
    gain: Gain
    """Of the changes kept, under conditions that neither the search nor this explanation has seen."""
    moves: tuple[ExplainedMove, ...]
    schedule: Schedule

    @property
    def saved(self) -> float:
        return self.original - self.minimal

    def as_dict(self) -> dict[str, Any]:
        return {
            "kernel": self.kernel,
            "config": self.config,
            "device": self.device,
            "unit": self.unit,
            "changes": dict(self.changes),
            "blocks_replaced": self.replaced,
            "original": self.original,
            "winner": self.winner,
            "minimal": self.minimal,
            "tolerance": self.tolerance,
            "selections_tried": self.tried,
            "gain": asdict(self.gain),
            "moves": [asdict(move) for move in self.moves],
            "schedule": self.schedule.digest,
        }


def silent(done: int, total: int) -> None:
    """For those who need no progress."""


def explain(
    kernel: TracedKernel,
    winner: Schedule,
    timer: Timer,
    advance: Advance = silent,
    limit: Limit | None = None,
) -> Explanation:
    """Take a schedule apart, drop what does nothing, and say what the rest does."""
    whole = Decomposition(kernel.original, winner)
    quick = Judge(sampler(timer), kernel.original, winner, limit)
    judge = quick
    if isinstance(timer, VirtualTimer):
        judge = Judge(of_model(timer.whole), kernel.original, winner, limit)
    minimum = minimise(whole, judge, quick)
    steps = steps_of(whole, minimum.changes, quick)
    teller = _Teller(kernel, whole, minimum, judge)
    moves: list[ExplainedMove] = []
    for step, share in zip(steps, shares_of(whole, steps, judge), strict=True):
        moves.append(teller.move(step, share))
        advance(len(moves), len(steps))
    return Explanation(
        kernel.name,
        kernel.config,
        timer.device,
        timer.unit,
        tuple(sorted(Counter(type(change).__name__ for change in whole.changes).items())),
        len(whole.replaced),
        judge.time(kernel.original),
        judge.time(winner),
        judge.time(minimum.built.schedule),
        judge.tolerance,
        minimum.tried,
        timer.confirm(kernel.original, minimum.built.schedule),
        tuple(moves),
        minimum.built.schedule,
    )


class _Teller:
    def __init__(self, kernel: TracedKernel, whole: Decomposition, minimum: Minimum, judge: Judge) -> None:
        self.kernel = kernel
        self.whole = whole
        self.minimum = minimum
        self.judge = judge
        self.scenery = Scenery(whole.board)
        self.opinion = Opinion(kernel, whole.board.scoreboards)
        self.retimings = frozenset(change for change in minimum.changes if isinstance(change, Retime))

    def move(self, step: Step, share: float) -> ExplainedMove:
        found = compare(self.kernel.model, step.before, step.after, SEEDS)
        block = self.whole.board.blocks[self.scenery.block_of(step.changes[0])]
        without, needed_by = self._without(step)
        about = {i for change in step.changes for i in instructions_of(change)}
        return ExplainedMove(
            self.scenery.pattern(step),
            deed(step, self.scenery),
            effects(found, self.kernel.listing),
            self.judge.time(step.before) - self.judge.time(step.after),
            share,
            self._alone(step),
            without,
            needed_by,
            found.reasons,
            self.scenery.way(step),
            excerpt(step.before, step.after, block, about),
            block.number,
            tuple(sorted(about)),
            self.opinion.rank(step.before, step.after, about),
        )

    def _alone(self, step: Step) -> float | None:
        before = self.retimings.difference(step.changes)
        parts = self.whole.build(before), self.whole.build(before.union(step.changes))
        if parts[0] is None or parts[1] is None or not parts[1].changes.issuperset(step.changes):
            return None
        return self.judge.time(parts[0].schedule) - self.judge.time(parts[1].schedule)

    def _without(self, step: Step) -> tuple[float | None, int]:
        rest = self.minimum.changes.difference(step.changes)
        built = self.whole.build(rest)
        if built is None or built.schedule.key == self.minimum.built.schedule.key:
            return None, 0
        loss = self.judge.time(built.schedule) - self.judge.time(self.minimum.built.schedule)
        return loss, len(rest) - len(built.changes)
