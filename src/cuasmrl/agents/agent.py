"""The interface of players: whoever plays gets games on one clock, and a seed."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from typing import ClassVar, Protocol

from cuasmrl.game import BudgetSpentError, Clock, Evaluation, Game
from cuasmrl.gpu.devices import Timer
from cuasmrl.gpu.traced import TracedKernel
from cuasmrl.schedule import Scoreboards


class Agent(Protocol):
    """A frozen dataclass whose fields are its settings. Same settings, same seed: same schedules visited."""

    name: ClassVar[str]

    def play(self, new_game: Callable[[], Game], seed: int) -> None:
        """Play until nothing more is to be tried; `BudgetSpentError` may end it at any moment.

        All games share one clock, which keeps the best schedule that was visited.
        """


def match(
    agent: Agent,
    kernel: TracedKernel,
    timer: Timer,
    budget: int,
    seed: int,
    known: Mapping[bytes, float] | None = None,
    listener: Callable[[Evaluation], None] | None = None,
    scoreboards: Scoreboards = Scoreboards.KEPT,
) -> Clock:
    """Let an agent play on a kernel until its budget is spent or it has nothing left to try."""
    clock = Clock(timer, kernel.original, budget, known, listener)
    with contextlib.suppress(BudgetSpentError):
        agent.play(lambda: Game(kernel.listing, clock, kernel, scoreboards=scoreboards), seed)
    return clock
