"""Games of a contest that were kept are taken for no others."""

import json
from dataclasses import replace
from pathlib import Path

from cuasmrl.bench.agents import Contest, Key, Played, agents, agents_table, by_setup
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


def test_one_game_serves_all_budgets_where_play_does_not_depend_on_them() -> None:
    how = "virtual", "robust", "cold", "kept"
    keys: list[Key] = [(*how, agent, "softmax", 0, n) for agent in ("random", "anneal") for n in (9, 4)]
    assert by_setup(keys) == [
        ((*how, "random", "softmax", 0), [4, 9]),
        ((*how, "anneal", "softmax", 0), [9]),
        ((*how, "anneal", "softmax", 0), [4]),
    ]


def test_a_long_game_holds_the_short_one_on_a_hidden_device() -> None:
    contest = Contest(("random",), ("softmax/w8",), (3, 6), seeds=1, devices=("hidden:5+l2",))
    both = agents(contest, lambda done, total: None, jobs=1)
    (short,) = agents(replace(contest, budgets=(3,)), lambda done, total: None, jobs=1)
    assert [game.evaluations for game in both] == [3, 6]
    assert replace(both[0], seconds=0.0) == replace(short, seconds=0.0)
    assert (short.device, short.objective) == ("hidden:5+l2", "nominal")


def test_gains_on_a_hidden_device_are_shown_on_it_and_on_chips_around_it() -> None:
    games = [replace(GAME, device="hidden:1", confirmed=0.03, median=0.01)]
    table = agents_table(games)
    assert [column.header for column in table.columns[:3]] == ["workload", "config", "gain on"]
    assert list(table.columns[2].cells) == ["the device itself"] * 2 + ["chips around it"] * 2
    assert list(table.columns[3].cells) == ["+3.0%", "+3.0%", "+1.0%", "+1.0%"]
    assert len(agents_table([GAME]).columns) == 3
