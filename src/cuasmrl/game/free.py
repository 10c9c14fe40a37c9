"""AssemblyGame-v1: any instruction, larger moves, recomputed stalls, and a view of the machine."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias

import gymnasium as gym
import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from cuasmrl.game.clock import BudgetSpentError
from cuasmrl.game.features import COLUMNS, Features, sum_up
from cuasmrl.game.game import Game
from cuasmrl.game.jumps import JUMPS, NOWHERE, Bool, Destinations, is_anchor, moves_of
from cuasmrl.schedule import Schedule

Observation: TypeAlias = npt.NDArray[np.float32]

KINDS = len(JUMPS)
"""Jumps of each row."""
FAILURE = -1.0
_SHORTEST_EPISODE = 32


class FreeGame(gym.Env[Observation, np.int64]):
    """The assembly game with free movement.

    ## Description
    The board is a kernel's schedule; play takes place in the blocks where its time goes. A move takes any
    movable instruction to another position of its block, with what its dependences tie to it, and the block's
    stall counts are made as small as the order allows; or it flips a yield hint or the reuse flags of an
    instruction.

    ## Action Space
    `Discrete(32 n + 1)` for n rows: `32 row + jump` with the jumps of `game.jumps.JUMPS`. Up or down: to a
    position in either half of its reach, to one in an eighth of what warps wait within its reach, dragged by
    a distance of three scales, with a group of its opcode by one of two; and flip the yield hint, flip the
    reuse flags. Within half, eighth and scale the position is drawn when a state is reached. The last action
    stops the episode; it is always legal. `action_masks()` says which are.

    ## Observation Space
    `Box(0, 1, (rows, features))`, one row per instruction of the scope in present order, then rows of zeros.
    The columns are `game.features.COLUMNS`: what the instruction is (pipe, memory space, latency class,
    loop, time of its block), its control bits, room, legal jumps, slack, dependences, and what warps waited
    for there in the last replay.

    ## Rewards
    100 x (time before - time now) / time at the start; the sum over an episode is the gain in percent of the
    start. A move that no stall counts can express changes nothing and gives -1.

    With `keep_worse=False` a move that makes the kernel slower is taken back, and so is one that makes it no
    faster and leads to a schedule which the episode has seen: the player climbs, and never stands still. What
    was taken back or could not be expressed gives 0 and stays masked until a move is kept. With a `leeway`
    above zero, moves to schedules that the episode has not seen are kept as long as they are slower than its
    best by no more than that. A flip stays only if it makes the kernel faster.

    ## Starting State
    The compiler's schedule, or `options={"schedule": ...}` in `reset`. Positions are drawn by the last seed
    that `reset` was given, by 0 before the first.

    ## Episode End
    Terminated: the player stops, or nothing is left to try. Truncated: after `horizon` moves, or when the
    clock's budget is spent (`info["budget_spent"]`).

    ## Arguments
    * `new_game`: makes the game to play on; vectorised environments call it once each.
    * `rows`: rows of the observation; by default as many as the scope has. One policy for several kernels
      needs the same number for all.
    * `horizon`: moves in an episode; by default as many as there are movable instructions, at least 32.
    * `keep_worse`: whether moves that make the kernel slower stay.
    * `leeway`: in percent of the start; how much slower than the best of the episode a climb may get.

    ## Version History
    * v1: first version with free movement.
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012 - Gymnasium's own spelling

    def __init__(
        self,
        new_game: Callable[[], Game],
        rows: int | None = None,
        horizon: int | None = None,
        keep_worse: bool = True,
        leeway: float = 0.0,
    ) -> None:
        super().reset(seed=0)
        self.game = new_game()
        board, scope = self.game.board, self.game.scope
        self.rows = max(rows or 0, scope.rows)
        self.horizon = horizon or max(_SHORTEST_EPISODE, len(scope.movable))
        self.keep_worse = keep_worse
        self.leeway = leeway / 100 * self.game.clock.start
        self.stop = KINDS * self.rows
        self.action_space = spaces.Discrete(self.stop + 1)
        self.observation_space = spaces.Box(0.0, 1.0, (self.rows, len(COLUMNS)), np.float32)
        self._anchors = is_anchor(board)
        profile = self.game.profile(self.game.original)
        self._destinations = Destinations(board)
        self._features = Features(board, scope, profile, self._anchors)
        self._positions = np.concatenate([np.arange(block.start, block.end) for block in scope.blocks])
        self._schedule = self.game.original
        self._time, self._moves, self._lowest = 0.0, 0, 0.0
        self._order = self._positions.astype(np.int32)
        self._targets = np.zeros((0, KINDS), np.int64)
        self._seen: set[bytes] = set()
        self._look(NOWHERE)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        super().reset(seed=seed)
        self._schedule = (options or {}).get("schedule", self.game.original)
        self.game.back_to(self._schedule)
        self._time = self._lowest = self.game.clock.time(self._schedule)
        self._moves = 0
        self._seen = {self._schedule.key}
        self._look(NOWHERE)
        return self.observation, self._info()

    def step(self, action: np.int64) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        if int(action) == self.stop:
            return self.observation, 0.0, True, False, self._info()
        self._moves += 1
        try:
            reward = self._move(int(action))
        except BudgetSpentError:
            return self.observation, 0.0, False, True, self._info() | {"budget_spent": True}
        nothing_left = not self._mask[:-1].any()
        is_last = self._moves >= self.horizon and not nothing_left
        return self.observation, reward, nothing_left, is_last, self._info()

    @property
    def schedule(self) -> Schedule:
        """On the board."""
        return self._schedule

    @property
    def observation(self) -> Observation:
        """Of the present schedule."""
        return self._rows.copy()

    def action_masks(self) -> Bool:
        """Which actions are legal now."""
        return self._mask.copy()

    def peek(self, action: int) -> tuple[Schedule, float] | None:
        """Where a legal action leads and how long that takes; None if no stall counts can express it.

        The board does not change, but the device is asked, which counts.
        """
        schedule = self._play(action)
        self.game.back_to(self._schedule)
        return None if schedule is None else (schedule, self.game.clock.time(schedule))

    def _play(self, action: int) -> Schedule | None:
        """Carry out a legal action on the board; None, and nothing changed, if no stall counts express it."""
        row, kind = divmod(action, KINDS)
        board, i = self.game.board, int(self._order[row])
        block = board.blocks[board.block_of[i]]
        moves = moves_of(board, block, i, JUMPS[kind], int(self._targets[row, kind]))
        played = [self.game.play(move) for move in moves]
        return self.game.schedule if any(played) else None

    @property
    def _rival(self) -> Schedule | None:
        """Whom a move has to beat to be kept, where the time of one that does not is of no interest."""
        return None if self.keep_worse or self.leeway else self._schedule

    def _move(self, action: int) -> float:
        """Carry out a move, keep it or not, and say what it is worth."""
        if not self._mask[action]:
            return FAILURE
        schedule = self._play(action)
        try:
            time = math.inf if schedule is None else self.game.clock.time(schedule, self._rival)
        except BudgetSpentError:
            self.game.back_to(self._schedule)
            raise
        if schedule is None or math.isinf(time):
            self.game.back_to(self._schedule)
            self._mask[action] = False
            return FAILURE if self.keep_worse else 0.0
        reward = 100 * (self._time - time) / self.game.clock.start
        row, kind = divmod(action, KINDS)
        # Bits that drift without any effect are a burden later: the compiler's have a reason more often.
        may_drift = schedule.key not in self._seen and not JUMPS[kind].is_flip
        if self.keep_worse or time < self._lowest or (may_drift and time <= self._lowest + self.leeway):
            i = int(self._order[row])
            self.game.back_to(schedule)
            self._schedule, self._time = schedule, time
            self._lowest = min(time, self._lowest)
            self._seen.add(schedule.key)
            self._look(i)
            return reward
        self.game.back_to(self._schedule)
        self._mask[action] = False
        return 0.0

    def _look(self, last: int) -> None:
        """Make the observation and the mask of the present schedule; `last` is the instruction moved last."""
        profile = self.game.profile(self._schedule)
        waits = np.empty(len(profile.waits))
        total = max(1.0, sum_up(profile.waits, profile.executions, waits))
        count = len(self._positions)
        self._order = self._schedule.indices[self._positions]
        low, high = np.empty(count, np.int64), np.empty(count, np.int64)
        self._targets = np.empty((count, KINDS), np.int64)
        self._mask = np.zeros(self.stop + 1, bool)
        self._mask[-1] = True
        legal = self._mask[: count * KINDS].reshape(count, KINDS)
        at = 0
        for block in self.game.scope.blocks:
            here = slice(at, at + len(block))
            self._destinations.find(
                block, waits, self.np_random, low[here], high[here], self._targets[here], legal[here]
            )
            at += len(block)
        self._rows = np.zeros((self.rows, len(COLUMNS)), np.float32)
        self._features.fill(profile, total, low, high, legal, last, self._rows)

    def _info(self) -> dict[str, Any]:
        return {"time": self._time, "best_time": self.game.clock.best_time, "moves": self._moves}
