"""How a run is shown while it goes on: a bar on a terminal, lines elsewhere, nothing where output is data."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rich.progress import BarColumn, Progress, TextColumn

from cuasmrl.cli.console import problems

if TYPE_CHECKING:
    from cuasmrl.gpu.traced import TracedKernel
    from cuasmrl.optimize import Candidate, Played, Subject

_PARTS = 10
"""Lines for each phase where there is no terminal."""


class Display:
    """What `optimize.Watch` calls."""

    def __init__(self, quiet: bool, bar: Progress | None) -> None:
        self.run: Path | None = None
        """Known once the kernel is prepared."""
        self._quiet = quiet
        self._bar = bar
        self._task = bar.add_task("", total=None, note="") if bar else None
        self._shown = ("", -1)
        self._begin: tuple[int, float] | None = None

    def stage(self, what: str) -> None:
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, description=what, total=None, note="")
        elif not self._quiet:
            problems.print(what, markup=False)

    def choosing(self, done: int, total: int) -> None:
        self._advance("choosing a config", done, total, "")

    def prepared(self, subject: Subject, run: Path) -> None:
        self.run = run
        if not self._quiet:
            kernel, candidates = subject.kernel, subject.candidates
            for line in left_out(candidates):
                problems.print(line, markup=False)
            introduced = introduction(kernel, subject.device, candidates)
            problems.print(f"{introduced}; run directory {run}", markup=False)

    def played(self, played: Played) -> None:
        note = f"best {100 * played.gain:+.2f} %"
        if self._begin is None:
            self._begin = played.measured, time.perf_counter()
        measured, seconds = played.measured - self._begin[0], time.perf_counter() - self._begin[1]
        if measured and seconds:
            pace = measured / seconds
            note += f", {pace:.0f} evaluations/s, {(played.budget - played.done) / pace:.0f} s left"
        self._advance("playing", played.done, played.budget, note)

    def _advance(self, what: str, done: int, total: int, note: str) -> None:
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, description=what, completed=done, total=total, note=note)
        elif not self._quiet and self._shown != (what, _PARTS * done // total):
            self._shown = what, _PARTS * done // total
            problems.print(f"{what}: {done} of {total}" + (f", {note}" if note else ""), markup=False)


def introduction(kernel: TracedKernel, device: str, candidates: Sequence[Candidate]) -> str:
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
