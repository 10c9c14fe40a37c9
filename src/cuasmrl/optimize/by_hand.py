"""Schedules that somebody has found without one of our agents, brought to the clock as an agent would."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

from cuasmrl.game import Game
from cuasmrl.schedule import Schedule

BY_HAND = "by-hand"
"""In the config of a run, where other runs name their agent."""


@dataclass(frozen=True)
class ByHand:
    """Plays nothing itself."""

    name: ClassVar[str] = BY_HAND

    visited: tuple[Schedule, ...] = field(repr=False, compare=False)
    """In the order in which they were found."""

    def play(self, new_game: Callable[[], Game], seed: int) -> None:
        new_game().clock.times(self.visited)
