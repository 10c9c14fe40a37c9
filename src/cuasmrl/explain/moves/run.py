"""The explanation of a run from its directory. The virtual GPU explains, on whatever device it was played."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cuasmrl import workloads
from cuasmrl.binary.cubin import Cubin
from cuasmrl.errors import CuasmrlError
from cuasmrl.explain.moves.explain import Advance, Explanation, explain, silent
from cuasmrl.gpu import launches
from cuasmrl.gpu.chips import Chip, chip, chip_of_arch
from cuasmrl.gpu.devices import VirtualTimer
from cuasmrl.gpu.traced import TracedKernel, trace_cubin
from cuasmrl.optimize.runs import RunConfig, RunDirectory
from cuasmrl.workloads.tracing import trace_workload

_VIRTUAL = "virtual:"


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
    kernel = _kernel(run)
    return ExplainedRun(
        path,
        run.config,
        said,
        explain(kernel, run.best(kernel.listing), VirtualTimer(kernel), advance),
    )


def _kernel(run: RunDirectory) -> TracedKernel:
    config, original = run.config, run.original()
    target = _chip(config.device, original.arch)
    source = config.source
    if "workload" not in source:
        named = Cubin.parse(original.data, str(source["cubin"]))
        return trace_cubin(named, launches.load(run.path / "launch.json"), config.kernel, target)
    workload = workloads.get(source["workload"])
    kernel = trace_workload(workload, workload.config(source["config"]), target, dict(source["sizes"]))
    if hashlib.sha256(kernel.cubin.data).hexdigest() != config.cubin:
        raise CuasmrlError(
            f"{run.path}: {workload.name} {kernel.config} is compiled to other code here than in the run; "
            "explain it with the compiler that the run names in config.json"
        )
    return kernel


def _chip(device: str, arch: int) -> Chip:
    if device.startswith(_VIRTUAL):
        return chip(device.removeprefix(_VIRTUAL))
    return chip_of_arch(arch)
