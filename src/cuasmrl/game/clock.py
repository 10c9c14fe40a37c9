"""The clock of a game: times each schedule once, counts what that cost, remembers the best."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush

from cuasmrl.errors import CuasmrlError
from cuasmrl.gpu.devices import Eager, Rival, Timer
from cuasmrl.schedule import Schedule

_LATE = 0.6
"""Share of the best gain that a finalist has at least."""
_STOPS = 6
"""Finalists on the way to the best schedule."""
_FIELD = 64
"""Fastest schedules that are kept."""


@dataclass(frozen=True)
class Evaluation:
    """One schedule that the device has timed."""

    number: int
    """Counted from 1; the original is not counted."""
    key: bytes
    time: float
    """Infinite if the device could not time it."""
    is_best: bool


class BudgetSpentError(CuasmrlError):
    """No evaluation is left: the player has to stop."""


class Clock:
    """A budget is a number of device evaluations; a schedule seen before costs nothing.

    Every schedule a player visits is timed, and the best *visited* one is kept, not the last.
    """

    def __init__(
        self,
        timer: Timer,
        original: Schedule,
        budget: int,
        known: Mapping[bytes, float] | None = None,
        listener: Callable[[Evaluation], None] | None = None,
    ) -> None:
        if budget < 1:
            raise CuasmrlError(
                f"a budget of {budget} evaluations leaves nothing to play with; give at least 1"
            )
        self.timer = timer
        self._eager = timer if isinstance(timer, Eager) else None
        self.budget = budget
        self.original = original
        self.known = dict(known or {})
        """Times from an interrupted run: taken instead of asking the device, and counted all the same."""
        self.listener = listener
        self.spent = 0
        self._times: dict[bytes, float] = {}
        self.start = self._measure([original], None)[0]
        self._times[original.key] = self.start
        self.best, self.best_time = original, self.start
        self._improvements: list[Schedule] = []
        self._field: list[tuple[float, int, Schedule]] = []
        """The fastest so far, by minus their time and their number: a heap with the slowest on top."""

    @property
    def is_over(self) -> bool:
        return self.spent >= self.budget

    @property
    def gain(self) -> float:
        """Of the best schedule so far, as the searching timer sees it."""
        return self.start / self.best_time - 1

    def time(self, schedule: Schedule, rival: Schedule | None = None) -> float:
        """How long a schedule takes, for ever if the device refuses it; raises when the budget is spent.

        Whoever only wants to know whether it beats a schedule that was timed before names that as its rival:
        then a time above the rival's may be a rough one.
        """
        found = self._times.get(schedule.key)
        if found is not None:
            return found
        if self.is_over:
            raise BudgetSpentError(f"all {self.budget} evaluations are spent")
        return self._enter(schedule, self._measure([schedule], rival)[0])

    def times(self, schedules: Sequence[Schedule], rival: Schedule | None = None) -> list[float]:
        """As `time` for each in turn, but the device is asked about all new ones at once, on all cores.

        Where the budget ends, so does the list; raises if it ends before the first. The rival must have been
        timed before.
        """
        new = {s.key: s for s in schedules if s.key not in self._times}
        asked = list(new.values())[: self.budget - self.spent]
        measured = dict(zip(new, self._measure(asked, rival), strict=False))
        times: list[float] = []
        for schedule in schedules:
            found = self._times.get(schedule.key)
            if found is None and schedule.key not in measured:
                break
            times.append(self._enter(schedule, measured[schedule.key]) if found is None else found)
        if schedules and not times:
            raise BudgetSpentError(f"all {self.budget} evaluations are spent")
        return times

    @property
    def ahead(self) -> int:
        """How many schedules are worth announcing; 1 for a device that begins when it is asked."""
        return 1 if self._eager is None else self._eager.ahead

    def announce(self, schedule: Schedule, rival: Schedule | None = None) -> None:
        """It will be asked for soon, unless it is withdrawn: the device may begin. This costs nothing."""
        if self._eager is not None and schedule.key not in self._times and schedule.key not in self.known:
            time = math.inf if rival is None else self._times[rival.key]
            self._eager.announce(schedule, None if rival is None or math.isinf(time) else Rival(rival, time))

    def withdraw(self, schedules: Sequence[Schedule]) -> None:
        """They were announced, and will not be asked for."""
        if self._eager is not None:
            self._eager.withdraw(schedules)

    def finalists(self, count: int) -> list[Schedule]:
        """The best schedule, up to five on the way to it, and for more than six the fastest of the others.

        The last steps of a search may fit its seeds only; and where seeds differ by more than schedules, one
        that looked a little slower may well be the better one.
        """
        found = self._improvements
        late = [s for s in found if self.start - self._times[s.key] >= _LATE * (self.start - self.best_time)]
        stops = min(count, _STOPS)
        stride = max(1, (len(late) - 1) // max(1, stops - 1))
        chosen = late[::-1][::stride][:stops]
        keys = {s.key for s in chosen}
        others = [s for *_, s in sorted(self._field, reverse=True) if s.key not in keys]
        return chosen + others[: count - stops]

    def has_seen(self, schedule: Schedule) -> bool:
        return schedule.key in self._times

    def _enter(self, schedule: Schedule, time: float) -> float:
        """Count an evaluation."""
        self.spent += 1
        self._times[schedule.key] = time
        self._keep(time, schedule)
        is_best = time < self.best_time
        if is_best:
            self.best, self.best_time = schedule, time
            self._improvements.append(schedule)
        if self.listener is not None:
            self.listener(Evaluation(self.spent, schedule.key, time, is_best))
        return time

    def _keep(self, time: float, schedule: Schedule) -> None:
        """Take it up if it is one of the fastest; of equals the later ones stay."""
        if time < self.start:
            heappush(self._field, (-time, self.spent, schedule))
            if len(self._field) > _FIELD:
                heappop(self._field)

    def _measure(self, schedules: Sequence[Schedule], rival: Schedule | None) -> list[float]:
        """Known times are taken as they are, the device is asked for the others."""
        time = math.inf if rival is None else self._times.get(rival.key, math.inf)
        unknown = [schedule for schedule in schedules if schedule.key not in self.known]
        asked = iter(
            self.timer.times(unknown, None if rival is None or math.isinf(time) else Rival(rival, time))
        )
        return [self.known[s.key] if s.key in self.known else next(asked) for s in schedules]
