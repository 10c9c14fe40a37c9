"""Rows of the results table: what the gate refuses is no gain, and a kept row is taken for no other."""

from dataclasses import replace
from pathlib import Path

import pytest

from cuasmrl.bench.results import Effort, Outcome, results, results_table
from cuasmrl.gpu.timing import L2

EFFORT = Effort(("random",), budget=3, trial=0)
ROW = Outcome(
    workload="softmax", effort=EFFORT.name, fastest="w8", cycles=4342.0, config="w8", agent="random",
    accepted=True, gain=0.02, median=0.01, share_above_zero=1.0, gain_over_fastest=0.02, bound=0.7,
    bound_name="issue slots", refused="",
)  # fmt: skip


def silent(done: int, total: int) -> None:
    pass


def test_a_row_is_made_once(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    (made,) = results(["softmax"], EFFORT, silent, file)
    assert (made.workload, made.config, made.agent) == ("softmax", made.fastest, "random")
    assert 0 < made.bound <= 1
    assert made.accepted or (made.gain, made.median, made.gain_over_fastest) == (0, 0, 0)
    assert results(["softmax"], EFFORT, silent, file) == [made]
    assert len(file.read_text().splitlines()) == 1


def test_rows_of_another_effort_are_other_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def best(name: str, effort: Effort) -> Outcome:
        asked.append(effort)
        return replace(ROW, workload=name, effort=effort.name)

    monkeypatch.setattr("cuasmrl.bench.results._best", best)
    file = tmp_path / "rows.jsonl"
    others = [
        replace(EFFORT, budget=4),
        replace(EFFORT, agents=("greedy",)),
        replace(EFFORT, trial=2),
        replace(EFFORT, l2=L2.WARM),
        EFFORT,
    ]
    for effort in others:
        results(["softmax"], effort, silent, file)
    assert asked == others
    results(["softmax"], EFFORT, silent, file)
    assert asked == others


def test_the_table_has_geometric_means() -> None:
    table = results_table(
        [ROW, replace(ROW, accepted=False, gain=0.0, gain_over_fastest=0.0, refused="gain")]
    )
    there = list(table.columns[5].cells)
    assert there == ["+2.0%", "none (gain)", "+1.0%"]
