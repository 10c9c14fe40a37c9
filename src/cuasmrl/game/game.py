"""One kernel on the board and the clock beside it: what every player plays on."""

from __future__ import annotations

import random

from cuasmrl.binary.sass import Listing
from cuasmrl.errors import CuasmrlError
from cuasmrl.game.clock import Clock
from cuasmrl.game.scope import MOST_ROWS, scope_of
from cuasmrl.gpu.devices.objective import SEARCH_SEEDS
from cuasmrl.gpu.profile import Profile, guessed, replayed
from cuasmrl.gpu.traced import TracedKernel
from cuasmrl.schedule import Board, Move, Schedule, Scoreboards, Shift, play

_ITERATIONS = 4
"""Of each loop, in a replay that says where time goes."""


class Game:
    """Moves change the board, the clock times it. Of the device players know nothing but times."""

    def __init__(
        self,
        listing: Listing,
        clock: Clock,
        traced: TracedKernel | None = None,
        most_rows: int = MOST_ROWS,
        scoreboards: Scoreboards = Scoreboards.KEPT,
    ) -> None:
        """Several games may share a clock: then they share a budget, and times.

        `traced` is the kernel as a model can replay it, whatever the device is; None if it cannot be traced.
        """
        self.traced = traced
        self.board = Board(listing, scoreboards=scoreboards)
        self.clock = clock
        self.original = clock.original
        self.scope = scope_of(self.board, self.profile(self.original), most_rows)
        if not any(self._can_move(i) for i in self.scope.movable):
            raise CuasmrlError(
                f"kernel {listing.kernel.name} has no legal move in the code where its time goes; "
                "it stays as the compiler scheduled it"
            )

    def keep_scoreboards(self) -> None:
        """Begin again on a board where scoreboards travel with their instructions, unless it is one."""
        if self.board.scoreboards is not Scoreboards.KEPT:
            self.board = Board(self.board.listing)

    @property
    def schedule(self) -> Schedule:
        return self.board.schedule()

    def time(self) -> float:
        """Of the present schedule."""
        return self.clock.time(self.schedule)

    def profile(self, schedule: Schedule) -> Profile:
        """Where the time of a schedule goes: on the chip as its file describes it, which no device is asked
        for, or guessed."""
        if self.traced is None:
            return guessed(self.board)
        return replayed(self.traced.part(_ITERATIONS), schedule, SEARCH_SEEDS[0])

    def play(self, move: Move) -> bool:
        """Carry out a move; False, and nothing changed, if it is not legal."""
        return play(self.board, move)

    def back_to(self, schedule: Schedule) -> None:
        """To the original, or to any schedule that moves have led to."""
        self.board.restore(schedule)

    def random_shift(self, rng: random.Random, farthest: int | None = None) -> Shift | None:
        """A movable instruction, drawn by the time around it, to another position in its span."""
        i = self.scope.draw(rng)
        positions = self.board.others(i) if farthest is None else self.board.others(i, farthest)
        return Shift(i, int(rng.choice(positions))) if len(positions) else None

    def _can_move(self, i: int) -> bool:
        return len(self.board.others(i)) > 0
