"""Random moves that searches try, and a walk that takes them one by one.

A single shift rarely helps in a schedule that is tight everywhere, so there are moves of several sizes: to a
position nearby, into a gap where warps wait, with a whole chain of dependences, with others of the same
opcode.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np
import numpy.typing as npt

from cuasmrl.game import Game
from cuasmrl.game.scope import drawn
from cuasmrl.schedule import Block, Drag, Schedule, Shift
from cuasmrl.schedule.cells import last_raisers
from cuasmrl.schedule.scoreboards import awaited_boards

KINDS = ("shift", "near", "fill", "relieve", "drag", "group")
_MOST_TRIES = 2000
"""Moves in a row that led to nothing new: by then a small kernel has been seen from all sides."""


@dataclass(frozen=True)
class Mix:
    """How often each kind of move is proposed; only the proportions matter."""

    shift: float = 0.25
    """An instruction to any position within its reach."""
    near: float = 0.2
    """An instruction to a position within its reach at most `near_by` positions away."""
    fill: float = 0.2
    """An instruction into a gap: a position drawn by how long warps waited there."""
    relieve: float = 0.5
    """Of an instruction that warps wait at: itself later, or what it waits for earlier."""
    drag: float = 0.2
    """An instruction, and what it depends on or what depends on it, by a distance drawn over all scales."""
    group: float = 0.15
    """Several instructions of the same opcode that follow each other, dragged by the same distance."""
    near_by: int = 6
    """Positions that count as near."""
    largest_group: int = 8
    """Instructions in a group."""

    def weights(self) -> dict[str, float]:
        return {kind: getattr(self, kind) for kind in KINDS}


class Proposals:
    """Plays random moves on a game's board."""

    def __init__(self, game: Game, rng: random.Random, mix: Mix) -> None:
        self.game = game
        self.board = game.board
        self.rng = rng
        self.mix = mix
        self._shares = list(accumulate(mix.weights().values()))
        self._play_of = {"shift": self._shift, "near": self._near, "fill": self._fill,
                         "relieve": self._relieve, "drag": self._drag, "group": self._group}  # fmt: skip
        self._raisers = np.empty(2, np.int64)
        self._schedule = game.original
        self._gaps: Gaps | None = None

    def look(self, schedule: Schedule, gain: float = math.inf) -> None:
        """From now on gaps are filled where warps wait under this schedule.

        `gain` is by how much it is faster than the one before, as a share; by default all is new.
        """
        self._schedule, self._gaps = schedule, None

    def state(self) -> Any:
        """All that the next proposals depend on but the board and what was looked at."""
        return self.rng.getstate()

    def set_state(self, state: Any) -> None:
        """As if nothing had been proposed since."""
        self.rng.setstate(state)

    def recall(self, state: Any) -> None:
        """What is looked at next came from the proposal that was made before this state."""

    def play(self) -> str | None:
        """Carry out one move and say of which kind; None, and nothing changed, if it was not legal."""
        kind = KINDS[drawn(self.rng, self._shares)]
        return kind if self._play_of[kind]() else None

    def _instruction(self) -> tuple[int, Block]:
        i = self.game.scope.draw(self.rng)
        return i, self.board.blocks[self.board.block_of[i]]

    def _distance(self, most: int) -> int:
        """Drawn evenly over scales: one position is as likely as a doubling of a long way."""
        steps = int(math.exp(self.rng.uniform(0, math.log(max(2, most)))))
        return steps * self.rng.choice((-1, 1))

    def _shift(self) -> bool:
        move = self.game.random_shift(self.rng)
        return move is not None and self.game.play(move)

    def _near(self) -> bool:
        move = self.game.random_shift(self.rng, self.mix.near_by)
        return move is not None and self.game.play(move)

    def _gap(self) -> tuple[int, Block] | None:
        """A position drawn by how long warps waited there."""
        if self._gaps is None:
            # Not before it is needed: a profile costs as much as an evaluation.
            waits = self.game.profile(self._schedule).waits.sum(axis=1)
            self._gaps = Gaps(self.game.scope.blocks, waits)
        return self._gaps.draw(self.rng)

    def _relieve(self) -> bool:
        found = self._gap()
        if found is None:
            return self._shift()
        gap, block = found
        i = self.board.order[gap]
        by = abs(self._distance(len(block)))
        awaited = self._awaited(i, block)
        if awaited and self.rng.random() < 0.5:
            return self._pull(self.rng.choice(awaited), block, -by)
        return self._pull(i, block, by)

    def _awaited(self, i: int, block: Block) -> list[int]:
        """What raised the scoreboards that an instruction waits for: in this iteration, else in the last."""
        board = self.board
        here, found = board.position[i], list[int]()
        for k in awaited_boards(board.code[i], board.wait_mask[i]):
            count = last_raisers(board.cells, block.start, block.end, here, k, self._raisers)
            found += self._raisers[:count].tolist()
        return found

    def _fill(self) -> bool:
        found = self._gap()
        if found is None:
            return self._shift()
        gap, block = found
        candidates = self.board.fillers(block, gap)
        if not len(candidates):
            return False
        i = int(self.rng.choice(candidates))
        return self.game.play(Shift(i, gap if self.board.position[i] > gap else gap - 1))

    def _drag(self) -> bool:
        i, block = self._instruction()
        return self._pull(i, block, self._distance(len(block)))

    def _group(self) -> bool:
        i, block = self._instruction()
        alike = self.board.alike(i, self.rng.randint(2, self.mix.largest_group))
        by = self._distance(len(block) // 2)
        # Whoever goes first must not run into the others of the group.
        order = alike if by < 0 else alike[::-1]
        pulled = [self._pull(j, block, by) for j in order]
        return any(pulled)

    def _pull(self, i: int, block: Block, by: int) -> bool:
        to = min(max(self.board.position[i] + by, block.start), block.end - 1)
        return self.game.play(Drag(i, to))


class Gaps:
    """Where warps wait, in the blocks that are played in."""

    def __init__(self, blocks: Sequence[Block], waits: npt.NDArray[np.float64]) -> None:
        self._blocks = blocks
        self._waits = [waits[block.start : block.end] for block in blocks]
        self._totals = list(accumulate(float(w.sum()) for w in self._waits))
        self._shares: dict[int, list[float]] = {}
        """By number of the block; made when it is drawn."""

    def draw(self, rng: random.Random) -> tuple[int, Block] | None:
        """A position by how long warps waited there; None if they did not wait."""
        if not self._totals[-1]:
            return None
        number = drawn(rng, self._totals)
        block = self._blocks[number]
        if number not in self._shares:
            self._shares[number] = list(accumulate(self._waits[number].tolist()))
        return block.start + drawn(rng, self._shares[number]), block


class Walk:
    """A schedule that changes move by move; a proposal is kept or taken back."""

    def __init__(self, game: Game, rng: random.Random, mix: Mix) -> None:
        self.game = game
        self.rng = rng
        self.proposals = Proposals(game, rng, mix)
        self.schedule, self.time = game.original, game.clock.start
        self.proposed = game.original
        self._idle = 0

    def propose(self, moves: int = 1) -> float | None:
        """The time after so many random moves; None if nothing new is to be found any more."""
        schedule = self.draw(moves)
        return None if schedule is None else self.take(schedule, self.schedule if moves == 1 else None)

    def draw(self, moves: int = 1) -> Schedule | None:
        """Carry out so many random moves; None if all that was tried led to nothing."""
        for _ in range(_MOST_TRIES):
            played = [self.proposals.play() for _ in range(moves)]
            if any(played):
                return self.game.schedule
        return None

    def take(self, schedule: Schedule, rival: Schedule | None) -> float | None:
        """The time of what was drawn, beside its rival; None if for long nothing was new."""
        clock = self.game.clock
        self.proposed = schedule
        self._idle = self._idle + 1 if clock.has_seen(schedule) else 0
        if self._idle >= _MOST_TRIES:
            return None
        return clock.time(schedule, rival)

    def keep(self, time: float) -> None:
        """Go on from what was proposed."""
        gain = self.time / time - 1
        self.schedule, self.time = self.proposed, time
        self.proposals.look(self.schedule, gain)

    def take_back(self) -> None:
        self.game.back_to(self.schedule)

    def go_to(self, schedule: Schedule) -> None:
        """To a schedule that was timed before."""
        self.game.back_to(schedule)
        self.schedule, self.time = schedule, self.game.clock.time(schedule)
        self.proposed = schedule
        self.proposals.look(schedule)
