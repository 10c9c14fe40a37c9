"""AssemblyGame-v1: any instruction, larger moves, recomputed stalls, and a view of the machine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import gymnasium as gym
import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from cuasmrl.game.clock import BudgetSpentError
from cuasmrl.game.features import COLUMNS, Features
from cuasmrl.game.game import Game
from cuasmrl.game.jumps import NOWHERE, SHIFTS, Jump, destinations, flips, is_anchor, move_of

Observation: TypeAlias = npt.NDArray[np.float32]

JUMPS = len(Jump)
FAILURE = -1.0
_SHORTEST_EPISODE = 32


class FreeGame(gym.Env[Observation, np.int64]):
    """The assembly game with free movement.

    ## Description
    The board is a kernel's schedule; play takes place in the blocks where its time goes. A move takes any
    movable instruction to another place of its block, and the block's stall counts are made as small as the
    order allows; or it flips a yield hint or the reuse flags of an instruction.

    ## Action Space
    `Discrete(8 n + 1)` for n rows: `8 row + jump`, where a jump is up or down by one, past the next
    tensor or memory instruction above or below, to the top or bottom of its reach, flip the yield hint, flip
    the reuse flags (`game.jumps.Jump`). The last action stops the episode; it is always legal.
    `action_masks()` says which are.

    ## Observation Space
    `Box(0, 1, (rows, features))`, one row per instruction of the scope in present order, then rows of zeros.
    The columns are `game.features.COLUMNS`: what the instruction is (pipe, memory space, latency class,
    loop), its control bits, room, slack, dependences, and what warps waited for there in the last replay.

    ## Rewards
    100 x (time before - time now) / time at the start. A move that no stall counts can express changes
    nothing and gives -1.

    ## Starting State
    The compiler's schedule, or `options={"schedule": ...}` in `reset`.

    ## Episode End
    Terminated: the player stops, or nothing can move. Truncated: after `horizon` moves, or when the clock's
    budget is spent (`info["budget_spent"]`).

    ## Arguments
    * `new_game`: makes the game to play on; vectorised environments call it once each.
    * `rows`: rows of the observation; by default as many as the scope has. One policy for several kernels
      needs the same number for all.
    * `horizon`: moves in an episode; by default as many as there are movable instructions, at least 32.

    ## Version History
    * v1: first version with free movement.
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012 - Gymnasium's own spelling

    def __init__(
        self, new_game: Callable[[], Game], rows: int | None = None, horizon: int | None = None
    ) -> None:
        self.game = new_game()
        board, scope = self.game.board, self.game.scope
        self.rows = max(rows or 0, scope.rows)
        self.horizon = horizon or max(_SHORTEST_EPISODE, len(scope.movable))
        self.stop = JUMPS * self.rows
        self.action_space = spaces.Discrete(self.stop + 1)
        self.observation_space = spaces.Box(0.0, 1.0, (self.rows, len(COLUMNS)), np.float32)
        self._anchors = is_anchor(board)
        profile = self.game.clock.timer.profile(self.game.original)
        self._features = Features(board, scope, profile, self._anchors)
        self._time, self._moves, self._last = 0.0, 0, NOWHERE
        self._order: list[int] = []
        self._targets = np.zeros((0, SHIFTS), np.int64)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        super().reset(seed=seed)
        schedule = (options or {}).get("schedule", self.game.original)
        self.game.back_to(schedule)
        self._time = self.game.clock.time(schedule)
        self._moves, self._last = 0, NOWHERE
        return self._observe(), self._info()

    def step(self, action: np.int64) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        if int(action) == self.stop:
            return self._observe(), 0.0, True, False, self._info()
        row, jump = divmod(int(action), JUMPS)
        self._moves += 1
        is_last = self._moves >= self.horizon
        before, schedule = self._time, self.game.schedule
        if not self._move(row, Jump(jump)):
            return self._observe(), FAILURE, False, is_last, self._info()
        try:
            self._time = self.game.time()
        except BudgetSpentError:
            self.game.back_to(schedule)
            return self._observe(), 0.0, False, True, self._info() | {"budget_spent": True}
        reward = 100 * (before - self._time) / self.game.clock.start
        observation = self._observe()
        nothing_left = not self.action_masks()[:-1].any()
        return observation, reward, nothing_left, is_last and not nothing_left, self._info()

    def action_masks(self) -> npt.NDArray[np.bool_]:
        """Which actions are legal now."""
        board = self.game.board
        mask = np.zeros((self.rows, JUMPS), bool)
        mask[: len(self._order), :SHIFTS] = self._targets != NOWHERE
        mask[: len(self._order), SHIFTS:] = np.concatenate([
            flips(board, block) for block in self.game.scope.blocks
        ])  # fmt: skip
        return np.append(mask.ravel(), True)

    def _move(self, row: int, jump: Jump) -> bool:
        if row >= len(self._order):
            return False
        to = int(self._targets[row, jump]) if jump < SHIFTS else NOWHERE
        if jump < SHIFTS and to == NOWHERE:
            return False
        i = self._order[row]
        self._last = i
        return self.game.play(move_of(self.game.board, i, jump, to))

    def _observe(self) -> Observation:
        board, blocks = self.game.board, self.game.scope.blocks
        self._order = [i for block in blocks for i in board.order[block.start : block.end]]
        self._targets = np.concatenate([destinations(board, block, self._anchors) for block in blocks])
        here = np.concatenate([np.arange(block.start, block.end) for block in blocks])
        tops = self._targets[:, [Jump.TOP, Jump.UP_PAST, Jump.UP]]
        bottoms = self._targets[:, [Jump.BOTTOM, Jump.DOWN_PAST, Jump.DOWN]]
        low = np.where(tops == NOWHERE, here[:, None], tops).min(axis=1)
        high = np.where(bottoms == NOWHERE, here[:, None], bottoms).max(axis=1)
        profile = self.game.clock.timer.profile(self.game.schedule)
        rows = np.zeros((self.rows, len(COLUMNS)), np.float32)
        rows[: len(here)] = self._features.rows(profile, low, high, self._last)
        return rows

    def _info(self) -> dict[str, Any]:
        return {"time": self._time, "best_time": self.game.clock.best_time, "moves": self._moves}
