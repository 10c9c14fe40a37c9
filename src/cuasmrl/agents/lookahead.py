"""A climb with more than one core: the device begins with the next proposals while it times the first.

Most proposals of a climb are refused, so those that would follow are known before the answer is there. Each
is drawn on the board, handed to the device, and taken back. Answers are taken in order. When a proposal is
kept, what was drawn behind it is forgotten and the proposals go back to where they were: the climb
takes the way that it takes on one core, and what was forgotten was never counted.
"""

from __future__ import annotations

from collections import deque
from typing import Any, NamedTuple

from cuasmrl.agents.proposals import Walk
from cuasmrl.schedule import Schedule


class _Drawn(NamedTuple):
    schedule: Schedule | None
    """None if moves led to nothing."""
    state: Any
    """Of the proposals, behind it."""


class Lookahead:
    """A walk whose next single moves are proposed before they are asked for."""

    def __init__(self, walk: Walk) -> None:
        self.walk = walk
        self._waiting: deque[_Drawn] = deque()
        self._state = walk.proposals.state()
        """Of the proposals, behind the one that was taken last."""

    def propose(self, moves: int = 1) -> float | None:
        """As `Walk.propose`."""
        walk, clock = self.walk, self.walk.game.clock
        if moves != 1 or clock.ahead < 2:
            self._forget()
            return walk.propose(moves)
        while len(self._waiting) < min(clock.ahead, clock.budget - clock.spent):
            self._waiting.append(self._draw())
            if self._waiting[-1].schedule is None:
                break
        first = self._waiting.popleft()
        self._state = first.state
        return None if first.schedule is None else walk.take(first.schedule)

    def keep(self, time: float) -> None:
        self._forget()
        self.walk.game.back_to(self.walk.proposed)
        self.walk.keep(time)

    def take_back(self) -> None:
        self.walk.take_back()

    def go_to(self, schedule: Schedule) -> None:
        self._forget()
        self.walk.go_to(schedule)

    def _draw(self) -> _Drawn:
        walk = self.walk
        schedule = walk.draw()
        if schedule is not None:
            walk.game.clock.announce(schedule, walk.schedule)
        walk.take_back()
        return _Drawn(schedule, walk.proposals.state())

    def _forget(self) -> None:
        if self._waiting:
            self._waiting.clear()
            self.walk.game.clock.withdraw()
            self.walk.proposals.set_state(self._state)
