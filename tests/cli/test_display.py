"""The progress of a run: the rate of evaluations is that of the last seconds."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from cuasmrl.cli.display import Display, Pace
from cuasmrl.optimize import Played


class FakeClock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def paced(clock: FakeClock, pace: Pace, first: int, last: int, seconds: float) -> float | None:
    """The rate after evaluations that take so long each."""
    rate = None
    for measured in range(first, last + 1):
        clock.now += seconds
        rate = pace.after(measured)
    return rate


def test_one_evaluation_is_no_rate() -> None:
    clock = FakeClock()
    assert Pace(clock).after(1) is None


def test_a_steady_rate() -> None:
    clock = FakeClock()
    assert paced(clock, Pace(clock), 1, 300, 0.01) == pytest.approx(100)


def test_what_is_longer_ago_than_the_window_does_not_count() -> None:
    clock = FakeClock()
    pace = Pace(clock)
    pace.after(1)
    clock.now += 60
    assert pace.after(2) == pytest.approx(1 / 60)
    assert paced(clock, pace, 3, 10, 0.01) == pytest.approx(100)


def test_the_rate_follows_a_change_within_the_window() -> None:
    clock = FakeClock()
    pace = Pace(clock)
    assert paced(clock, pace, 1, 1000, 0.01) == pytest.approx(100)
    half = paced(clock, pace, 1001, 1005, 0.5)
    assert half is not None
    assert 2 < half < 100
    assert paced(clock, pace, 1006, 1030, 0.5) == pytest.approx(2)


def test_evaluations_slower_than_the_window() -> None:
    clock = FakeClock()
    assert paced(clock, Pace(clock), 1, 5, 20.0) == pytest.approx(1 / 20)


def test_what_was_known_before_is_no_rate() -> None:
    clock = FakeClock()
    pace = Pace(clock)
    for _ in range(100):
        clock.now += 0.001
        assert pace.after(0) is None


def test_each_run_has_its_own_rate(capsys: pytest.CaptureFixture[str]) -> None:
    clock = FakeClock()
    display = Display(quiet=False, bar=None, clock=clock)
    kernel = SimpleNamespace(name="k", config="c", sizes={})
    subject = cast(Any, SimpleNamespace(kernel=kernel, device="virtual:a100", candidates=()))
    for _ in range(2):
        display.prepared(subject, Path("run"))
        clock.now += 30
        for done in range(1, 11):
            clock.now += 0.1
            display.played(Played(done, 10, 0.05, done, 0.05))
    lines = capsys.readouterr().err.splitlines()
    played = [line for line in lines if line.startswith("playing: ")]
    assert played[:10] == played[10:]
    assert played[0] == "playing: 1 of 10, best +5.00 %"
    assert played[4] == "playing: 5 of 10, best +5.00 %, 10 evaluations/s, 0 s left"
