"""One game that any number of browsers look at: the only truth, changed by one at a time.

Every change has a version. Whoever moves says which version was seen; a move on an older one is refused, and
the answer holds the present state. So two people cannot undo each other's work without having seen it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from threading import RLock
from typing import Any

from cuasmrl.checker import Checker
from cuasmrl.errors import CuasmrlError
from cuasmrl.explain.play.deeds import carry_out, move_of
from cuasmrl.explain.play.reach import reach_of
from cuasmrl.explain.play.stopwatch import Reading, Stopwatch
from cuasmrl.gpu.traced import TracedKernel
from cuasmrl.schedule import Board, Schedule


class StaleError(CuasmrlError):
    """Somebody else has moved since."""


@dataclass(frozen=True)
class Step:
    """One place in the history."""

    words: str
    schedule: Schedule
    reading: Reading
    instruction: int | None = None
    """That was moved."""


class SharedGame:
    def __init__(self, kernel: TracedKernel, start: Schedule | None = None) -> None:
        """From the compiler's schedule, or from another one that moves have led to."""
        self.kernel = kernel
        self.board = Board(kernel.listing)
        self.checker = Checker(kernel.cubin, {kernel.listing.kernel.name: kernel.listing})
        self.watch = Stopwatch(kernel, self.board.blocks)
        self.lock = RLock()
        self.version = 0
        self.pulse = 0
        """Counts everything that browsers should hear of, notes among them."""
        self.steps = [Step("as compiled", kernel.original, self.watch.original)]
        self.cursor = 0
        self.notes: dict[str, Any] = {}
        """What goes on beside the board: an agent that plays, a run that is saved."""
        if start is not None and start != kernel.original:
            self.adopt("the run that was opened", start)

    @property
    def here(self) -> Step:
        return self.steps[self.cursor]

    @property
    def best(self) -> Step:
        return min(self.steps, key=lambda step: step.reading.cycles)

    @property
    def visited(self) -> Sequence[Schedule]:
        """All schedules of the history but the compiler's, each once."""
        found = dict.fromkeys(step.schedule for step in self.steps)
        found.pop(self.kernel.original, None)
        return tuple(found)

    def gain(self, reading: Reading) -> float:
        return self.watch.original.cycles / reading.cycles - 1

    def play(self, version: int, data: dict[str, Any]) -> None:
        """Carry out a move; refused with a sentence if it is stale, makes no sense or is not legal."""
        with self.turn(version):
            deed = carry_out(self.board, move_of(data, self.board), self.checker)
            self._put(Step(deed.words, *self._read(), deed.instruction))

    def go(self, version: int, to: int) -> None:
        """To a place in the history: undo and redo."""
        with self.turn(version):
            if not 0 <= to < len(self.steps):
                raise CuasmrlError("there is nothing to undo" if to < 0 else "there is nothing to redo")
            self.cursor = to
            self.board.restore(self.here.schedule)
            self._changed()

    def reach(self, version: int, i: int) -> dict[str, Any]:
        with self.lock:
            self.check(version)
            if not 0 <= i < len(self.board.code):
                raise CuasmrlError(f"there is no instruction {i}")
            return reach_of(self.board, i).as_dict()

    def adopt(self, words: str, schedule: Schedule) -> None:
        """Take over a schedule that moves have led to elsewhere."""
        with self.lock:
            self.board.restore(schedule)
            self._put(Step(words, schedule, self.watch.read(schedule)))

    def note(self, name: str, value: Any) -> None:
        with self.lock:
            self.notes = {**self.notes, name: value}
            self.pulse += 1

    @contextmanager
    def turn(self, version: int) -> Iterator[None]:
        with self.lock:
            self.check(version)
            if self.is_busy:
                raise CuasmrlError("the agent is playing; stop it to play on yourself")
            yield

    @property
    def is_busy(self) -> bool:
        agent = self.notes.get("agent")
        return bool(agent and agent["running"])

    def check(self, version: int) -> None:
        if version != self.version:
            raise StaleError("the board has changed in the meantime; this is how it stands now")

    def _read(self) -> tuple[Schedule, Reading]:
        schedule = self.board.schedule()
        return schedule, self.watch.read(schedule)

    def _put(self, step: Step) -> None:
        """What could have been redone is gone then."""
        self.steps = [*self.steps[: self.cursor + 1], step]
        self.cursor += 1
        self._changed()

    def _changed(self) -> None:
        self.version += 1
        self.pulse += 1
