"""Simulated annealing: slower schedules are accepted too, ever more rarely."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

from cuasmrl.agents.proposals import Mix, Walk
from cuasmrl.game import Game


@dataclass(frozen=True)
class Anneal:
    """Accepts a slower schedule with probability exp(-percent slower / temperature). The temperature falls by
    the same factor with every evaluation, so that it reaches its end with the budget."""

    name: ClassVar[str] = "anneal"

    hot: float = 0.15
    """Temperature at the start, in percent of the present time."""
    cold: float = 0.01
    """Temperature at the end."""
    mix: Mix = field(default_factory=Mix)
    """The moves it tries."""

    def play(self, new_game: Callable[[], Game], seed: int) -> None:
        rng = random.Random(seed)
        walk = Walk(new_game(), rng, self.mix)
        clock = walk.game.clock
        while not clock.is_over:
            time = walk.propose()
            if time is None:
                return
            temperature = self.hot * (self.cold / self.hot) ** (clock.spent / clock.budget)
            slower = 100 * (time / walk.time - 1)
            if slower <= 0 or rng.random() < math.exp(-slower / temperature):
                walk.keep(time)
            else:
                walk.take_back()
