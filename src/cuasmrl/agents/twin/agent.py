"""An agent that learns the machine while it plays: it plans in a twin of the device, fitted to its times.

The device is asked about finished plans only, a batch at a time. Each comes from a climb in the twin: in the
model of the kernel under a guess at the device's numbers, drawn from what is believed of them so far.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from cuasmrl.agents.agent import Agent
from cuasmrl.agents.greedy import Greedy
from cuasmrl.agents.policy import weights
from cuasmrl.agents.policy.agent import PolicyClimb
from cuasmrl.agents.policy.ranker import Policy
from cuasmrl.agents.proposals import Mix
from cuasmrl.agents.twin.beliefs import Beliefs, Seen, informative
from cuasmrl.agents.twin.guess import ITERATIONS, Guess
from cuasmrl.agents.twin.notes import Notes
from cuasmrl.agents.twin.numbers import sensitive
from cuasmrl.agents.twin.planning import Plan, Planner
from cuasmrl.agents.twin.trust import Trust
from cuasmrl.game import Game
from cuasmrl.gpu.traced import TracedKernel
from cuasmrl.schedule import Schedule

_SHORT = 2
"""Plans of so few improvements are no better than single moves, of which many can be compared."""
_SCALES = (1.0, 0.5, 1.0, 2.0)
"""Of the lengths of plans in a batch."""
_ATTEMPTS = 2
"""For each plan that is wanted: some come to nothing."""
_NEW = 10
"""One in so many times has to be new before the guesses are fitted again."""
_ASIDE = (2, 4, 8, 16)
"""Random moves with which a plan leaves where nothing helps any more."""


@dataclass(frozen=True)
class Twin:
    """Plans in models of the device that are fitted to its times, and times what comes out."""

    name: ClassVar[str] = "twin"

    batch: int = 4
    """Evaluations that the device is asked for at once."""
    guesses: int = 12
    """Sets of numbers that the device may have."""
    committee: int = 3
    """Guesses that a plan has to be good under."""
    seeds: int = 3
    """Seeds of the latency jitter for each of them, where several blocks share an SM."""
    fit_every: int = 8
    """Evaluations between two fits, later a tenth of all; 0: the guesses stay as the chip's file has them."""
    fitted: int = 40
    """Evaluations at most that a fit looks at."""
    fresh: int = 12
    """New guesses that join at each fit."""
    steps: int = 2
    """Metropolis steps of each guess at each fit."""
    length: int = 16
    """Improvements in the twin that the first plans make."""
    longest: int = 256
    """Improvements at most."""
    replays: int = 200
    """Of a plan at most; doubled while plans come to their end by it."""
    most_replays: int = 400
    """To which it is doubled."""
    drafts: int = 1
    """Plans that are made for each that is evaluated: those with the best prospects over all guesses."""
    starts: int = 4
    """Fastest schedules that plans start from."""
    singles: int = 80
    """Single moves that are compared where plans have become short."""
    remembered: int = 24
    """Plans that trust goes by."""
    trusted: float = 0.25
    """Realised over predicted gain below which half of all evaluations go to moves that no twin has seen."""
    stuck: int = 8
    """Evaluations without a gain after which every second plan begins aside of its start, and may take all
    replays."""
    patience: int = 40
    """Evaluations without a gain after which plans are long again."""
    plans: bool = True
    """Whether it plans at all; if not, single moves are compared in the twin."""
    mix: Mix = field(default_factory=Mix)
    """The moves of climbs."""
    policy: Path | None = weights.DEFAULT
    """Weights of a policy that chooses among the moves of climbs; none: the mix alone."""
    dear: float = 50.0
    """Replays that a time of the device has to cost: one that is cheaper is searched directly, without a
    twin, because a plan takes more replays than the times that it saves."""
    lag: int = 0
    """Moves that a direct search proposes before the answer about the one before them is taken."""
    notes: Path | None = field(default=None, compare=False)
    """Where it writes down how it went and what it believes; changes nothing in play."""

    def play(self, new_game: Callable[[], Game], seed: int) -> None:
        game = new_game()
        notes = Notes(self.notes)
        if game.traced is None:
            notes.say("the kernel cannot be replayed, so there is no twin of it: played by direct search")
            Greedy(mix=self.mix, lag=self.lag).play(lambda: game, seed)
            return
        if game.clock.timer.cost < self.dear:
            notes.remark("a time costs no more than a few replays, so the device itself is searched")
            self._climb().play(lambda: game, seed)
            return
        Play(self, game, game.traced, notes, random.Random(seed)).go()

    def _climb(self) -> Agent:
        if self.policy is None:
            return Greedy(mix=self.mix, lag=self.lag)
        return PolicyClimb(self.policy, mix=self.mix, lag=self.lag)


