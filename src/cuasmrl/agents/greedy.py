"""Hill climbing that walks along plateaus, and from time to time takes a step aside."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

from cuasmrl.agents.lookahead import Lookahead
from cuasmrl.agents.proposals import Mix, Walk
from cuasmrl.game import Game
from cuasmrl.schedule import Schedule


@dataclass(frozen=True)
class Greedy:
    """Keeps every move that is not slower. When nothing helps for long, a few random moves lead away from the
    best schedule, and the climb from there is kept if it ends at least as high."""

    name: ClassVar[str] = "greedy"

    patience: int = 400
    """Evaluations without a gain after which it steps aside."""
    aside: int = 4
    """Random moves of such a step."""
    lag: int = 0
    """Moves that are proposed before the answer about the one before them is taken."""
    mix: Mix = field(default_factory=Mix)
    """The moves it tries."""

    def play(self, new_game: Callable[[], Game], seed: int) -> None:
        rng = random.Random(seed)
        climb(Walk(new_game(), rng, self.mix), self.patience, self.aside, self.lag)


def climb(walk: Walk, patience: int, aside: int, lag: int = 0) -> None:
    """Until the budget is spent, or nothing new is to be found."""
    clock, ahead = walk.game.clock, Lookahead(walk, lag)
    top: tuple[float, Schedule] = walk.time, walk.schedule
    last_gain = clock.spent
    while not clock.is_over:
        is_aside = clock.spent - last_gain >= patience
        if is_aside:
            if walk.time <= top[0]:
                top = walk.time, walk.schedule
            ahead.go_to(top[1])
            last_gain = clock.spent
        time = ahead.propose(aside if is_aside else 1)
        if time is None:
            return
        if time < walk.time:
            last_gain = clock.spent
        if time <= walk.time or is_aside:
            ahead.keep(time)
        else:
            ahead.take_back()
