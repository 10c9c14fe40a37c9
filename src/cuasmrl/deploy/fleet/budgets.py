"""Who gets the next evaluations: first everybody a little, then whoever gained most by the last ones.

What counts is the program: a kernel's share of its time, times what it may still gain. All of it is decided
between rounds from what has been found and not from who was done first: any number of workers does the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

_DECAY = 0.5
"""Of what the last slice gained, the next is expected to gain this much."""
_BARREN = 0.05
"""Of its headroom, a kernel whose first slice gained nothing is expected to gain this much by the second."""
_UNTRIED = 0.25
"""Of its headroom, a kernel that was not played on yet is expected to gain this much by its first slice."""


@dataclass(frozen=True)
class Standing:
    """Of one kernel."""

    weight: float
    """Its share of the program's time."""
    headroom: float
    """What it can gain at most."""
    gains: tuple[float, ...] = field(default=())
    """After each slice."""
    is_over: bool = False
    """It takes no more: nothing is left to try, or it failed."""

    @property
    def promise(self) -> float:
        """By how much the program may get faster by its next slice."""
        if self.is_over:
            return 0.0
        if not self.gains:
            return self.weight * _UNTRIED * self.headroom
        left = max(0.0, self.headroom - self.gains[-1])
        *_, before, last, now = (0.0, 0.0, *self.gains)
        expected = _DECAY * max(0.0, now - last, _DECAY * (last - before))
        if len(self.gains) == 1:
            # A search of few evaluations may well find nothing at first.
            expected = max(expected, _BARREN * left)
        return self.weight * min(left, expected)


def next_round(standings: Mapping[str, Standing], slices_left: int, width: int) -> list[str]:
    """The kernels that get a slice each in the next round, the most promising first.

    In the first round that is every kernel, as far as slices go; later `width` of them, or as many as promise
    anything. A kernel that gained nothing twice in a row gets no more.
    """
    untried = [name for name, one in standings.items() if not one.gains and not one.is_over]
    chosen = untried or [name for name, one in standings.items() if one.promise > 0]
    order = sorted(chosen, key=lambda name: (-standings[name].promise, name))
    return order[: slices_left if untried else min(width, slices_left)]
