"""Rates of one and several workers beside each other."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from io import StringIO

import pytest
from rich.console import Console

from cuasmrl.bench import workers as measured
from cuasmrl.bench.workers import RAY, Round, workers_table
from cuasmrl.errors import CuasmrlError
from cuasmrl.gpu.devices.pool import Crew
from tests.climbing import kernel
from tests.gpu.devices.pool.crews import Threads


def a_round(workers: int, seconds: float, head: float, others: float) -> Round:
    return Round("k", "greedy", workers, seconds, head, others, 100, 0.01, "a" * 64, 1.0)


def test_what_processor_times_allow() -> None:
    one = a_round(1, 2.0, 2.0, 0.0)
    assert a_round(2, 1.1, 0.2, 2.2).most(one) == pytest.approx(2.0 / 1.2), "two workers share 2.4 seconds"
    assert a_round(4, 1.1, 1.6, 0.8).most(one) == pytest.approx(2.0 / 1.6), "the head alone takes 1.6"


def test_the_table() -> None:
    rounds = [a_round(1, 2.0, 2.0, 0.0), a_round(2, 1.0, 0.4, 2.0), a_round(RAY, 1.25, 0.4, 0.0)]
    console = Console(width=150, record=True, file=StringIO())
    console.print(workers_table(rounds))
    lines = [line.split() for line in console.export_text().splitlines()]
    assert lines[2][2:9] == ["2", "100", "2.00", "2.00", "to", "2.00", "1.67"]
    assert lines[3][2:5] == ["2", "nodes", "80"]
    assert all(line[-1] == "everywhere" for line in lines[1:4])


def test_games_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def crew(count: int) -> Iterator[Crew]:
        yield Threads(count)

    monkeypatch.setattr(measured, "_crew", crew)
    monkeypatch.setattr(measured, "_traced", lambda name: kernel())
    found = measured.workers(["k"], ["greedy"], (1, 3), 30, 2, 0, 4, lambda done, total: None)
    assert [one.workers for one in found] == [1, 3, 1, 3]
    assert len({one.schedule for one in found}) == len({one.gain for one in found}) == 1
    assert all(one.evaluations == 30 and one.seconds > 0 and one.head > 0 for one in found)


def test_a_kernel_without_a_config() -> None:
    with pytest.raises(CuasmrlError, match="softmax names no config; write gemm_leaky_relu/"):
        measured.workers(["softmax"], ["greedy"], (1,), 30, 1, 0, None, lambda done, total: None)
