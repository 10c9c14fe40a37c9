"""Games of a contest that were kept are taken for no others."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from cuasmrl.bench.agents import Contest, Key, Played, agents, by_setup
from cuasmrl.bench.agents_table import agents_table
from cuasmrl.errors import CuasmrlError
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
    keys: list[Key] = [(*how, agent, "softmax", 0, n, 0) for agent in ("random", "anneal") for n in (9, 4)]
    assert by_setup(keys) == [
        ((*how, "random", "softmax", 0), [(4, 0), (9, 0)]),
        ((*how, "anneal", "softmax", 0), [(9, 0)]),
        ((*how, "anneal", "softmax", 0), [(4, 0)]),
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
    assert list(table.columns[2].cells) == ["the device itself"] * 2 + ["chips around it"] * 2 + [""]
    assert list(table.columns[3].cells) == ["+3.0%", "+3.0%", "+1.0%", "+1.0%", "0"]
    assert len(agents_table([GAME]).columns) == 3


def test_players_are_compared_by_the_games_that_both_have_played() -> None:
    mine = [replace(GAME, seed=seed, median=0.03 + seed / 1000) for seed in range(4)]
    other = [replace(GAME, seed=seed, agent="greedy", budget=9, median=0.01) for seed in range(1, 9)]
    table = agents_table([*mine, *other])
    rows = {cell: n for n, cell in enumerate(table.columns[0].cells)}
    # Seeds 1 to 3: 3.2 % on average against 1.0.
    (ahead,) = [list(c.cells)[rows["ahead of greedy 9"]] for c in table.columns if c.header == "random\n5"]
    figure, low, high = (float(part.strip("[],")) for part in str(ahead).split())
    assert figure == 2.2
    assert 2.09 < low < figure < high < 2.31
    assert not agents_table([*mine[:2], *other]).columns[3]._cells[rows["geometric mean"] + 1 :][:-1]


def test_a_game_by_the_clock_ends_with_it() -> None:
    contest = Contest(("random", "greedy:3"), ("softmax/w8",), seeds=1, devices=("hidden:5",), seconds=(1, 2))
    one, two, three = agents(contest, lambda done, total: None, jobs=1)
    assert [(game.limit, game.budget) for game in (one, two, three)] == [(1, 0), (2, 0), (0, 3)]
    assert 1 <= one.seconds <= two.seconds
    assert two.seconds >= 2
    assert 0 < one.evaluations < two.evaluations
    assert three.evaluations == 3


@pytest.mark.parametrize(
    ("agent", "sentence"),
    [("anneal", "anneal plays by its budget"), ("greedy:many", "no number of evaluations")],
)
def test_what_cannot_be_compared_is_refused(agent: str, sentence: str) -> None:
    with pytest.raises(CuasmrlError, match=sentence):
        Contest((agent,), ("softmax",), seconds=(1,)).check()
