"""Moves that a ranker likes: a climb draws many, has them judged, and replays those first that look best."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from cuasmrl.agents.policy.draws import Draws
from cuasmrl.agents.proposals import Mix, Proposals
from cuasmrl.agents.ranking import Ranker
from cuasmrl.game import Game
from cuasmrl.schedule import Drag, Schedule


@dataclass(frozen=True)
class Trust:
    """How far a ranker is followed."""

    drawn: int = 256
    """Moves that are judged at a time."""
    tried: int = 64
    """Of these so many are tried at most before others are drawn."""
    sharpness: float = 1.0
    """Moves are tried in the order of a draw by their odds to this power."""
    advised: float = 3.0
    """How much more often a move of its choice is expected to help than one of the mix where a block is alone
    on its SM,"""
    shared: float = 0.3
    """and where several share one, of which lessons hold hardly a move that helps beyond the noise,"""
    belief: int = 100
    """as if so many moves of either kind had shown it. Then what they show in play counts."""
    memory: int = 1000
    """Moves after which what they showed counts for a third."""
    least: float = 0.1
    """Share of moves of either kind at least."""


_HELPS = 0.01
"""Share of the moves of the mix that are expected to help."""


class _Record(NamedTuple):
    """How moves of one kind did."""

    tries: float
    gains: float

    def tried(self, keeps: float) -> _Record:
        return _Record(self.tries * keeps + 1, self.gains * keeps)

    def gained(self) -> _Record:
        return self._replace(gains=self.gains + 1)


class _State(NamedTuple):
    """Behind a proposal."""

    rng: object
    queue: Sequence[Drag]
    at: int
    tried: frozenset[Drag]
    records: tuple[_Record, _Record]
    kind: int


_MIX, _ADVISED = 0, 1


class Advised(Proposals):
    """Proposals that ask a ranker; a walk does not notice.

    How many moves are of the ranker's choice depends on how often they helped, beside those of the mix. It is
    asked again when a move has made the schedule faster, or its moves are used up; not after every step along
    a plateau, where hardly anything is different.
    """

    def __init__(self, game: Game, rng: random.Random, mix: Mix, ranker: Ranker, trust: Trust) -> None:
        super().__init__(game, rng, mix)
        self._ranker = ranker
        self._trust = trust
        self._keeps = math.exp(-1 / trust.memory)
        self._here = game.original
        self._queue: Sequence[Drag] = ()
        self._at = 0
        """Of the queue so much has been tried."""
        self._tried: frozenset[Drag] = frozenset()
        """Since the last gain."""
        is_shared = game.traced is not None and game.traced.model.resident > 1
        expected = (1.0, trust.shared if is_shared else trust.advised)
        plain, advised = (_Record(trust.belief, _HELPS * trust.belief * often) for often in expected)
        self._records = plain, advised
        self._kind = _MIX
        """Of the last move."""

    @property
    def share(self) -> float:
        """Of moves that are of the ranker's choice."""
        mix, advised = ((record.gains + _HELPS) / record.tries for record in self._records)
        least = self._trust.least
        return min(1 - least, max(least, advised / (mix + advised)))

    def look(self, schedule: Schedule, gain: float = math.inf) -> None:
        self._here = schedule
        if 0 < gain < math.inf:
            records = list(self._records)
            records[self._kind] = records[self._kind].gained()
            self._records = records[0], records[1]
        if gain:
            super().look(schedule, gain)
            self._queue, self._at, self._tried = (), 0, frozenset()

    def state(self) -> _State:
        return _State(super().state(), self._queue, self._at, self._tried, self._records, self._kind)

    def set_state(self, state: _State) -> None:
        super().set_state(state.rng)
        self._queue, self._at, self._tried = state.queue, state.at, state.tried
        self._records, self._kind = state.records, state.kind

    def recall(self, state: _State) -> None:
        self._kind = state.kind

    def play(self) -> str | None:
        kind = _ADVISED if self.rng.random() < self.share and self._has_advice() else _MIX
        played = self._advised() if kind == _ADVISED else super().play()
        if played is not None:
            self._kind = kind
            records = list(self._records)
            records[kind] = records[kind].tried(self._keeps)
            self._records = records[0], records[1]
        return played

    def _has_advice(self) -> bool:
        """Unless nothing can be drawn here."""
        if self._at == len(self._queue):
            self._judge()
        return len(self._queue) > 0

    def _advised(self) -> str | None:
        self._at += 1
        return "advised" if self.game.play(self._queue[self._at - 1]) else None

    def _judge(self) -> None:
        """Draw moves from where the board stands, and put the best first that have not been tried."""
        profile = self.game.profile(self._here)
        luck = np.random.default_rng(self.rng.getrandbits(32))
        drawn = Draws(self.game, profile).draw(self._trust.drawn, luck)
        odds = self._ranker.look(self.game.board, profile).odds(*drawn)
        order = np.argsort(self._trust.sharpness * odds + luck.gumbel(size=len(odds)))[::-1]
        liked = [Drag(i, to) for i, to in np.stack(drawn, axis=1)[order].tolist()]
        new = [move for move in liked if move not in self._tried]
        if not new:
            new, self._tried = liked, frozenset()
        self._queue, self._at = tuple(new[: self._trust.tried]), 0
        self._tried = self._tried.union(self._queue)
