"""What people have found as a run: picked from, proved, compared and confirmed like any other."""

from __future__ import annotations

from collections.abc import Callable
from threading import Thread
from typing import Any

from cuasmrl.errors import CuasmrlError
from cuasmrl.explain.play.game import SharedGame
from cuasmrl.explain.report.facts import facts_of
from cuasmrl.explain.report.page import page_of
from cuasmrl.files import write_text
from cuasmrl.optimize import Optimized, Watch
from cuasmrl.schedule import Schedule

Submit = Callable[[tuple[Schedule, ...], Watch], Optimized]
"""Judges schedules that were found by hand."""


class Saving:
    """One at a time, in a thread of its own; the game goes on meanwhile."""

    def __init__(self, game: SharedGame, submit: Submit) -> None:
        self.game = game
        self._submit = submit
        self._thread: Thread | None = None
        self._page: str | None = None

    def start(self) -> None:
        if self._thread is not None and self._thread.is_alive():
            raise CuasmrlError("a run is being judged already; wait for its verdict")
        visited = tuple(self.game.visited)
        if not visited:
            raise CuasmrlError("nothing has been tried yet, so there is nothing to judge; make a move first")
        self._tell(stage="starting")
        self._thread = Thread(target=self._save, args=(visited,), daemon=True)
        self._thread.start()

    def page(self) -> str:
        """The report of what was judged last."""
        if self._page is None:
            raise CuasmrlError("nothing has been judged yet")
        return self._page

    def wait(self) -> None:
        if self._thread is not None:
            self._thread.join()

    def _save(self, visited: tuple[Schedule, ...]) -> None:
        try:
            found = self._submit(visited, Watch(stage=lambda what: self._tell(stage=what)))
            report = found.run / "report.html"
            self._page = page_of(facts_of(found.run, found.subject.traced, limit=0))
            write_text(report, self._page)
        except CuasmrlError as error:
            self._tell(problem=str(error))
            return
        self._tell(**verdict_data(found), report=str(report))

    def _tell(self, **note: Any) -> None:
        self.game.note("saving", note)


def verdict_data(found: Optimized) -> dict[str, Any]:
    """What the gate says of a run, for a page."""
    return {
        "run": str(found.run),
        "sentence": found.verdict.sentence,
        "accepted": found.verdict.accepted,
        "checks": [[check.name, check.outcome.value, check.sentence] for check in found.verdict.checks],
    }
