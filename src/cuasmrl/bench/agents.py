"""Agents at equal budgets: the gain each finds on the published workloads, over several seeds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from functools import lru_cache
from multiprocessing import get_context
from pathlib import Path
from statistics import geometric_mean, median
from time import process_time
from typing import Any, TypeAlias

from rich.table import Table

from cuasmrl import workloads
from cuasmrl.agents import AGENTS, match
from cuasmrl.bench.kept import Kept
from cuasmrl.errors import CuasmrlError
from cuasmrl.gpu.chips import chip
from cuasmrl.gpu.devices import Objective, VirtualTimer
from cuasmrl.gpu.timing import L2
from cuasmrl.gpu.traced import TracedKernel
from cuasmrl.optimize import FINALISTS
from cuasmrl.optimize.choice import choose_config
from cuasmrl.schedule import Scoreboards
from cuasmrl.workloads.tracing import trace_workload

Key: TypeAlias = tuple[str, str, str, str, str, int, int]
"""Objective, L2, scoreboards, agent, workload, budget, seed."""


@dataclass(frozen=True)
class Contest:
    """What is compared."""

    agents: tuple[str, ...]
    workloads: tuple[str, ...]
    """A name, or `name:large` for the large shape; `/config` behind it if it is not the fastest one."""
    budgets: tuple[int, ...] = (2000,)
    seeds: int = 5
    chip: str = "a100"
    scoreboards: Scoreboards = Scoreboards.KEPT
    objective: Objective = Objective.ROBUST
    l2: L2 = L2.COLD
    first_seed: int = 0

    def check(self) -> None:
        for agent in self.agents:
            AGENTS.named(agent)
        for name in self.workloads:
            workload, _ = workloads.shape(name.partition("/")[0])
            if "/" in name:
                workload.config(name.partition("/")[2])
        if self.seeds < 1 or min(self.budgets) < 1:
            raise CuasmrlError("an agent needs at least one seed and one evaluation")


@dataclass(frozen=True)
class Played:
    """One game."""

    agent: str
    workload: str
    config: str
    budget: int
    seed: int
    evaluations: int
    cycles: float
    """Modelled, of the whole kernel as compiled."""
    searched: float
    """Gain as the search saw it."""
    confirmed: float
    """On unseen seeds and the whole kernel."""
    median: float
    """Over the ensemble of chips."""
    share_above_zero: float
    schedule: str
    """Its hash."""
    scoreboards: str = Scoreboards.KEPT.value
    objective: str = Objective.NOMINAL.value
    l2: str = L2.COLD.value
    seconds: float = 0.0
    """Processor time of the game, without what comes after."""

    @property
    def key(self) -> Key:
        return (
            self.objective, self.l2, self.scoreboards, self.agent, self.workload, self.budget, self.seed
        )  # fmt: skip

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def agents(
    contest: Contest, progress: Callable[[int, int], None], keep: Path | None = None, jobs: int = 2
) -> list[Played]:
    """Play every game of a contest, so many at a time; with a file, what is in it is not played again."""
    contest.check()
    how = contest.objective.value, contest.l2.value, contest.scoreboards.value
    wanted = [
        (*how, agent, name, budget, contest.first_seed + seed)
        for budget in contest.budgets
        for name in contest.workloads
        for agent in contest.agents
        for seed in range(contest.seeds)
    ]

    def play(left: list[Key]) -> Iterator[Played]:
        with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
            for future in as_completed([pool.submit(_play, contest.chip, *key) for key in left]):
                yield future.result()

    return Kept(Played, keep).complete(wanted, lambda game: game.key, play, progress)


def _play(
    chip_key: str,
    objective: str,
    l2: str,
    scoreboards: str,
    agent: str,
    name: str,
    budget: int,
    seed: int,
) -> Played:
    kernel = _kernel(chip_key, name, L2(l2))
    timer = VirtualTimer(kernel, Objective(objective), seed)
    how = Scoreboards(scoreboards)
    start = process_time()
    clock = match(AGENTS.named(agent), kernel, timer, budget, seed, scoreboards=how)
    seconds = process_time() - start
    finalists = clock.finalists(FINALISTS)
    best = timer.pick(kernel.original, finalists) if finalists else kernel.original
    gain = timer.confirm(kernel.original, best)
    return Played(
        agent, name, kernel.config, budget, seed, clock.spent, kernel.model.simulate(kernel.original).cycles,
        clock.gain, gain.nominal, gain.median, gain.share_above_zero, best.key.hex(), scoreboards,
        objective, l2, seconds,
    )  # fmt: skip


@lru_cache(maxsize=2)
def _kernel(chip_key: str, name: str, l2: L2) -> TracedKernel:
    """The config that is named, or the one that an autotuner would choose."""
    name, _, config = name.partition("/")
    workload, sizes = workloads.shape(name)
    if config:
        return trace_workload(workload, workload.config(config), chip(chip_key), sizes, l2)
    return choose_config(workload, chip(chip_key), sizes, lambda done, total: None, l2=l2)[0]


def agents_table(games: Sequence[Played]) -> Table:
    """Medians over the ensemble: over the seeds their median, least and largest; below, geometric means."""
    columns = list(dict.fromkeys((game.agent, game.budget) for game in games))
    table = Table(box=None, pad_edge=False)
    table.add_column("workload")
    table.add_column("config")
    for agent, budget in columns:
        table.add_column(f"{agent}\n{budget:,}", justify="right")
    rows = dict.fromkeys((game.workload, game.config) for game in games)
    for workload, config in rows:
        cells = [
            _cell([g.median for g in games if (g.workload, g.agent, g.budget) == (workload, *column)])
            for column in columns
        ]
        table.add_row(workload, config, *cells)
    means = []
    for column in columns:
        by_workload = [
            [g.median for g in games if (g.workload, g.agent, g.budget) == (workload, *column)]
            for workload, _ in rows
        ]
        means.append(geometric_mean([1 + median(gains) for gains in by_workload]) - 1)
    table.add_row("geometric mean", "", *(f"{mean:+.1%}" for mean in means))
    return table


def _cell(gains: Sequence[float]) -> str:
    if len(gains) == 1:
        return f"{gains[0]:+.1%}"
    return f"{median(gains):+.1%} [{100 * min(gains):.1f}, {100 * max(gains):.1f}]"
