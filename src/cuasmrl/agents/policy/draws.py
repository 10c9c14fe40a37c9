"""Moves drawn many at a time, for whoever judges them before anything is replayed."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cuasmrl.agents.policy.observation.facts import Int
from cuasmrl.game import Game
from cuasmrl.gpu.profile import Profile
from cuasmrl.schedule.cells import Cell

SHARES = (0.35, 0.25, 0.2, 0.2)
"""How many moves go any distance, within their reach, into a gap, and out of one."""


class Pairs(NamedTuple):
    """Moves: instructions, and the positions that they are dragged to."""

    instructions: Int
    targets: Int


class Draws:
    """Draws moves at the schedule on a game's board; not all of them are legal."""

    def __init__(self, game: Game, profile: Profile) -> None:
        self._game = game
        waits = profile.waits.sum(axis=1)
        self._gaps = np.concatenate([np.arange(b.start, b.end) for b in game.scope.blocks])
        share = waits[self._gaps]
        self._gap_odds = share / share.sum() if share.sum() else np.full(len(share), 1 / len(share))
        self._movable = np.array(game.scope.movable, np.int64)
        self._odds = np.array(game.scope.weights) / sum(game.scope.weights)

    def draw(self, count: int, rng: np.random.Generator) -> Pairs:
        """So many of all kinds, each only once."""
        board = self._game.board
        n = len(board.code)
        far, near, into, out = rng.multinomial(count, SHARES)
        order = board.cells[Cell.ORDER].astype(np.int64)
        position = board.cells[Cell.POSITION].astype(np.int64)
        starts, ends = self._borders()
        moving = rng.choice(self._movable, far + near, p=self._odds)
        anywhere = position[moving[:far]] + _steps(ends[moving[:far]] - starts[moving[:far]], rng)
        low, high = self._reaches()
        reaching = moving[far:]
        within = rng.integers(low[reaching], high[reaching] + 1)
        gaps = rng.choice(self._gaps, into + out, p=self._gap_odds)
        lengths = ends[order[gaps]] - starts[order[gaps]]
        steps = _steps(lengths, rng)
        # In front of who waits at a gap comes somebody from elsewhere,
        filler = order[np.clip(gaps[:into] + steps[:into], 0, n - 1)]
        filled = np.where(steps[:into] > 0, gaps[:into], gaps[:into] - 1)
        # or who waits there goes elsewhere.
        waiting = order[gaps[into:]]
        instructions = np.concatenate([moving, filler, waiting])
        targets = np.concatenate([anywhere, within, filled, gaps[into:] + steps[into:]])
        targets = np.clip(targets, starts[instructions], ends[instructions] - 1)
        is_move = targets != position[instructions]
        return Pairs(*np.unique(np.stack([instructions, targets])[:, is_move], axis=1))

    def _borders(self) -> tuple[Int, Int]:
        """By instruction: the first position of its block, and the one behind the last."""
        blocks = self._game.board.blocks
        lengths = [len(block) for block in blocks]
        return np.repeat([b.start for b in blocks], lengths), np.repeat([b.end for b in blocks], lengths)

    def _reaches(self) -> tuple[Int, Int]:
        """By instruction of the scope."""
        board = self._game.board
        low, high = np.zeros(len(board.code), np.int64), np.zeros(len(board.code), np.int64)
        for block in self._game.scope.blocks:
            low[block.start : block.end], high[block.start : block.end] = board.reaches(block)
        return low, high


def _steps(lengths: Int, rng: np.random.Generator) -> Int:
    """Distances of either sign, drawn evenly over scales."""
    sizes = np.exp(rng.random(len(lengths)) * np.log(np.maximum(2, lengths)))
    steps: Int = sizes.astype(np.int64) * rng.choice((-1, 1), len(lengths))
    return steps
