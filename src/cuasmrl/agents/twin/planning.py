"""Plans: climbs in the twin, and the best of many single moves there."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from cuasmrl.agents.policy.advice import Advised
from cuasmrl.agents.policy.advice import Trust as Advice
from cuasmrl.agents.proposals import Mix, Proposals, Walk
from cuasmrl.agents.ranking import Ranker
from cuasmrl.agents.twin.guess import Guess
from cuasmrl.errors import CuasmrlError
from cuasmrl.game import Clock, Game
from cuasmrl.gpu.devices import Rival
from cuasmrl.gpu.devices.objective import PLANNING_SEEDS
from cuasmrl.gpu.devices.panel import Condition, Panel
from cuasmrl.gpu.profile import Profile, replayed
from cuasmrl.gpu.timing.uncertainty import Gain
from cuasmrl.schedule import Schedule

_TRIES = 400
"""Moves beyond those wanted that may lead to nothing new."""
_NOISE_SAMPLE = 12


@dataclass(frozen=True)
class Plan:
    """A schedule that the device has yet to see, and where it came from."""

    schedule: Schedule
    start: Schedule
    ran_out: bool | None = None
    """Did its replays end before it had as many improvements as it should? None for single moves."""
    is_direct: bool = False
    """A move that was not looked at in the twin."""


class TwinTimer:
    """The clock of the twin: replays under guesses instead of evaluations."""

    device, unit = "twin", "modelled cycles"
    finalists, cost = 1, 1.0

    def __init__(self, panel: Panel) -> None:
        self.panel = panel

    def time(self, schedule: Schedule, rival: Rival | None = None) -> float:
        return self.panel.time(schedule, rival)

    def times(self, schedules: Sequence[Schedule], rival: Rival | None = None) -> list[float]:
        return [self.time(schedule, rival) for schedule in schedules]

    def pick(self, old: Schedule, candidates: Sequence[Schedule]) -> Schedule:
        raise CuasmrlError("nothing is picked by a twin: only the device decides")

    def confirm(self, old: Schedule, new: Schedule) -> Gain:
        raise CuasmrlError("nothing is confirmed by a twin: only the device decides")


class TwinGame(Game):
    """A game in the twin: its clock is the twin's, and so is the profile that proposals go by."""

    def __init__(self, game: Game) -> None:
        self.guess: Guess | None = None
        super().__init__(game.board.listing, game.clock, game.traced, scoreboards=game.board.scoreboards)

    def profile(self, schedule: Schedule) -> Profile:
        if self.guess is None:
            return super().profile(schedule)
        return replayed(self.guess.model, schedule, PLANNING_SEEDS[0])


class Planner:
    """Plays in the twin, on one board."""

    def __init__(
        self, game: Game, rng: random.Random, mix: Mix, seeds: int, ranker: Ranker | None = None
    ) -> None:
        """Each guess is replayed under so many seeds; with a ranker most moves are of its choice."""
        self.game = TwinGame(game)
        self.rng = rng
        self.mix = mix
        self.seeds = seeds
        self.ranker = ranker
        self.proposals = self._proposals()
        """Of all climbs: how far the ranker is followed is learnt from one to the next."""
        self.noise = 0.0
        """How much conditions differ about a single move."""

    def learn_noise(self, guesses: Sequence[Guess]) -> None:
        panel = self._panel(guesses)
        moved = self.neighbours(self.game.original, _NOISE_SAMPLE, guesses[0])
        if len(panel.conditions) > 1 and moved:
            self.noise = median(float(np.std(panel.ratios(schedule), ddof=1)) for schedule in moved)

    def plan(
        self, start: Schedule, guesses: Sequence[Guess], length: int, replays: int, aside: int = 0
    ) -> Plan:
        """Climb from a schedule under these guesses until so many improvements are made, or replays.

        The climb begins so many random moves aside of it.
        """
        self.game.guess = guesses[0]
        panel = self._panel(guesses)
        self.game.clock = Clock(TwinTimer(panel), self.game.original, replays)
        walk = Walk(self.game, self.rng, self.mix)
        walk.proposals = self.proposals
        walk.go_to(start)
        if aside:
            time = walk.propose(aside)
            if time is not None:
                walk.keep(time)
        improved = 0
        while improved < length and panel.replays < replays and not self.game.clock.is_over:
            time = walk.propose()
            if time is None:
                break
            if time <= walk.time:
                improved += time < walk.time
                walk.keep(time)
            else:
                walk.take_back()
        return Plan(walk.schedule, start, ran_out=improved < length)

    def neighbours(self, start: Schedule, count: int, guess: Guess) -> list[Schedule]:
        """Different schedules that are one random move away."""
        self.game.guess = guess
        proposals = self._proposals()
        proposals.look(start)
        self.game.back_to(start)
        found: dict[bytes, Schedule] = {}
        for _ in range(_TRIES + count):
            if len(found) == count:
                break
            if proposals.play() is not None:
                schedule = self.game.schedule
                if schedule.key != start.key:
                    found.setdefault(schedule.key, schedule)
                self.game.back_to(start)
        return list(found.values())

    def _proposals(self) -> Proposals:
        if self.ranker is None:
            return Proposals(self.game, self.rng, self.mix)
        return Advised(self.game, self.rng, self.mix, self.ranker, Advice())

    def _panel(self, guesses: Sequence[Guess]) -> Panel:
        conditions = [
            Condition(guess.model, seed, guess.model.resident)
            for seed in self.rng.sample(PLANNING_SEEDS, self.seeds)
            for guess in guesses
        ]
        return Panel(conditions, self.game.original, self.noise)
