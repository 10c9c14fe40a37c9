"""A small product on the table, and a page of it that is served."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from cuasmrl.agents import AGENTS
from cuasmrl.errors import CuasmrlError
from cuasmrl.explain.play.app import application
from cuasmrl.explain.play.desk import Desk
from cuasmrl.explain.play.game import SharedGame
from cuasmrl.explain.play.saving import Submit
from cuasmrl.explain.play.serving import Server
from cuasmrl.optimize import Optimized, Watch, optimizer, submit
from cuasmrl.schedule import Schedule
from tests.climbing import kernel
from tests.optimize.playing import Device, asking, prepare_quickly


@pytest.fixture
def game() -> SharedGame:
    return SharedGame(kernel())


@dataclass(frozen=True)
class Table:
    """Whoever plays on it may look at the game itself too."""

    desk: Desk
    server: Server

    @property
    def game(self) -> SharedGame:
        return self.desk.game

    @property
    def address(self) -> str:
        return self.server.address


Serve = Callable[..., Table]


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Serve]:
    """serve(game, **about the desk): a page of it, for as long as the test takes."""
    open_tables = []

    def judge(visited: tuple[Schedule, ...], watch: Watch) -> Optimized:
        monkeypatch.setattr(optimizer, "open_timer", Device().open)
        request = asking()
        return submit(
            request, prepare_quickly(request, lambda done, total: None), visited, tmp_path / "run", watch
        )

    def make(
        game: SharedGame, submitting: Submit = judge, agent: str = "greedy", ranker: object = None
    ) -> Table:
        desk = Desk(game, AGENTS.named(agent), submitting, lambda: ranker)  # type: ignore[arg-type, return-value]
        server = Server(lambda token, over: application(token, desk, desk.pages, desk.actions, over), port=0)
        server.start()
        open_tables.append((desk, server))
        return Table(desk, server)

    yield make
    for desk, server in open_tables:
        desk.player.stop()
        desk.player.wait()
        server.stop()


def refused(play: Callable[[], object]) -> str:
    """The sentence with which something is refused."""
    with pytest.raises(CuasmrlError) as caught:
        play()
    return str(caught.value)
