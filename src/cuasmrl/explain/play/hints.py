"""The best next moves: by a policy that was trained, or else by trying some out on the clock."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import cached_property
from threading import Lock
from typing import Any

import numpy as np

from cuasmrl.agents.ranking import Ranker
from cuasmrl.errors import CuasmrlError
from cuasmrl.explain.play.game import SharedGame
from cuasmrl.explain.play.reach import name
from cuasmrl.game.scope import Scope, scope_of
from cuasmrl.gpu.devices.objective import SEARCH_SEEDS
from cuasmrl.gpu.profile import Profile, replayed
from cuasmrl.schedule import Board

_SHOWN = 5
_TRIED = 120
"""Moves that are replayed where no policy ranks them."""
_NEAR = 8
"""Positions to either side that a policy is asked about one by one; then in doublings."""
_MOST_TRIES = 4
_ITERATIONS = 4
"""Of each loop, in the replay that says where time goes: a policy was trained on such."""


@dataclass(frozen=True)
class Hint:
    instruction: int
    position: int
    words: str
    odds: float | None
    """That the move makes the kernel faster, as the policy says; None if nobody was asked."""
    gain: float | None
    """On the clock of the page, over the present schedule, as a replay says; None if none was made."""


@dataclass(frozen=True)
class Advice:
    source: str
    """Where it comes from, in a sentence."""
    hints: tuple[Hint, ...]

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


class Adviser:
    """Has a board of its own, so that the people's is left alone; one question at a time."""

    def __init__(self, game: SharedGame, ranker: Callable[[], Ranker | None]) -> None:
        """`ranker` is asked for when the first hint is wanted; None if no policy is installed."""
        self._game = game
        self._ranker = ranker
        self._lock = Lock()

    @cached_property
    def _board(self) -> Board:
        return Board(self._game.kernel.listing)

    def advise(self, version: int) -> Advice:
        """Moves from the present schedule."""
        game = self._game
        with game.lock:
            game.check(version)
            here = game.here.schedule
        with self._lock:
            self._board.restore(here)
            profile = replayed(game.kernel.part(_ITERATIONS), here, SEARCH_SEEDS[0])
            scope = scope_of(self._board, profile)
            try:
                ranker, missing = self._ranker(), "no policy is installed"
            except CuasmrlError as error:
                ranker, missing = None, f"no policy can be asked ({error})"
            if ranker is None:
                return _by_replays(game, self._board, scope, version, missing)
            return _by_policy(self._board, profile, scope, ranker)


def _by_policy(board: Board, profile: Profile, scope: Scope, ranker: Ranker) -> Advice:
    """Ranked without a replay; the best of each instruction, so that the hints differ."""
    pairs = [(i, to) for i in scope.movable for to in _places(board, i)]
    if not pairs:
        return Advice("there is no move in the code where the time goes", ())
    instructions, places = (np.array(column, np.int64) for column in zip(*pairs, strict=True))
    odds = ranker.look(board, profile).odds(instructions, places)
    hints: dict[int, Hint] = {}
    for k in np.argsort(-odds, kind="stable").tolist():
        i, to = pairs[k]
        if len(hints) == _SHOWN:
            break
        if i not in hints and _is_legal(board, i, to):
            hints[i] = Hint(i, to, _words(board, i, to), 1 / (1 + math.exp(-float(odds[k]))), None)
    source = (
        f"the policy's best of {len(pairs):,} moves, with the odds it gives them to make the kernel faster"
    )
    return Advice(source, tuple(hints.values()))


def _places(board: Board, i: int) -> Iterator[int]:
    """All near positions in the block, and farther ones in doublings."""
    block, here = board.blocks[board.block_of[i]], board.position[i]
    steps = [*range(1, _NEAR + 1), *(_NEAR << k for k in range(1, 8))]
    yield from (to for by in steps for to in (here - by, here + by) if block.start <= to < block.end)


def _by_replays(game: SharedGame, board: Board, scope: Scope, seed: int, missing: str) -> Advice:
    """Some drawn where the time goes, each replayed once."""
    rng, here = random.Random(seed), board.schedule()
    before = game.watch.time(here)
    tried: dict[tuple[int, int], tuple[float, str]] = {}
    for _ in range(_MOST_TRIES * _TRIED):
        if len(tried) == _TRIED:
            break
        i = scope.draw(rng)
        to = rng.choice([*_places(board, i), board.position[i]])
        if (i, to) in tried or to == board.position[i]:
            continue
        words = _words(board, i, to)
        if board.drag(i, to):
            tried[i, to] = before / game.watch.time(board.schedule()) - 1, words
            board.restore(here)
    best: dict[int, Hint] = {}
    for (i, to), (gain, words) in sorted(tried.items(), key=lambda entry: -entry[1][0]):
        if gain > 0 and i not in best:
            best[i] = Hint(i, to, words, None, gain)
    hints = list(best.values())[:_SHOWN]
    source = f"{missing}, so {len(tried)} random moves were replayed; these were the fastest"
    if not hints:
        source = f"{missing}, and none of {len(tried)} random moves that were replayed was faster"
    return Advice(source, tuple(hints))


def _is_legal(board: Board, i: int, to: int) -> bool:
    here = board.schedule()
    legal = board.drag(i, to)
    if legal:
        board.restore(here)
    return legal


def _words(board: Board, i: int, to: int) -> str:
    by = to - board.position[i]
    return f"{name(board, i)} {'up' if by < 0 else 'down'} {abs(by)}"
