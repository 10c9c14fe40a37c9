"""A climb that keeps several cores busy: the device begins with the next proposals while it times the first.

Two things make that possible. A climb may have a *lag*: so many proposals are drawn before the answer about
the one before them is taken, on any number of cores, so they are certain to be asked for. And most proposals
are refused, so those that would follow are known before the answer is there: they are drawn on the board,
announced to the device, and taken back. Answers are taken in order. When one is kept, what was drawn behind
the certain ones is forgotten and the proposals go back to where they were: the climb takes the way that it
takes on one core, and what was forgotten was never counted.
"""

from __future__ import annotations

from collections import deque
from typing import Any, NamedTuple

from cuasmrl.agents.proposals import Walk
from cuasmrl.schedule import Schedule


class _Drawn(NamedTuple):
    schedule: Schedule | None
    """None if moves led to nothing."""
    rival: Schedule
    """Where it was drawn from."""
    state: Any
    """Of the proposals, behind it."""


class Lookahead:
    """A walk whose next single moves are proposed before they are asked for."""

    def __init__(self, walk: Walk, lag: int = 0) -> None:
        self.walk = walk
        self.lag = lag
        self._waiting: deque[_Drawn] = deque()
        self._state = walk.proposals.state()
        """Of the proposals, behind the one that was taken last."""

    def propose(self, moves: int = 1) -> float | None:
        """As `Walk.propose`."""
        walk, clock = self.walk, self.walk.game.clock
        if moves != 1:
            self._forget(0)
            return walk.propose(moves)
        # Those within the lag are drawn whatever the budget is: a run that is continued must draw them too.
        depth = max(self.lag + 1, min(clock.ahead, clock.budget - clock.spent))
        while len(self._waiting) < depth:
            self._waiting.append(self._draw())
            if self._waiting[-1].schedule is None:
                break
        first = self._waiting.popleft()
        self._state = first.state
        return None if first.schedule is None else walk.take(first.schedule, first.rival)

    def keep(self, time: float) -> None:
        self._forget(self.lag)
        self.walk.proposals.recall(self._state)
        self.walk.game.back_to(self.walk.proposed)
        self.walk.keep(time)

    def take_back(self) -> None:
        self.walk.take_back()

    def go_to(self, schedule: Schedule) -> None:
        self._forget(0)
        self.walk.go_to(schedule)

    def _draw(self) -> _Drawn:
        walk = self.walk
        schedule = walk.draw()
        if schedule is not None and len(self._waiting) < walk.game.clock.budget - walk.game.clock.spent:
            walk.game.clock.announce(schedule, walk.schedule)
        walk.take_back()
        return _Drawn(schedule, walk.schedule, walk.proposals.state())

    def _forget(self, but: int) -> None:
        """What was drawn behind so many."""
        forgotten = [self._waiting.pop() for _ in range(len(self._waiting) - but)]
        if forgotten:
            self.walk.game.clock.withdraw(
                [drawn.schedule for drawn in forgotten if drawn.schedule is not None]
            )
            self.walk.proposals.set_state(self._waiting[-1].state if self._waiting else self._state)
