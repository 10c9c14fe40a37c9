"""How far the twin is trusted: how long plans are, and how many evaluations go to moves that it did not see."""

from __future__ import annotations

from collections import deque


class Trust:
    """Realised over predicted gain of the latest plans, and the length of the next."""

    def __init__(self, length: int, longest: int, remembered: int, enough: float) -> None:
        self.first = length
        self.longest = longest
        self.enough = enough
        self.length = length
        """Improvements in the twin that a plan should make."""
        self._plans: deque[tuple[float, float]] = deque(maxlen=remembered)

    def judge(self, predicted: float, realised: float) -> None:
        """A plan has been evaluated: by how much it was to be faster than its start, and by how much it was."""
        self._plans.append((predicted, realised))

    def adapt(self, has_gained: bool) -> None:
        """Longer plans as long as one of a batch is better than all before."""
        self.length = min(self.longest, 2 * self.length) if has_gained else max(1, self.length // 2)

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
