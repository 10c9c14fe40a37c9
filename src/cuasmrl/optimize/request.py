"""What a user asks for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cuasmrl.agents import AGENTS, Agent
from cuasmrl.binary.cubin import Cubin
from cuasmrl.errors import CuasmrlError
from cuasmrl.gpu.devices import Objective
from cuasmrl.gpu.timing import L2
from cuasmrl.optimize.gate import Standard
from cuasmrl.optimize.players import agent_of, batch_of
from cuasmrl.optimize.runs import RunConfig
from cuasmrl.schedule import Scoreboards

DEFAULT_BUDGET = 2000
_PREFERRED = ("twin", "greedy", "random")


def default_agent() -> str:
    return next(name for name in _PREFERRED if name in AGENTS)


@dataclass(frozen=True)
class Request:
    """None leaves a choice to us."""

    source: str
    """A workload, or the path of a cubin."""
    config: str | None = None
    """Of a workload; without it the one with the fewest modelled cycles."""
    sizes: Mapping[str, int] = field(default_factory=dict)
    """Of a workload, where they are not the default ones."""
    launch: str | None = None
    """Path of a cubin's launch file."""
    other_launches: tuple[str, ...] = ()
    """More launch files of the same kernel: results are compared and the gain confirmed there too."""
    kernel: str | None = None
    """Of a cubin that holds several."""
    device: str | None = None
    agent: str = field(default_factory=default_agent)
    budget: int = DEFAULT_BUDGET
    seed: int = 0
    batch: int | None = None
    """Candidates that the agent proposes before it is told of the first; None leaves it as it is."""
    scoreboards: Scoreboards = Scoreboards.KEPT
    """Whether moves keep the compiler's scoreboards."""
    l2: L2 = L2.COLD
    """What L2 holds when the kernel starts, on the virtual GPU."""
    objective: Objective = Objective.ROBUST
    """What the virtual GPU scores schedules by while a game goes on."""
    min_faster: float = Standard.min_faster
    min_gain: float = Standard.min_gain
    """What a modelled gain has to reach, see `gate.Standard`."""
    trial: int = 0
    """Evaluations to play on each config that comes near the fastest, before one is chosen."""

    @property
    def player(self) -> Agent:
        return agent_of(self.agent, self.batch)

    @property
    def standard(self) -> Standard:
        return Standard(self.min_faster, self.min_gain)

    @property
    def is_cubin(self) -> bool:
        return self.launch is not None or Path(self.source).suffix == ".cubin"

    def check(self) -> None:
        """Refuse what makes no sense, before any work is done."""
        if self.budget < 1:
            raise CuasmrlError(
                f"a budget of {self.budget} evaluations leaves nothing to play with; give at least 1"
            )
        _ = self.standard, self.player  # both refuse what makes no sense
        if self.trial < 0:
            raise CuasmrlError(f"a trial of {self.trial} evaluations is none; give 0 for no trial")
        if self.trial and (self.is_cubin or self.config is not None):
            raise CuasmrlError("--trial chooses among the configs of a workload, and there is no choice here")
        if self.is_cubin and (self.config is not None or self.sizes):
            raise CuasmrlError("--config and --set belong to workloads; the launch file says it for a cubin")
        if self.is_cubin and self.launch is None:
            Cubin.load(self.source)  # One that cannot be read needs no launch file.
            raise CuasmrlError(
                f"{self.source} says nothing of grid and arguments; name a launch file with --launch "
                "(docs/gpu/simulate.md, or `cuasmrl workloads --build` for examples)"
            )
        if not self.is_cubin and self.kernel is not None:
            raise CuasmrlError("--kernel belongs to cubins; a workload is one kernel")

    @staticmethod
    def of_run(run: RunConfig, given: Mapping[str, Any]) -> Request:
        """What a run was started with, changed by what is given now."""
        source = run.source
        asked: dict[str, Any] = {
            "source": source["workload"] if "workload" in source else source["cubin"],
            "config": source.get("config"),
            "sizes": source.get("sizes", {}),
            "launch": source.get("launch"),
            "other_launches": tuple(source.get("other_launches", ())),
            "kernel": run.kernel if "cubin" in source else None,
            "device": run.device,
            "agent": run.agent,
            "budget": run.budget,
            "seed": run.seed,
            "batch": batch_of(run.settings),
            "scoreboards": Scoreboards(run.scoreboards),
            "l2": L2(run.l2),
            "objective": Objective(run.objective),
            "min_faster": run.min_faster,
            "min_gain": run.min_gain,
        }
        return Request(**{**asked, **given})
