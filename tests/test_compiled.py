"""Compilation is said, once, and done once by processes that start together."""

import importlib
import logging
import multiprocessing
import sys
from multiprocessing.queues import Queue
from pathlib import Path

import pytest
from numba import njit
from numba.core.event import install_listener

from cuasmrl.compiled import FirstCompilation

SOURCE = """
from cuasmrl.compiled import compiled, inlined

@inlined
def twice(x):
    return 2 * x

@compiled
def total(n):
    result = 0
    for i in range(n):
        result += twice(i)
    return result
"""


def test_a_compilation_is_said() -> None:
    listener = FirstCompilation()
    with install_listener("numba:compile", listener):
        assert njit(lambda x: x + 1)(1) == 2
    assert listener.was_said


def test_it_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "cuasmrl.compiled")
    listener = FirstCompilation()
    for _ in range(2):
        listener.on_start(None)
    assert [record.getMessage().split()[0] for record in caplog.records] == ["compiling"]


def summed(folder: Path, answers: "Queue[tuple[int, int]]") -> None:
    """The answer of the compiled function, and how often this process has compiled it."""
    sys.path.insert(0, str(folder))
    total = importlib.import_module("sums").total
    answers.put((total(5), sum(total.stats.cache_misses.values())))


def test_processes_that_start_together_compile_once(tmp_path: Path) -> None:
    (tmp_path / "sums.py").write_text(SOURCE)
    fork = multiprocessing.get_context("fork")
    answers: Queue[tuple[int, int]] = fork.Queue()
    children = [fork.Process(target=summed, args=(tmp_path, answers)) for _ in range(3)]
    for child in children:
        child.start()
    assert sorted(answers.get(timeout=60) for _ in children) == [(20, 0), (20, 0), (20, 1)]
    for child in children:
        child.join()


def test_a_folder_that_cannot_be_written_is_no_obstacle(tmp_path: Path) -> None:
    (tmp_path / "sums.py").write_text(SOURCE)
    (tmp_path / "__pycache__").write_text("a file in the way")
    fork = multiprocessing.get_context("fork")
    answers: Queue[tuple[int, int]] = fork.Queue()
    child = fork.Process(target=summed, args=(tmp_path, answers))
    child.start()
    assert answers.get(timeout=60) == (20, 1)
    child.join()
