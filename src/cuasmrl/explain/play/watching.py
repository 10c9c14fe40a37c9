"""A run that goes on, for browsers to look at: the search, the best schedule, what has changed last.

The run only notes what it finds. All else is worked out by the thread that serves the page, when somebody
looks, and never for more than a small share of the time.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from threading import Lock
from typing import Any

from cuasmrl.explain.play.app import dumped
from cuasmrl.explain.play.curve import Curve
from cuasmrl.explain.play.page import play_page
from cuasmrl.explain.play.passages import told
from cuasmrl.explain.play.saving import verdict_data
from cuasmrl.explain.play.state import kernel_data, schedule_data
from cuasmrl.explain.play.stopwatch import Reading, Stopwatch
from cuasmrl.gpu.traced import TracedKernel
from cuasmrl.optimize import Optimized, Played, Subject, Watch
from cuasmrl.optimize.runs import RunDirectory
from cuasmrl.schedule import Board, Schedule

_PLAYING = "playing"
_SHARE = 0.006
"""Of the time that may go into what is shown."""
_LEAST_PAUSE = 1.0
_LONGEST_PAUSE = 15.0
"""Seconds between two looks."""
_LOOKS = 3
"""Over which the rate of evaluations is taken."""
_KEPT = 200
"""Improvements that are listed."""


class Watched:
    """One run. The first half is called by the run, the second by the server."""

    look = 0.5
    """Seconds between looks for news: each takes time from the run."""

    def __init__(self, ready: Callable[[bool], None] = lambda can_be_watched: None) -> None:
        """`ready` is called once it is known whether there is something to look at."""
        self._ready = ready
        self._lock = Lock()
        self._kernel: dict[str, Any] = {}
        self._stage = "preparing"
        self._done = 0
        self._curve = Curve()
        self._over: dict[str, Any] | None = None
        self._paces: list[tuple[float, int]] = []
        self._pulse = 0
        self._news = True
        self._paid = self._last = 0.0
        self._worked_out = -1
        self._state: dict[str, Any] = {}
        self._text = ""

    @property
    def hooks(self) -> Watch:
        return Watch(self._at, lambda done, total: None, self._prepared, self._played, self._found)

    def _at(self, what: str) -> None:
        self._stage, self._news = what, True

    def _prepared(self, subject: Subject, run: Path) -> None:
        config = RunDirectory.open(run).config
        kernel = subject.kernel if isinstance(subject.kernel, TracedKernel) else None
        if kernel is not None:
            self.begin(kernel, config.agent, config.budget)
        self._ready(kernel is not None)

    def begin(self, kernel: TracedKernel, agent: str, budget: int) -> None:
        """From now on there is something to look at."""
        self._agent, self._budget = agent, budget
        board = Board(kernel.listing)
        self.watch = Stopwatch(kernel, board.blocks)
        self._kernel = kernel_data(kernel, board, self.watch) | {"agent": self._agent}
        self._best = self._shown = kernel.original
        self._reading = self.watch.original
        self._history = [_step("as compiled", self._reading, self._reading)]
        self._first = 0

    def _played(self, played: Played) -> None:
        self._stage = _PLAYING
        self._done, self._news = played.done, True
        self._curve.add(played.done, played.tried, played.gain)

    def _found(self, best: Schedule) -> None:
        self._best = best

    def finished(self, found: Optimized, report: Path | None) -> None:
        """The verdict."""
        self._over = verdict_data(found) | {"report": str(report) if report else None}

    def close(self) -> None:
        """Nothing comes any more, whatever the reason."""
        self._over = self._over or {"problem": "the run has stopped before its end; it can be continued"}
        self._stage, self._news = "over", True

    # ---- for the server ----

    @property
    def pulse(self) -> int:
        """Grows when there is news and the last look is long enough ago."""
        with self._lock:
            if self._news and self._is_due():
                self._news = False
                self._pulse += 1
            return self._pulse

    def state(self) -> dict[str, Any]:
        """The same for everybody who asks before there is news."""
        self._renew()
        return self._state

    def text(self) -> str:
        self._renew()
        return self._text

    def _renew(self) -> None:
        with self._lock:
            if self._worked_out != self._pulse:
                started = time.thread_time()
                self._state = self._work_out()
                self._text = dumped(self._state)
                self._worked_out = self._pulse
                cost = time.thread_time() - started
                # Of the time that this process gets, which on a busy machine is less than passes.
                self._paid = time.process_time() + cost / _SHARE
                self._last = time.monotonic()

    def _is_due(self) -> bool:
        """Is the last look paid for, or so long ago that the run may be on another device?"""
        pause = time.monotonic() - self._last
        is_paid = pause >= _LEAST_PAUSE and time.process_time() >= self._paid
        return self._over is not None or is_paid or pause >= _LONGEST_PAUSE

    @property
    def pages(self) -> dict[str, Callable[[], str]]:
        return {"": lambda: play_page("watch", self._kernel, self.state())}

    def _work_out(self) -> dict[str, Any]:
        best = self._best
        if best is not self._shown:
            words = told(self._shown, best)
            self._shown, self._reading = best, self.watch.read(best)
            self._history.append(_step(words, self._reading, self.watch.original))
            self._first += max(0, len(self._history) - _KEPT)
            self._history = self._history[-_KEPT:]
        last = self._history[-1]
        agent = {"name": self._agent, "running": self._over is None, "done": self._done,
                 "budget": self._budget, "problem": None, "stage": self._stage, "rate": self._rate(),
                 "curve": self._curve.as_dict()}  # fmt: skip
        cursor = self._first + len(self._history) - 1
        return {
            "version": cursor, "pulse": self._pulse, **schedule_data(self._shown), **self._reading.as_dict(),
            "gain": last["gain"], "best": {"cycles": last["cycles"], "gain": last["gain"]}, "touched": None,
            "first": self._first, "cursor": cursor, "history": list(self._history), "agent": agent,
            "over": self._over is not None, **({"saving": self._over} if self._over else {}),
        }  # fmt: skip

    def _rate(self) -> float | None:
        """Evaluations per second over the last looks, while there are any."""
        if self._stage != _PLAYING:
            return None
        now = time.monotonic()
        self._paces = [*self._paces[-_LOOKS:], (now, self._done)]
        (then, before), *_ = self._paces
        return (self._done - before) / (now - then) if now > then else None


def _step(words: str, reading: Reading, original: Reading) -> dict[str, Any]:
    return {"words": words, "cycles": reading.cycles, "gain": original.cycles / reading.cycles - 1}
