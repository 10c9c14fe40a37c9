"""What many steps have in common, over one run or several: rules in words."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from cuasmrl.explain.moves.explain import ExplainedMove, Explanation
from cuasmrl.explain.moves.patterns import Pattern


@dataclass(frozen=True)
class Rule:
    pattern: Pattern
    moves: int
    runs: int
    kernels: tuple[str, ...]
    saved: float
    """What they save together in percent of the time of a kernel, mean over the runs that have such moves."""
    reason: str | None
    """What went away most, or came most where the moves cost something."""
    way: str | None
    """The commonest way, such as `from behind a barrier to between tensor products`."""
    way_count: int

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "text": self.text}

    @property
    def text(self) -> str:
        one = self.moves == 1
        verb = "save" if self.saved >= 0 else "cost"
        text = (
            f"{self.pattern.what}, {self.pattern.where}: {self.moves} move{'' if one else 's'}"
            + (f" in {self.runs} runs on {_kernels(len(self.kernels))}" if self.runs > 1 else "")
            + f" {verb}{'s' if one else ''} {abs(self.saved):.2f} %"
        )
        if self.reason:
            text += f" ({'less' if self.saved >= 0 else 'more'} {self.reason})"
        count = "all" if self.way_count == self.moves else str(self.way_count)
        return text + (f"; {count} of them {self.way}" if self.way_count > 1 else "")


def rules_of(explanations: Sequence[Explanation]) -> tuple[Rule, ...]:
    """Steps with the same pattern together, the most useful first."""
    found: dict[Pattern, list[tuple[Explanation, ExplainedMove]]] = defaultdict(list)
    runs: dict[Pattern, set[int]] = defaultdict(set)
    for run, explanation in enumerate(explanations):
        for move in explanation.moves:
            found[move.pattern].append((explanation, move))
            runs[move.pattern].add(run)
    rules = [_rule(pattern, examples, len(runs[pattern])) for pattern, examples in found.items()]
    return tuple(sorted(rules, key=lambda rule: (-rule.runs * rule.saved, rule.pattern)))


def _kernels(count: int) -> str:
    return "one kernel" if count == 1 else f"{count} kernels"


def _rule(pattern: Pattern, examples: Sequence[tuple[Explanation, ExplainedMove]], runs: int) -> Rule:
    saved = sum(100 * move.share / explanation.original for explanation, move in examples) / runs
    reasons: dict[str, float] = defaultdict(float)
    for explanation, move in examples:
        for reason in move.reasons:
            reasons[reason.reason] -= reason.change / explanation.original
    # By name where amounts are equal, so that the text does not depend on the order of the runs.
    sign = 1 if saved >= 0 else -1
    most = max(reasons, key=lambda name: (sign * reasons[name], name), default=None)
    ways = Counter(move.way for _, move in examples if move.way is not None)
    way = max(ways, key=lambda text: (ways[text], text), default=None)
    return Rule(
        pattern,
        len(examples),
        runs,
        tuple(sorted({f"{explanation.kernel} {explanation.config}" for explanation, _ in examples})),
        saved,
        most if most is not None and sign * reasons[most] > 0 else None,
        way,
        ways[way] if way is not None else 0,
    )
