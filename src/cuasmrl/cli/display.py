"""How a run is shown while it goes on: a bar on a terminal, lines elsewhere, nothing where output is data."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rich.progress import BarColumn, Progress, TextColumn

from cuasmrl.cli.console import problems

if TYPE_CHECKING:
    from cuasmrl.gpu.traced import LaunchedKernel
    from cuasmrl.optimize import Candidate, Played, Subject

_PARTS = 10
"""Lines for each phase where there is no terminal."""
_WINDOW = 5.0
"""Seconds over which the rate of evaluations is taken."""


class Pace:
    """Evaluations per second over the last seconds, so that what came before them does not count."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._seen: deque[tuple[float, int]] = deque()

    def after(self, measured: int) -> float | None:
        """The rate now that so many are measured; None as long as there is none to tell."""
        now = self._clock()
        self._seen.append((now, measured))
        while len(self._seen) > 2 and self._seen[0][0] < now - _WINDOW:
            self._seen.popleft()
        then, before = self._seen[0]
        return (measured - before) / (now - then) if measured > before and now > then else None


class Display:
    """What `optimize.Watch` calls."""

    def __init__(
        self, quiet: bool, bar: Progress | None, clock: Callable[[], float] = time.perf_counter
    ) -> None:
        self.run: Path | None = None
        """Known once the kernel is prepared."""
        self._quiet = quiet
        self._bar = bar
        self._task = bar.add_task("", total=None, note="") if bar else None
        self._shown = ("", -1)
        self._clock = clock
        self._pace = Pace(clock)

    def stage(self, what: str) -> None:
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, description=what, total=None, note="")
        elif not self._quiet:
            problems.print(what, markup=False)

    def choosing(self, done: int, total: int) -> None:
        self._advance("choosing a config", done, total, "")

    def prepared(self, subject: Subject, run: Path) -> None:
        self.run = run
        self._pace = Pace(self._clock)
        if not self._quiet:
            kernel, candidates = subject.kernel, subject.candidates
            for line in left_out(candidates):
                problems.print(line, markup=False)
            introduced = introduction(kernel, subject.device, candidates)
            problems.print(f"{introduced}; run directory {run}", markup=False)

    def played(self, played: Played) -> None:
        note = f"best {100 * played.gain:+.2f} %"
        pace = self._pace.after(played.measured)
        if pace is not None:
            note += f", {pace:.0f} evaluations/s, {(played.budget - played.done) / pace:.0f} s left"
        self._advance("playing", played.done, played.budget, note)

    def _advance(self, what: str, done: int, total: int, note: str) -> None:
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, description=what, completed=done, total=total, note=note)
        elif not self._quiet and self._shown != (what, _PARTS * done // total):
            self._shown = what, _PARTS * done // total
            problems.print(f"{what}: {done} of {total}" + (f", {note}" if note else ""), markup=False)


def introduction(kernel: LaunchedKernel, device: str, candidates: Sequence[Candidate]) -> str:
    """What is examined, in one sentence."""
    timed = sum(candidate.cycles is not None for candidate in candidates)
    chosen = f", the fastest of {timed} configs" if timed else ""
    sizes = " ".join(f"{name}={size}" for name, size in kernel.sizes.items())
    return f"{kernel.name} {kernel.config}{chosen}, on {device}, {sizes}"


def left_out(candidates: Sequence[Candidate]) -> list[str]:
    """The configs that could not be compared, a line each."""
    able = [candidate for candidate in candidates if candidate.cycles is not None]
    unable = [candidate for candidate in candidates if candidate.cycles is None]
    if not unable:
        return []
    head = f"{len(unable)} of {len(candidates)} configs cannot run here, so {len(able)} are compared:"
    return [head, *(f"  {candidate.config}: {candidate.problem}" for candidate in unable)]


@contextmanager
def display(quiet: bool) -> Iterator[Display]:
    if quiet or not problems.is_terminal:
        yield Display(quiet, None)
        return
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[note]}"))
    with Progress(*columns, console=problems, transient=True) as bar:
        yield Display(quiet, bar)
