"""How a board gets back: what undoes each of its last changes, and which schedules lie between them."""

from __future__ import annotations

from collections.abc import Callable

from cuasmrl.schedule.schedule import Schedule

_MOST = 1 << 20
"""Numbers that entries keep, all together; with more, everything is forgotten."""


class Journal:
    """Entries are taken back in the reverse order of the changes."""

    def __init__(self) -> None:
        self._entries: list[Callable[[], object]] = []
        self._marks: list[tuple[int, Schedule]] = []
        """Schedules, by the number of entries before them."""
        self._size = 0

    def note(self, undo: Callable[[], object], size: int = 1) -> None:
        """Before a change: what undoes it, and how many numbers that keeps."""
        if self._size + size > _MOST:
            self.forget()
        self._entries.append(undo)
        self._size += size

    def drop(self) -> None:
        """The change that was noted last did not come about."""
        self._entries.pop()

    @property
    def present(self) -> Schedule | None:
        """Of the board, if it was asked for since the last change."""
        if self._marks and self._marks[-1][0] == len(self._entries):
            return self._marks[-1][1]
        return None

    def mark(self, schedule: Schedule) -> None:
        """This is the schedule of the board now."""
        self._marks.append((len(self._entries), schedule))

    def rewind(self, schedule: Schedule) -> bool:
        """Back to a schedule that the board has had; False, and nothing changed, if it is not known here."""
        for number in range(len(self._marks) - 1, -1, -1):
            if self._marks[number][1] is schedule:
                break
        else:
            return False
        before = self._marks[number][0]
        del self._marks[number + 1 :]
        while len(self._entries) > before:
            self._entries.pop()()
        if not before:
            self._size = 0
        return True

    def forget(self) -> None:
        self._entries.clear()
        self._marks.clear()
        self._size = 0
