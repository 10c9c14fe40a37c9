"""The explanation of a run from its directory. The virtual GPU explains, on whatever device it was played."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cuasmrl import __version__
from cuasmrl.errors import CuasmrlError
from cuasmrl.explain.moves.explain import Advance, Explanation, explain, silent
from cuasmrl.explain.moves.judge import Limit
from cuasmrl.explain.moves.rules import rules_of
from cuasmrl.gpu.devices import VirtualTimer
from cuasmrl.gpu.traced import TracedKernel
from cuasmrl.optimize.runs import RunConfig, RunDirectory
from cuasmrl.optimize.runs.tracing import kernel_of_run
from cuasmrl.schedule import Schedule

_FORMAT = 2


@dataclass(frozen=True)
class ExplainedRun:
    path: Path
    config: RunConfig
    verdict: str
    """What the gate said, in words."""
    explanation: Explanation | None
    """None if nothing faster was found."""
    beliefs: list[dict[str, Any]] = field(default_factory=list)
    """What the agent learned of the device, number by number."""

    def as_dict(self) -> dict[str, Any]:
        return {
            "run": str(self.path),
            "agent": self.config.agent,
            "seed": self.config.seed,
            "budget": self.config.budget,
            "device": self.config.device,
            "verdict": self.verdict,
            "explanation": self.explanation.as_dict() if self.explanation else None,
            "beliefs": self.beliefs,
        }


def explain_run(path: Path, advance: Advance = silent, limit: Limit | None = None) -> ExplainedRun:
    """Explain the best schedule of a run; one that goes on is explained as far as it has come."""
    run = RunDirectory.open(path)
    verdict = run.verdict()
    said = "the run is not over" if verdict is None else str(verdict.get("sentence", "no verdict"))
    if not (path / "best.json").exists():
        return ExplainedRun(path, run.config, said, None, run.beliefs())
    kernel = kernel_of_run(run)
    found = explain_best(run, kernel, advance, limit)
    return ExplainedRun(path, run.config, said, found, run.beliefs())


def explain_best(
    run: RunDirectory, kernel: TracedKernel, advance: Advance = silent, limit: Limit | None = None
) -> Explanation:
    """Explain the best schedule of a run whose kernel is traced, and keep it for reports."""
    best = run.best(kernel.listing)
    found = explain(kernel, best, VirtualTimer(kernel), advance, limit)
    # Somebody else's run may be explained without being written to.
    with suppress(CuasmrlError):
        run.keep_explanation(as_kept(found, best))
    return found


def as_kept(found: Explanation, best: Schedule) -> dict[str, Any]:
    """An explanation with its rules, as plain data."""
    data = {**_mark(best), **found.as_dict(), "rules": [rule.as_dict() for rule in rules_of([found])]}
    plain: dict[str, Any] = json.loads(json.dumps(data))
    return plain


def kept_explanation(run: RunDirectory, best: Schedule) -> dict[str, Any] | None:
    """What was kept of this very schedule by this version; None if that has to be found anew."""
    try:
        kept = run.explanation()
    except CuasmrlError:
        return None
    is_mine = isinstance(kept, dict) and _mark(best).items() <= kept.items()
    return kept if is_mine else None


def _mark(best: Schedule) -> dict[str, Any]:
    """By what an explanation is known to be that of a schedule."""
    return {"format": _FORMAT, "version": __version__, "best": best.key.hex()}
