"""The picture of a run from its directory. The virtual GPU draws, on whatever device it was played."""

from __future__ import annotations

from pathlib import Path

from cuasmrl.errors import CuasmrlError
from cuasmrl.explain.report.loop import ConfirmedGain, HotLoop, hot_loop
from cuasmrl.explain.report.svg import draw
from cuasmrl.optimize.runs import RunDirectory
from cuasmrl.optimize.runs.tracing import kernel_of_run


def picture_of_run(path: Path) -> str:
    """The hot loop before and after as an SVG; refused if the run has found nothing faster."""
    return draw(loop_of_run(path))


def loop_of_run(path: Path) -> HotLoop:
    """The hot loop under the original and under the best schedule so far."""
    run = RunDirectory.open(path)
    if not (path / "best.json").exists():
        raise CuasmrlError(f"{path} has found nothing faster than the original, so there is nothing to draw")
    kernel = kernel_of_run(run)
    best = run.best(kernel.listing)
    return hot_loop(kernel, best, ConfirmedGain.of(run.verdict(), best))
