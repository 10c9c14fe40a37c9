"""Random legal moves: what any other player has to beat."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from cuasmrl.game import Game


@dataclass(frozen=True)
class RandomPlay:
    """Random episodes from the compiler's schedule, every position timed."""

    name: ClassVar[str] = "random"

    horizon: int = 128
    """Moves in an episode."""

    def play(self, new_game: Callable[[], Game], seed: int) -> None:
        game, rng = new_game(), random.Random(seed)
        while not game.clock.is_over:
            game.back_to(game.original)
            for _ in range(self.horizon):
                move = game.random_shift(rng)
                if move is not None and game.play(move):
                    game.time()
