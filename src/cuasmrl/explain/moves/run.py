"""The explanation of a run from its directory. The virtual GPU explains, on whatever device it was played."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cuasmrl.explain.moves.explain import Advance, Explanation, explain, silent
from cuasmrl.gpu.devices import VirtualTimer
from cuasmrl.optimize.runs import RunConfig, RunDirectory
from cuasmrl.optimize.runs.tracing import kernel_of_run


@dataclass(frozen=True)
class ExplainedRun:
    path: Path
    config: RunConfig
    verdict: str
    """What the gate said, in words."""
    explanation: Explanation | None
    """None if nothing faster was found."""

    def as_dict(self) -> dict[str, Any]:
        return {
            "run": str(self.path),
            "agent": self.config.agent,
            "seed": self.config.seed,
            "budget": self.config.budget,
            "device": self.config.device,
            "verdict": self.verdict,
            "explanation": self.explanation.as_dict() if self.explanation else None,
        }


def explain_run(path: Path, advance: Advance = silent) -> ExplainedRun:
    """Explain the best schedule of a run; one that goes on is explained as far as it has come."""
    run = RunDirectory.open(path)
    verdict = run.verdict()
    said = "the run is not over" if verdict is None else str(verdict.get("sentence", "no verdict"))
    if not (path / "best.json").exists():
        return ExplainedRun(path, run.config, said, None)
    kernel = kernel_of_run(run)
    return ExplainedRun(
        path,
        run.config,
        said,
        explain(kernel, run.best(kernel.listing), VirtualTimer(kernel), advance),
    )
