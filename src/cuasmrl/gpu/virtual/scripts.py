"""Scripts as tests: a tutorial passes if it runs to its end, its own comparisons included."""

from __future__ import annotations

import runpy
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import pytest


class Script(pytest.File):
    """One Python file that is executed as a program."""

    def collect(self) -> Iterator[pytest.Item]:
        yield ScriptRun.from_parent(self, name="script")


class ScriptRun(pytest.Item):
    """Its tables by `triton.testing.perf_report` are left out: they time many sizes, and compare nothing."""

    def runtest(self) -> None:
        import triton.testing

        with patch.object(triton.testing.Mark, "run", lambda mark, *arguments, **options: None):
            runpy.run_path(str(self.path), run_name="__main__")

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, 0, self.path.name
