"""Rows of a long benchmark, kept in a file: one that was interrupted goes on where it was."""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

from cuasmrl.errors import CuasmrlError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Row = TypeVar("Row", bound="DataclassInstance")
Key = TypeVar("Key", bound=Hashable)


class Kept(Generic[Row]):
    """One line of JSON per row; without a path nothing is kept."""

    def __init__(self, kind: type[Row], path: Path | None) -> None:
        self.kind = kind
        self.path = path

    def complete(
        self,
        wanted: Sequence[Key],
        key_of: Callable[[Row], Key],
        make: Callable[[list[Key]], Iterable[Row]],
        progress: Callable[[int, int], None],
    ) -> list[Row]:
        """The rows with these keys: those in the file, and the others as `make` gives them, in any order."""
        found = {key_of(row): row for row in self.rows()}
        left = [key for key in wanted if key not in found]
        progress(len(wanted) - len(left), len(wanted))
        for row in make(left):
            found[key_of(row)] = row
            self.add(row)
            progress(sum(key in found for key in wanted), len(wanted))
        return [found[key] for key in wanted]

    def rows(self) -> list[Row]:
        if self.path is None or not self.path.exists():
            return []
        try:
            return [self.kind(**json.loads(line)) for line in self.path.read_text("utf-8").splitlines()]
        except (ValueError, TypeError) as error:
            raise CuasmrlError(
                f"{self.path} does not hold rows of this benchmark; choose another file"
            ) from error

    def add(self, row: Row) -> None:
        if self.path is None:
            return
        try:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(asdict(row)) + "\n")
        except OSError as error:
            raise CuasmrlError(
                f"cannot write {self.path}: {error.strerror}; choose a writable place"
            ) from error
