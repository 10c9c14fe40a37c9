"""Everything a report tells of a run, read from its directory; what cannot be read is named."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from cuasmrl import __version__
from cuasmrl.errors import CuasmrlError
from cuasmrl.explain.moves.explain import Advance, silent
from cuasmrl.explain.moves.judge import Limit, OutOfTimeError
from cuasmrl.explain.moves.run import as_kept, explain_best, kept_explanation
from cuasmrl.explain.report.analysis import Analysis, analyse
from cuasmrl.explain.report.curve import Curve, curve_of
from cuasmrl.explain.report.judgement import Judgement, judgement_of
from cuasmrl.explain.report.loop import ConfirmedGain
from cuasmrl.gpu.traced import TracedKernel, UntracedKernel
from cuasmrl.optimize.runs import RunConfig, RunDirectory
from cuasmrl.optimize.runs.tracing import kernel_of_run

FORMAT = 1
NEEDS_REPLAYS = "the hot loop, where the cycles went, the bounds and the moves that mattered"
T = TypeVar("T")


@dataclass(frozen=True)
class Facts:
    """Of one run. What is None is not there yet, or is named among the problems."""

    name: str
    """Of the directory."""
    config: RunConfig | None = None
    curve: Curve | None = None
    judgement: Judgement | None = None
    """None while the run is not over."""
    analysis: Analysis | None = None
    explanation: Mapping[str, Any] | None = None
    """The moves that mattered and the rules, as `replay` keeps them."""
    unexplained: str | None = None
    """Why there is no explanation, in a sentence, if somebody looked for it."""
    problems: tuple[str, ...] = ()
    """What of the run is damaged or cannot be repeated here, a sentence each."""

    @property
    def is_over(self) -> bool:
        return self.judgement is not None

    def as_dict(self, brief: bool = False) -> dict[str, Any]:
        """Without what only the listing of one run needs, if it is to be brief."""
        return {
            "format": FORMAT,
            "version": __version__,
            "name": self.name,
            "config": self.config.as_dict() if self.config else None,
            "curve": self.curve.as_dict() if self.curve else None,
            "verdict": self.judgement.data if self.judgement else None,
            **(self.analysis.as_dict(brief) if self.analysis else {}),
            "explanation": self.explanation,
            "problems": list(self.problems),
        }


class _Reader:
    """Reads part after part; a part that is damaged becomes a problem."""

    def __init__(self) -> None:
        self.problems: list[str] = []

    def read(self, part: Callable[[], T]) -> T | None:
        try:
            return part()
        except CuasmrlError as error:
            self.problems.append(str(error))
        except OSError as error:
            self.problems.append(f"cannot read {error.filename}: {error.strerror}")
        return None


def facts_of(
    path: Path,
    kernel: TracedKernel | UntracedKernel | None = None,
    limit: float | None = None,
    advance: Advance = silent,
) -> Facts:
    """All that can be told of a run.

    `kernel` spares tracing it again; `limit` are the seconds for the moves that mattered if nobody has found
    them yet, None for as many as it takes and 0 for not looking.
    """
    name, reader = path.resolve().name, _Reader()
    run = reader.read(lambda: RunDirectory.open(path))
    if run is None:
        return Facts(name, problems=tuple(reader.problems))
    facts = Facts(
        name,
        run.config,
        reader.read(lambda: curve_of(run.evaluations())),
        reader.read(lambda: judgement_of(run)),
    )
    if isinstance(kernel, UntracedKernel):
        reader.problems.append(f"{NEEDS_REPLAYS}, which need replays of the kernel: {kernel.refusal}")
        traced = None
    else:
        traced = kernel or reader.read(lambda: kernel_of_run(run))
    if traced is not None:
        found = reader.read(lambda: _analysed(run, traced))
        facts = replace(facts, analysis=found)
        if found is not None and found.is_changed:
            facts = _explained(facts, run, traced, limit, advance)
    return replace(facts, problems=tuple(reader.problems))


def _analysed(run: RunDirectory, kernel: TracedKernel) -> Analysis:
    if not (run.path / "best.json").exists():
        return analyse(kernel, None)
    best = run.best(kernel.listing)
    return analyse(kernel, best, ConfirmedGain.of(run.verdict(), best))


def _explained(
    facts: Facts, run: RunDirectory, kernel: TracedKernel, limit: float | None, advance: Advance
) -> Facts:
    best = run.best(kernel.listing)
    kept = kept_explanation(run, best)
    if kept is None and limit != 0:
        try:
            kept = as_kept(explain_best(run, kernel, advance, Limit(limit)), best)
        except OutOfTimeError as error:
            return replace(facts, unexplained=str(error))
    return replace(facts, explanation=kept)
