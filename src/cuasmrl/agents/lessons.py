"""What policies learn from: moves and their worth, episodes that begin at the best, a memory of all tried."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, TypeAlias

import gymnasium as gym
import numpy as np
import numpy.typing as npt
import torch

from cuasmrl.game import FreeGame
from cuasmrl.game.features import COLUMNS
from cuasmrl.game.free import KINDS

Float: TypeAlias = npt.NDArray[np.float32]
Int: TypeAlias = npt.NDArray[np.int64]

FULL = 0.5
"""A gain in percent that is worth 1, as are larger ones; smaller ones are worth their share."""
_WEIGHT = COLUMNS.index("weight")


@dataclass(frozen=True, eq=False)
class Trials:
    """Some states of one kernel, and the moves that were tried in them with their gains in percent."""

    seen: Float
    of: Int
    """The state of each move."""
    actions: Int
    gains: Float


def worth(gains: torch.Tensor) -> torch.Tensor:
    """Of moves, from 0 to 1, by their gains in percent."""
    return (gains / FULL).clamp(0, 1)


class Lessons(gym.Wrapper[Any, Any, Any, Any]):
    """What is learnt from: episodes that begin at the best schedule so far, scaled rewards, and a memory.

    Starting at the best makes far schedules reachable; of equals it is the last, so that a climb drifts. When
    nothing helps for long, a few random moves lead away from it. Most gains are small and a few large:
    without the logarithm one lucky move would drown all others in an update.
    """

    def __init__(self, game: FreeGame, unit: float, patience: int, aside: int, seed: int) -> None:
        super().__init__(game)
        self.game = game
        self.unit = unit
        self.patience = patience
        self.aside = aside
        self.rng = np.random.default_rng(seed)
        self.memory = Memory()
        self._home = game.game.original
        self._last_gain = 0
        self._lowest = 0.0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, Any]:
        clock = self.game.game.clock
        if clock.best_time < clock.time(self._home):
            self._home = clock.best
        found = self.env.reset(seed=seed, options={"schedule": self._home} | (options or {}))
        if clock.spent - self._last_gain >= self.patience:
            self._last_gain = clock.spent
            found = self._step_aside() or found
        self._lowest = found[1]["time"]
        self.memory.see(found[0])
        return found

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        clock = self.game.game.clock
        seen, reward, terminated, truncated, info = self.env.step(action)
        if action != self.game.stop:
            self.memory.note(int(action), float(reward))
        self.memory.see(seen)
        gain = max(0.0, 100 * (self._lowest - info["time"]) / clock.start)
        if gain > 0:
            self._last_gain, self._lowest = clock.spent, info["time"]
        if info["time"] <= clock.best_time:
            self._home = self.game.schedule
        truncated |= clock.spent - self._last_gain >= self.patience
        return seen, math.log1p(gain / self.unit), terminated, truncated, info

    def _step_aside(self) -> tuple[Any, Any] | None:
        """A few random moves away from where the game stands, for better or worse."""
        found = None
        for _ in range(self.aside):
            move = fair_move(self.game, self.rng)
            if move == self.game.stop or self.game.game.clock.is_over:
                break
            there = self.game.peek(int(move))
            if there is not None and math.isfinite(there[1]):
                found = self.game.reset(options={"schedule": there[0]})
        return found


def fair_move(game: FreeGame, rng: np.random.Generator) -> np.int64:
    """A row by the time of its block, and any of its legal jumps: as a policy draws that knows nothing.

    Even odds for all jumps would play what has much room most, and what is held by its dependences hardly.
    """
    legal = game.action_masks()[:-1].reshape(game.rows, -1)
    weights = game.observation[:, _WEIGHT].astype(np.float64) * legal.any(axis=1)
    if not weights.any():
        return np.int64(game.stop)
    row = rng.choice(game.rows, p=weights / weights.sum())
    return np.int64(row * KINDS + rng.choice(np.flatnonzero(legal[row])))


class Memory:
    """Every move that was tried on this kernel, and its gain in percent."""

    def __init__(self) -> None:
        self.seen: list[Float] = []
        """Positions, in the order of play."""
        self.of: list[int] = []
        self.actions: list[int] = []
        self.gains: list[float] = []

    def see(self, rows: Float) -> None:
        """The state of the moves to come."""
        if not self.seen or not np.array_equal(rows, self.seen[-1]):
            self.seen.append(rows)

    def note(self, action: int, gain: float) -> None:
        self.of.append(len(self.seen) - 1)
        self.actions.append(action)
        self.gains.append(gain)

    def take(self) -> Trials:
        """What was tried since the last time. Positions are not kept: they are large."""
        first = self.of[0] if self.of else 0
        found = Trials(
            np.stack(self.seen[first:]),
            np.array(self.of, np.int64) - first,
            np.array(self.actions, np.int64),
            np.array(self.gains, np.float32),
        )
        self.seen, self.of, self.actions, self.gains = self.seen[-1:], [], [], []
        return found
