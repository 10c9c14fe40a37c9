"""A game with everything that a page offers beside it: hints, an agent, and a run to be judged."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cuasmrl.agents import Agent
from cuasmrl.agents.ranking import Ranker
from cuasmrl.errors import CuasmrlError
from cuasmrl.explain.play.app import Action, dumped
from cuasmrl.explain.play.game import SharedGame
from cuasmrl.explain.play.hints import Adviser
from cuasmrl.explain.play.page import play_page
from cuasmrl.explain.play.player import Player
from cuasmrl.explain.play.saving import Saving, Submit
from cuasmrl.explain.play.state import game_data, kernel_data


class Desk:
    look = 0.1
    """Seconds between looks for news, by whoever serves it."""

    def __init__(
        self, game: SharedGame, agent: Agent, submit: Submit, ranker: Callable[[], Ranker | None]
    ) -> None:
        self.game = game
        self.player = Player(game, agent)
        self.saving = Saving(game, submit)
        self.adviser = Adviser(game, ranker)
        self._kernel = kernel_data(game.kernel, game.board, game.watch) | {"agent": agent.name}

    @property
    def pulse(self) -> int:
        return self.game.pulse

    def text(self) -> str:
        return dumped(game_data(self.game))

    @property
    def pages(self) -> dict[str, Callable[[], str]]:
        return {"": self._page, "report": self.saving.page}

    @property
    def actions(self) -> dict[str, Action]:
        game = self.game
        return {
            "move": lambda data: game.play(_version(data), _move(data)),
            "go": lambda data: game.go(_version(data), _whole(data, "to")),
            "reach": lambda data: game.reach(_version(data), _whole(data, "instruction")),
            "hint": lambda data: self.adviser.advise(_version(data)).as_dict(),
            "agent": self._agent,
            "save": self._save,
        }

    def _page(self) -> str:
        return play_page("play", self._kernel, game_data(self.game))

    def _agent(self, data: dict[str, Any]) -> None:
        if data.get("play"):
            self.player.start(_version(data), seed=_version(data))
        else:
            self.player.stop()

    def _save(self, data: dict[str, Any]) -> None:
        self.saving.start()


def _version(data: dict[str, Any]) -> int:
    return _whole(data, "version")


def _move(data: dict[str, Any]) -> dict[str, Any]:
    move = data.get("move")
    if not isinstance(move, dict):
        raise CuasmrlError("send a move")
    return move


def _whole(data: dict[str, Any], name: str) -> int:
    value = data.get(name)
    if isinstance(value, bool) or not isinstance(value, int):
        raise CuasmrlError(f"{name} is a whole number, not {value!r}")
    return value
