"""How far the twin is trusted: how long plans are, and how many evaluations go to moves it did not see."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from cuasmrl.agents.twin.planning import Plan


class Trust:
    """Realised over predicted gain of the latest plans; length and cost of the next ones."""

    def __init__(
        self, length: int, longest: int, replays: int, most_replays: int, remembered: int, enough: float
    ) -> None:
        self.first = self.length = length
        """Improvements in the twin that a plan should make."""
        self.longest = longest
        self.fewest = self.replays = replays
        """That a plan may take."""
        self.most_replays = most_replays
        self.enough = enough
        self._plans: deque[tuple[float, float]] = deque(maxlen=remembered)

    def judge(self, predicted: float, realised: float) -> None:
        """A plan has been evaluated: how much faster than its start it was to be, and how much it was."""
        self._plans.append((predicted, realised))

    def adapt(self, has_gained: bool, batch: Sequence[Plan]) -> None:
        """Longer plans as long as one of a batch is better than all before, or else shorter ones.

        Where the twin has little to offer within its replays, it gets more of them.
        """
        self.length = min(self.longest, 2 * self.length) if has_gained else max(1, self.length // 2)
        ran_out = [plan.ran_out for plan in batch if plan.ran_out is not None]
        if 2 * sum(ran_out) > len(ran_out):
            self.replays = min(self.most_replays, 2 * self.replays)
        elif ran_out and not any(ran_out):
            self.replays = max(self.fewest, self.replays // 2)

    def begin_again(self) -> None:
        self.length = self.first

    @property
    def value(self) -> float | None:
        """None while too few plans have been seen; a plan that lost counts as one that gained nothing."""
        predicted = sum(max(0.0, before) for before, _ in self._plans)
        if 2 * len(self._plans) < (self._plans.maxlen or 0) or not predicted:
            return None
        return sum(max(0.0, after) for _, after in self._plans) / predicted

    @property
    def is_low(self) -> bool:
        return self.value is not None and self.value < self.enough
