"""Random legal moves: what any other player has to beat."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

from cuasmrl.agents.proposals import Mix, Walk
from cuasmrl.game import Game


@dataclass(frozen=True)
class RandomPlay:
    """Random episodes from the compiler's schedule, every state timed.

    The moves are those of the searches, so what a search gains over this comes from choosing.
    """

    name: ClassVar[str] = "random"

    horizon: int = 32
    """Moves in an episode."""
    mix: Mix = field(default_factory=Mix)
    """The moves it plays."""

    def play(self, new_game: Callable[[], Game], seed: int) -> None:
        walk = Walk(new_game(), random.Random(seed), self.mix)
        while not walk.game.clock.is_over:
            walk.go_to(walk.game.original)
            for _ in range(self.horizon):
                time = walk.propose()
                if time is None:
                    return
                walk.keep(time)
