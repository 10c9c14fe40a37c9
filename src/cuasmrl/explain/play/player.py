"""An agent that goes on from the board of a game while everybody watches."""

from __future__ import annotations

import contextlib
from threading import Thread

from cuasmrl.agents import Agent
from cuasmrl.errors import CuasmrlError
from cuasmrl.explain.play.curve import Curve
from cuasmrl.explain.play.game import SharedGame
from cuasmrl.explain.play.passages import told
from cuasmrl.game import BudgetSpentError, Clock, Evaluation, Game

BUDGET = 500


class StoppedError(Exception):
    """Somebody has pressed stop."""


class Player:
    """Plays in a thread of its own; every improvement is put on the board."""

    def __init__(self, game: SharedGame, agent: Agent, budget: int = BUDGET) -> None:
        self.game = game
        self.agent = agent
        self.budget = budget
        self._stopped = False
        self._thread: Thread | None = None

    def start(self, version: int, seed: int) -> None:
        """On the board as it is now."""
        with self.game.turn(version):
            self._stopped = False
            self._curve = Curve()
            self._tell(0, True)
            self._thread = Thread(target=self._play, args=(seed,), daemon=True)
            self._thread.start()

    def stop(self) -> None:
        self._stopped = True

    def wait(self) -> None:
        """Until it has come to its end."""
        if self._thread is not None:
            self._thread.join()

    def _play(self, seed: int) -> None:
        game, start, problem = self.game, self.game.here.schedule, None
        done = 0
        clock = Clock(game.watch, start, self.budget)

        def listen(evaluation: Evaluation) -> None:
            nonlocal done
            done = evaluation.number
            self._curve.add(done, clock.start / evaluation.time - 1, clock.gain)
            if evaluation.is_best:
                words = told(game.here.schedule, clock.best)
                game.adopt(f"{self.agent.name}: {words}", clock.best)
            self._tell(done, True)
            if self._stopped:
                raise StoppedError

        clock.listener = listen
        try:
            with contextlib.suppress(BudgetSpentError, StoppedError):
                self.agent.play(lambda: _game(game, clock), seed)
        except CuasmrlError as error:
            problem = str(error)
        finally:
            self._tell(done, False, problem)

    def _tell(self, done: int, running: bool, problem: str | None = None) -> None:
        note = {"name": self.agent.name, "running": running, "done": done, "budget": self.budget,
                "problem": problem, "curve": self._curve.as_dict()}  # fmt: skip
        self.game.note("agent", note)


def _game(game: SharedGame, clock: Clock) -> Game:
    """For an agent: a board of its own that stands as the people's does."""
    made = Game(game.kernel.listing, clock, game.kernel)
    made.back_to(clock.original)
    return made
