"""Functions on many workers: results in order, and a worker that dies costs one attempt."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from cuasmrl.errors import CuasmrlError
from cuasmrl.gpu.devices.pool import jobs
from cuasmrl.gpu.devices.pool.jobs import Jobs, here, jobs_of, on_ray
from tests.gpu.devices.pool.fake_ray import FakeRay


def squared(number: int) -> int:
    return number * number


def dies_once(path: str) -> str:
    """It ends its process the first time."""
    if not Path(path).exists():
        Path(path).touch()
        os._exit(1)
    return "done"


def fails(sentence: str) -> None:
    raise CuasmrlError(sentence)


def test_processes(tmp_path: Path) -> None:
    """All in one: a process takes a while to start."""
    with here(1) as pool:
        dying = pool.submit(dies_once, str(tmp_path / "died"))
        assert list(pool.map(squared, range(5))) == [0, 1, 4, 9, 16]
        assert dying.result() == "done"
        failing = pool.submit(fails, "it cannot be done")
        with pytest.raises(CuasmrlError, match="^it cannot be done$"):
            failing.result()


def test_what_has_not_begun_is_left_when_somebody_interrupts() -> None:
    begun, go_on = threading.Event(), threading.Event()

    def attempt(number: int) -> int:
        begun.set()
        go_on.wait()
        return number

    pool = Jobs(1, lambda fn, *arguments: fn(*arguments), lambda: None)
    futures = [pool.submit(attempt, number) for number in range(3)]

    def interrupted() -> None:
        with pool:
            begun.wait()
            threading.Timer(0.05, go_on.set).start()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert futures[0].result() == 0
    assert [future.cancelled() for future in futures] == [False, True, True]


def test_a_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    ray = FakeRay(processors=3).install(monkeypatch)
    with jobs_of(7, "10.0.0.1:6379") as pool:
        assert pool.width == 3
        ray.losses = 2
        assert list(pool.map(squared, range(5))) == [0, 1, 4, 9, 16]
        failing = pool.submit(fails, "it cannot be done")
        with pytest.raises(CuasmrlError, match="^it cannot be done$"):
            failing.result()
        ray.losses = jobs.ATTEMPTS
        lost = pool.submit(squared, 3)
        with pytest.raises(
            CuasmrlError, match=r"4 workers in turn .* was lost on Ray \(WorkerCrashedError\)"
        ):
            lost.result()
    assert not ray.up


def test_folders_that_a_node_does_not_see(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    ray = FakeRay(processors=2).install(monkeypatch)
    ray.blind.add("node-0")
    with pytest.raises(CuasmrlError, match="cannot be reached from 1 of 2 nodes"):
        on_ray(shared=[tmp_path])
    with pytest.raises(CuasmrlError, match="cannot write .*nowhere: "):
        on_ray(shared=[tmp_path / "nowhere"])
