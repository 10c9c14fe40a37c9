"""The policy as a ranker of moves."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from weakref import WeakKeyDictionary

import numpy as np

from cuasmrl.agents.policy import weights
from cuasmrl.agents.policy.inference import Judge
from cuasmrl.agents.policy.observation.facts import Float, Int
from cuasmrl.agents.policy.observation.position import Memory, Stand, stand_of
from cuasmrl.gpu.profile import Profile
from cuasmrl.schedule import Board


class Policy:
    """Judges moves on any board; a `Ranker`."""

    def __init__(self, judge: Judge) -> None:
        self.judge = judge
        self._memories: WeakKeyDictionary[Board, Memory] = WeakKeyDictionary()

    @staticmethod
    def load(path: Path = weights.DEFAULT) -> Policy:
        return _loaded(path)

    def look(self, board: Board, profile: Profile) -> View:
        """At the schedule on the board; blocks are looked at when somebody asks for a move in them."""
        memory = self._memories.setdefault(board, Memory({}))
        return View(self.judge, board, profile, memory)


@cache
def _loaded(path: Path) -> Policy:
    return Policy(Judge(weights.load(path)[0]))


class View:
    """One position; an `Outlook`. It has to be asked before the board changes, or about blocks that it has
    been asked about before."""

    def __init__(self, judge: Judge, board: Board, profile: Profile, memory: Memory) -> None:
        self._judge = judge
        self._board = board
        self._profile = profile
        self._memory = memory
        self._blocks: dict[int, tuple[Stand, Float]] = {}

    def odds(self, instructions: Int, targets: Int) -> Float:
        """Of each pair, in any block."""
        found = np.empty(len(instructions), np.float32)
        numbers = np.array(self._board.block_of, np.int64)[instructions]
        for number in np.unique(numbers):
            here = np.flatnonzero(numbers == number)
            stand, places = self._block(int(number))
            found[here] = self._judge.odds(stand, places, instructions[here], targets[here])
        return found

    def _block(self, number: int) -> tuple[Stand, Float]:
        if number not in self._blocks:
            block = self._board.blocks[number]
            stand = stand_of(self._board, self._profile, block, self._memory.of(self._board, block))
            self._blocks[number] = stand, self._judge.look(stand)
        return self._blocks[number]
