"""What a policy that was trained on other kernels thinks of a move, beside the others that were possible."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from cuasmrl.agents.policy.ranker import Policy
from cuasmrl.agents.ranking import Ranker
from cuasmrl.game.scope import scope_of
from cuasmrl.gpu.devices.objective import SEARCH_SEEDS
from cuasmrl.gpu.profile import replayed
from cuasmrl.gpu.traced import TracedKernel
from cuasmrl.schedule import Board, Schedule, Scoreboards

_ITERATIONS = 4
"""Of each loop, in the replay that says where time goes: a policy was trained on such."""
_STEPS = (1, 2, 4, 8, 16, 32, 64, 128)
"""Positions that the other moves go up or down."""
_LEGAL = -20.0
"""Log odds of a move that is possible at all are above."""


class Opinion:
    """Has a board of its own."""

    def __init__(self, kernel: TracedKernel, scoreboards: Scoreboards, ranker: Ranker | None = None) -> None:
        """Without a ranker the policy that comes along is asked."""
        self._kernel = kernel
        self._board = Board(kernel.listing, scoreboards=scoreboards)
        self._ranker = ranker or Policy.load()

    def rank(self, before: Schedule, after: Schedule, about: Collection[int]) -> float | None:
        """Share of all moves from the schedule before that get lower odds than the best of what was done.

        None if nothing went anywhere, or not in a way that it knows.
        """
        board = self._board
        board.restore(before)
        place = {i: position for position, i in enumerate(after.order) if i in about}
        moved = [i for i in place if place[i] != board.position[i]]
        if not moved:
            return None
        profile = replayed(self._kernel.part(_ITERATIONS), before, SEARCH_SEEDS[0])
        outlook = self._ranker.look(board, profile)
        done = outlook.odds(np.array(moved, np.int64), np.array([place[i] for i in moved], np.int64)).max()
        others = [
            (i, to)
            for i in scope_of(board, profile).movable
            for step in _STEPS
            for to in (board.position[i] - step, board.position[i] + step)
            if (block := board.blocks[board.block_of[i]]).start <= to < block.end
        ]
        if done < _LEGAL or not others:
            return None
        instructions, targets = np.array(others, np.int64).T
        odds = outlook.odds(instructions, targets)
        possible = odds[odds > _LEGAL]
        return float((possible < done).mean()) if len(possible) else None
