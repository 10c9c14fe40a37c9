"""The best result for each workload: config and schedule together, after the gate, beside its lower bound."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import geometric_mean
from typing import Any

from rich.table import Table

from cuasmrl import workloads
from cuasmrl.bench.kept import Kept
from cuasmrl.gpu.devices import Objective
from cuasmrl.gpu.timing import L2
from cuasmrl.gpu.timing.bounds import bounds_of
from cuasmrl.optimize import Optimized, Request, fastest, optimize
from cuasmrl.schedule import Scoreboards


@dataclass(frozen=True)
class Effort:
    """How hard to try."""

    agents: tuple[str, ...]
    """Each plays; the best result that the gate accepts counts."""
    budget: int
    """Evaluations for each."""
    trial: int
    """Evaluations on each config near the fastest, to choose one."""
    seed: int = 0
    chip: str = "a100"
    scoreboards: Scoreboards = Scoreboards.KEPT
    objective: Objective = Objective.ROBUST
    l2: L2 = L2.COLD

    @property
    def name(self) -> str:
        """All of it in words: rows of another effort are other rows."""
        return (
            f"{', '.join(self.agents)}; {self.budget:,} evaluations, trial {self.trial:,}, seed {self.seed}, "
            f"{self.chip}, scoreboards {self.scoreboards.value}, objective {self.objective.value}, "
            f"L2 {self.l2.value}"
        )


@dataclass(frozen=True)
class Outcome:
    """One workload at one shape."""

    workload: str
    effort: str
    """The name of what was spent on it."""
    fastest: str
    """The config that is fastest as compiled."""
    cycles: float
    """Modelled, of that one."""
    config: str
    """The config that was played on."""
    agent: str
    accepted: bool
    gain: float
    """On the nominal chip and the whole grid, over the compiler's schedule of the same config; 0 if the gate
    refused it."""
    median: float
    """Over the ensemble of chips, of a large grid the first two waves."""
    share_above_zero: float
    gain_over_fastest: float
    """On the nominal chip, over the config that is fastest as compiled."""
    bound: float
    """What no schedule of the config that was played on goes below, as a share of the result."""
    bound_name: str
    refused: str
    """The checks that the gate said no to."""

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def results(
    names: Sequence[str], effort: Effort, progress: Callable[[int, int], None], keep: Path | None = None
) -> list[Outcome]:
    """Optimise each workload (`name`, or `name:large`); with a file, what is in it is not done again."""
    return Kept(Outcome, keep).complete(
        [(effort.name, name) for name in names],
        lambda outcome: (outcome.effort, outcome.workload),
        lambda left: (_best(name, effort) for _, name in left),
        progress,
    )


def _best(name: str, effort: Effort) -> Outcome:
    workload, sizes = workloads.shape(name)
    found = []
    for agent in effort.agents:
        request = Request(
            workload.name, sizes=sizes, trial=effort.trial, device=f"virtual:{effort.chip}", agent=agent,
            budget=effort.budget, seed=effort.seed, scoreboards=effort.scoreboards,
            objective=effort.objective, l2=effort.l2,
        )  # fmt: skip
        with tempfile.TemporaryDirectory() as place:
            found.append(_outcome(name, effort.name, agent, optimize(request, Path(place) / "run")))
    return max(found, key=lambda outcome: outcome.gain_over_fastest)


def _outcome(name: str, effort: str, agent: str, found: Optimized) -> Outcome:
    verdict, subject = found.verdict, found.subject
    rival = fastest(subject.candidates)
    gain = verdict.gain if verdict.accepted else None
    before, after = verdict.before or 0.0, verdict.after or 0.0
    there = before / after - 1 if verdict.accepted else 0.0
    model = subject.traced.model
    bound = bounds_of(model)[0]
    cycles = next(c.cycles for c in subject.candidates if c.config == subject.kernel.config)
    assert rival.cycles is not None
    assert cycles is not None
    return Outcome(
        workload=name,
        effort=effort,
        fastest=rival.config,
        cycles=rival.cycles,
        config=subject.kernel.config,
        agent=agent,
        accepted=verdict.accepted,
        gain=there,
        median=gain.median if gain else 0.0,
        share_above_zero=gain.share_above_zero if gain else 0.0,
        # The original of the fastest config is always there to be kept.
        gain_over_fastest=max(0.0, found.gain_over_fastest or 0.0),
        bound=bound.cycles / cycles * (1 + there),
        bound_name=bound.resource,
        refused=", ".join(check.name for check in verdict.checks if check.outcome == "failed"),
    )


def results_table(found: Sequence[Outcome]) -> Table:
    """Gains in modelled cycles; the last line has the geometric means."""
    table = Table(box=None, pad_edge=False)
    table.add_column("workload")
    table.add_column("fastest as compiled")
    table.add_column("cycles", justify="right")
    table.add_column("played on")
    table.add_column("agent")
    table.add_column("gain there", justify="right")
    table.add_column("ensemble", justify="right")
    table.add_column("gain over the fastest", justify="right")
    table.add_column("lower bound")
    for o in found:
        there = f"{o.gain:+.1%}" if o.accepted else f"none ({o.refused or 'nothing found'})"
        table.add_row(
            o.workload, o.fastest, f"{o.cycles:,.0f}", o.config, o.agent, there,
            f"{o.median:+.1%}, {o.share_above_zero:.0%} faster", f"{o.gain_over_fastest:+.1%}",
            f"{o.bound:.0%} ({o.bound_name})",
        )  # fmt: skip
    means = [geometric_mean(1 + g for g in gains) - 1 for gains in (
        [o.gain for o in found], [o.median for o in found], [o.gain_over_fastest for o in found]
    )]  # fmt: skip
    table.add_row("geometric mean", "", "", "", "", *(f"{mean:+.1%}" for mean in means), "")
    return table
