"""Games of a contest that were kept are taken for no others."""

import json
from pathlib import Path

from cuasmrl.bench.agents import Contest, Played, agents
from cuasmrl.gpu.devices import Objective
from cuasmrl.schedule import Scoreboards

GAME = Played("random", "softmax", "w8", 5, 0, 5, 4342.0, 0.02, 0.01, 0.01, 1.0, "00ff")


def kept_in(place: Path, **changes: object) -> Path:
    row = {**GAME.as_dict(), **changes}
    place.write_text(json.dumps({name: value for name, value in row.items() if value is not None}) + "\n")
    return place


def test_a_kept_game_is_not_played_again(tmp_path: Path) -> None:
    contest = Contest(("random",), ("softmax",), (5,), seeds=1, objective=Objective.NOMINAL)
    for changes in ({}, {"scoreboards": None}):
        file = kept_in(tmp_path / "games.jsonl", **changes)
        assert agents(contest, lambda done, total: None, file) == [GAME]


def test_a_game_with_other_scoreboards_is_another_game(tmp_path: Path) -> None:
    contest = Contest(("random",), ("softmax",), (5,), seeds=1, scoreboards=Scoreboards.REASSIGNED)
    file = kept_in(tmp_path / "games.jsonl")
    (found,) = agents(contest, lambda done, total: None, file, jobs=1)
    assert found != GAME
    assert found.scoreboards == "reassigned"
    assert len(file.read_text().splitlines()) == 2