class Play:
    """One game."""

    def __init__(
        self, settings: Twin, game: Game, kernel: TracedKernel, notes: Notes, rng: random.Random
    ) -> None:
        self.settings = settings
        self.clock = game.clock
        self.notes = notes
        self.rng = rng
        nominal = Guess(kernel.part(ITERATIONS))
        seeds = 1 if nominal.model.resident == 1 else settings.seeds
        ranker = None if settings.policy is None else Policy.load(settings.policy)
        self.planner = Planner(game, rng, settings.mix, seeds, ranker)
        names = sensitive(nominal, self._sample(nominal)) if settings.fit_every else ()
        self.beliefs = Beliefs(nominal, names, settings.guesses, rng)
        self.planner.learn_noise(self.beliefs.draw(settings.committee))
        self.trust = Trust(
            settings.length, settings.longest, settings.replays, settings.most_replays, settings.remembered,
            settings.trusted,
        )  # fmt: skip
        self.seen: list[Seen] = []
        self.ranking = [(self.clock.start, 0, game.original)]
        """All schedules of finite time by time, the latest of equals first."""
        self.unfitted = 0
        self.last_gain = 0

    def go(self) -> None:
        """Until the budget is spent, or nothing new is to be found."""
        try:
            self._go()
        finally:
            if self.settings.fit_every:
                self.notes.keep_beliefs(self.beliefs.revealed())

    def _go(self) -> None:
        while not self.clock.is_over:
            batch = self._batch()
            if not batch:
                break
            before = self.clock.best_time
            times = self.clock.times([plan.schedule for plan in batch])
            for plan, time in zip(batch, times, strict=False):
                self._learn(plan, time)
            gained = self.clock.best_time < before
            if gained:
                self.last_gain = self.clock.spent
            self._adapt(batch, gained)
            if self.settings.fit_every:
                self._fit()

    def _batch(self) -> list[Plan]:
        """Different schedules that nobody has timed."""
        settings = self.settings
        direct = settings.batch // 2 if self.trust.is_low else 0
        thought = settings.batch - direct
        found = self._plans(thought) if settings.plans else []
        found += self._singles(thought - len(found), found)
        return found + self._direct(settings.batch - len(found), found)

    def _plans(self, count: int) -> list[Plan]:
        """Those that should be faster than the best; where plans are short, only one is tried."""
        is_short = self.trust.length <= _SHORT
        drafts: dict[bytes, tuple[float, int, Plan]] = {}
        wanted = (1 if is_short else count) * self.settings.drafts
        for k in range(_ATTEMPTS * wanted):
            if len(drafts) == wanted:
                break
            is_escape = self._is_stuck and (is_short or k % 2)
            plan = self._escape() if is_escape else self._plan(_SCALES[k % len(_SCALES)])
            expected = self._expected(plan)
            if not self.clock.has_seen(plan.schedule) and expected < self.clock.best_time:
                drafts.setdefault(plan.schedule.key, (expected, k, plan))
        return [plan for *_, plan in sorted(drafts.values(), key=lambda draft: draft[:2])[:count]]

    def _expected(self, plan: Plan) -> float:
        """The time of a plan, by that of its start and what all guesses say of the difference."""
        gain = self.beliefs.predict(plan.start) - self.beliefs.predict(plan.schedule)
        return self.clock.time(plan.start) * math.exp(-gain)

    def _plan(self, scale: float) -> Plan:
        guesses = self.beliefs.draw(self.settings.committee)
        length = max(1, round(self.trust.length * scale))
        return self.planner.plan(self._start(), guesses, length, self.trust.replays)

    def _escape(self) -> Plan:
        """Some random moves away from where nothing helps any more, and up again as far as it goes."""
        settings, guesses = self.settings, self.beliefs.draw(self.settings.committee)
        aside = self.rng.choice(_ASIDE)
        return self.planner.plan(self._start(), guesses, settings.longest, settings.most_replays, aside)

    @property
    def _is_stuck(self) -> bool:
        return self.clock.spent - self.last_gain >= self.settings.stuck

    def _singles(self, count: int, others: Sequence[Plan]) -> list[Plan]:
        """Of many moves those that the guesses like best."""
        if not count:
            return []
        start = self._start()
        new = self._unseen(start, self.settings.singles, others)
        committee = self.beliefs.draw(self.settings.committee)
        ranked = sorted(new, key=lambda schedule: sum(guess.predict(schedule) for guess in committee))
        return [Plan(schedule, start) for schedule in ranked[:count]]

    def _direct(self, count: int, others: Sequence[Plan]) -> list[Plan]:
        """Random moves from the best schedule."""
        if not count:
            return []
        start = self.ranking[0][2]
        new = self._unseen(start, 4 * count, others)
        return [Plan(schedule, start, is_direct=True) for schedule in new[:count]]

    def _unseen(self, start: Schedule, count: int, others: Sequence[Plan]) -> list[Schedule]:
        """Schedules a move away that neither the device nor anybody in this batch has."""
        taken = {plan.schedule.key for plan in others}
        moved = self.planner.neighbours(start, count, self.beliefs.draw(1)[0])
        return [s for s in moved if not self.clock.has_seen(s) and s.key not in taken]

    def _start(self) -> Schedule:
        """Mostly the best schedule so far; when nothing helps, others as well."""
        best = self.ranking[: self.settings.starts]
        share = 1 / len(best) if self._is_stuck else 0.5
        for *_, schedule in best:
            if self.rng.random() < share:
                return schedule
        return best[0][2]

    def _learn(self, plan: Plan, time: float) -> None:
        if not math.isfinite(time):
            return
        change = math.log(time / self.clock.start)
        self.seen.append(Seen(plan.schedule, change))
        self.unfitted += 1
        if not plan.is_direct:
            started = math.log(self.clock.time(plan.start) / self.clock.start)
            expected = math.log(self._expected(plan) / self.clock.start)
            self.trust.judge(started - expected, started - change)
        self.ranking.append((time, -len(self.seen), plan.schedule))
        self.ranking.sort(key=lambda entry: entry[:2])

    def _adapt(self, batch: Sequence[Plan], gained: bool) -> None:
        self.trust.adapt(gained, batch)
        idle = self.clock.spent - self.last_gain
        if idle and idle % self.settings.patience < self.settings.batch:
            self.trust.begin_again()
        self.notes.round(self.clock, self.trust)

    def _fit(self) -> None:
        """As soon as enough is new: the more has been seen, the less a few times more say."""
        enough = max(self.settings.fit_every, len(self.seen) // _NEW)
        if self.unfitted >= enough and len(self.seen) > 2 and self.beliefs.names:
            self.unfitted = 0
            chosen = informative(self.seen, self.settings.fitted)
            self.notes.fit(self.beliefs.fit(chosen, self.settings.fresh, self.settings.steps))

    def _sample(self, nominal: Guess) -> list[Schedule]:
        """Schedules of several moves, for finding out which numbers matter."""
        sample = []
        for _ in range(6):
            schedule = self.planner.game.original
            for _ in range(6):
                schedule = next(iter(self.planner.neighbours(schedule, 1, nominal)), schedule)
            sample.append(schedule)
        return sample
