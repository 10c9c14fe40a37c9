"""Moves that a ranker likes: a climb draws many, has them judged, and replays those first that look best."""

from __future__ import annotations

import random
from dataclasses import dataclass

import numpy as np

from cuasmrl.agents.policy.draws import Draws
from cuasmrl.agents.proposals import Mix, Proposals
from cuasmrl.agents.ranking import Ranker
from cuasmrl.game import Game
from cuasmrl.schedule import Drag, Schedule


@dataclass(frozen=True)
class Trust:
    """How far a ranker is followed."""

    drawn: int = 256
    """Moves that are judged at a time."""
    tried: int = 64
    """Of these so many are tried at most before others are drawn."""
    sharpness: float = 1.0
    """Moves are tried in the order of a draw by their odds to this power."""
    unfiltered: float = 0.25
    """Share of moves that nobody has judged."""


class Advised(Proposals):
    """Proposals that ask a ranker; a walk does not notice."""

    def __init__(self, game: Game, rng: random.Random, mix: Mix, ranker: Ranker, trust: Trust) -> None:
        super().__init__(game, rng, mix)
        self._ranker = ranker
        self._trust = trust
        self._luck = np.random.default_rng(rng.randrange(1 << 32))
        self._looked_at = game.original
        self._draws: Draws | None = None
        self._queue: list[Drag] = []
        """The next one last."""

    def look(self, schedule: Schedule) -> None:
        super().look(schedule)
        self._looked_at, self._draws, self._queue = schedule, None, []

    def play(self) -> str | None:
        if self.rng.random() < self._trust.unfiltered:
            return super().play()
        if not self._queue:
            self._judge()
        if not self._queue:
            return super().play()
        return "advised" if self.game.play(self._queue.pop()) else None

    def _judge(self) -> None:
        """Draw moves from where the board stands, and put the best last."""
        profile = self.game.profile(self._looked_at)
        if self._draws is None:
            self._draws = Draws(self.game, profile)
        drawn = self._draws.draw(self._trust.drawn, self._luck)
        odds = self._ranker.look(self.game.board, profile).odds(*drawn)
        order = np.argsort(self._trust.sharpness * odds + self._luck.gumbel(size=len(odds)))
        best = order[-self._trust.tried :]
        self._queue = [Drag(int(drawn.instructions[k]), int(drawn.targets[k])) for k in best]
