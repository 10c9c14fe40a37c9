"""The simulated queue of a fleet."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from cuasmrl.bench.fleet import HeadTimes, TaskTimes, measured_head, measured_tasks, simulate
from cuasmrl.errors import CuasmrlError

TASKS = TaskTimes(survey=2.0, evaluation=0.01, opening=3.0, finish=10.0)
HEAD = HeadTimes(task=1e-4, kernel=1e-6, task_bytes=500, journal_bytes=150)


def test_one_worker_works_all_the_time() -> None:
    found = simulate(50, 1, 400, 100, TASKS, HEAD)
    assert found.busy == pytest.approx(1.0, abs=0.01)
    assert found.evaluations <= 50 * 400
    assert found.tasks == 50 + found.evaluations // 100 + 50
    assert found.network_bytes == 500 * found.tasks


def test_more_workers_are_faster_until_there_is_nothing_to_share() -> None:
    found = [simulate(100, workers, 400, 100, TASKS, HEAD) for workers in (1, 4, 16, 1000)]
    hours = [one.hours for one in found]
    assert hours == sorted(hours, reverse=True)
    assert hours[0] / hours[1] == pytest.approx(4, rel=0.1)
    assert found[-1].busy < 0.1
    assert len({one.evaluations for one in found}) == 1, "what is played does not depend on it"


def test_a_slow_head_is_what_holds_many_workers_up() -> None:
    slow = simulate(300, 100, 400, 100, TASKS, replace(HEAD, task=1.0))
    assert slow.head > 0.9
    assert slow.busy < simulate(300, 100, 400, 100, TASKS, HEAD).busy / 2


def test_the_head_is_measured() -> None:
    head = measured_head(100)
    assert 0 < head.task < 0.1
    assert 100 < head.journal_bytes < 1000
    assert head.task_bytes > 100


def test_a_journal_says_what_tasks_take(tmp_path: Path) -> None:
    lines = [
        ("survey k", 2.0),
        ("play k 100", 6.0),
        ("play k 200", 1.0),
        ("play k 300", 1.5),
        ("finish k 300", 9.0),
    ]
    journal = tmp_path / "journal.jsonl"
    journal.write_text("".join(json.dumps({"task": task, "seconds": s}) + "\n" for task, s in lines))
    assert measured_tasks(journal) == TaskTimes(2.0, 0.01, 5.0, 9.0)
    journal.write_text(json.dumps({"task": "survey k", "seconds": 1.0}) + "\n")
    with pytest.raises(CuasmrlError, match="has no kernel that got two slices"):
        measured_tasks(journal)
