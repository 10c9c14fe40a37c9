"""An evaluated step of this code beside that of another revision, in one run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.table import Table

from cuasmrl.bench import step_cost
from cuasmrl.bench.step_cost import BESIDE, EQUAL, SEARCH, STEPS
from cuasmrl.errors import CuasmrlError

_PACKAGE = Path(__file__).parents[2]


@dataclass(frozen=True)
class Cost:
    """Milliseconds of an evaluated step."""

    processor: float
    """On one core."""
    wall: float
    """With all cores that the code makes use of, and whatever else the machine does meanwhile."""


@dataclass(frozen=True)
class StepFigures:
    """One kind of step on one kernel: how it is evaluated, before and now."""

    step: str
    kernel: str
    how: str
    before: Cost
    now: Cost

    @property
    def ratio(self) -> float:
        """Of processor time."""
        return self.before.processor / self.now.processor

    def as_dict(self) -> dict[str, Any]:
        return asdict(self) | {"ratio": self.ratio}


def steps(before: Path, progress: Callable[[int, int], None]) -> list[StepFigures]:
    """Every step with the code of a directory and with this one, in turn, each in a process of its own."""
    there = before / "src"
    if not (there / "cuasmrl").is_dir():
        raise CuasmrlError(
            f"{before} holds no revision of cuasmrl; make one with git worktree add {before} REVISION"
        )
    jobs = [(number, how) for number in range(len(STEPS)) for how in (SEARCH, EQUAL, BESIDE)]
    found = []
    for done, (number, how) in enumerate(jobs, 1):
        step, name, config = STEPS[number]
        costs = [_cost(path, number, how) for path in (there, _PACKAGE)]
        found.append(StepFigures(step, f"{name} {config}", how, *costs))
        progress(done, len(jobs))
    return found


def _cost(package: Path, number: int, how: str) -> Cost:
    environment = os.environ | {"PYTHONPATH": str(package)}
    command = [sys.executable, str(Path(step_cost.__file__)), str(number), how]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if ended.returncode:
        raise CuasmrlError(
            f"the code in {package} cannot be measured: {ended.stderr.strip().splitlines()[-1]}"
        )
    row = json.loads(ended.stdout)
    return Cost(row["processor"], row["wall"])


_HOW = {
    SEARCH: "as it searches",
    EQUAL: "nominal chip, three seeds, 12 iterations",
    BESIDE: "without replays",
}


def steps_table(figures: list[StepFigures]) -> Table:
    table = Table(box=None, pad_edge=False, title="an evaluated step, ms: before and now")
    for column in ("step", "kernel", "replays"):
        table.add_column(column)
    for column in ("processor", "now", "ratio", "wall", "now"):
        table.add_column(column, justify="right")
    for f in figures:
        table.add_row(
            f.step, f.kernel, _HOW[f.how], f"{f.before.processor:.2f}", f"{f.now.processor:.2f}",
            f"{f.ratio:.1f}", f"{f.before.wall:.2f}", f"{f.now.wall:.2f}",
        )  # fmt: skip
    return table
