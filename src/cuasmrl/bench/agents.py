"""Agents at equal budgets: the gain each finds on the published workloads, over several seeds.

On the virtual GPU, or on hidden devices, which no agent knows and no chip file describes.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import as_completed
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from statistics import geometric_mean, median
from time import process_time
from typing import Any, TypeAlias

from rich.table import Table

from cuasmrl import workloads
from cuasmrl.agents import AGENTS
from cuasmrl.bench.kept import Kept
from cuasmrl.errors import CuasmrlError
from cuasmrl.game import BudgetSpentError, Clock, Evaluation, Game
from cuasmrl.gpu.chips import chip
from cuasmrl.gpu.devices import Objective, Timer, VirtualTimer
from cuasmrl.gpu.devices.hidden import HiddenTimer, Secret
from cuasmrl.gpu.devices.pool.jobs import jobs_of
from cuasmrl.gpu.timing import L2
from cuasmrl.gpu.traced import TracedKernel
from cuasmrl.optimize import FINALISTS
from cuasmrl.optimize.choice import choose_config
from cuasmrl.schedule import Schedule, Scoreboards
from cuasmrl.workloads.tracing import trace_workload

Key: TypeAlias = tuple[str, str, str, str, str, str, int, int]
"""Device, objective, L2, scoreboards, agent, workload, seed, budget."""
_ANYTIME = frozenset(("random", "greedy", "evolve", "twin"))
"""Agents whose play does not depend on their budget: a long game holds the short ones."""
VIRTUAL = "virtual"
Setup: TypeAlias = tuple[str, str, str, str, str, str, int]
"""A key without its budget."""


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
    devices: tuple[str, ...] = (VIRTUAL,)
    """`virtual`, or `hidden:SEED` with what is strange about it."""

    def check(self) -> None:
        for agent in self.agents:
            AGENTS.named(agent)
        for device in self.devices:
            if device != VIRTUAL:
                Secret.parse(device)
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
    device: str = VIRTUAL

    @property
    def key(self) -> Key:
        return (
            self.device, self.objective, self.l2, self.scoreboards, self.agent, self.workload, self.seed,
            self.budget,
        )  # fmt: skip

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def agents(
    contest: Contest,
    progress: Callable[[int, int], None],
    keep: Path | None = None,
    jobs: int = 2,
    on: str | None = None,
) -> list[Played]:
    """Play every game of a contest, so many at a time; with a file, what is in it is not played again."""
    contest.check()

    def how(device: str) -> tuple[str, str, str, str]:
        # A hidden device is one chip.
        objective = contest.objective if device == VIRTUAL else Objective.NOMINAL
        return device, objective.value, contest.l2.value, contest.scoreboards.value

    wanted = [
        (*how(device), agent, name, contest.first_seed + seed, budget)
        for device in contest.devices
        for budget in contest.budgets
        for name in contest.workloads
        for agent in contest.agents
        for seed in range(contest.seeds)
    ]

    def play(left: list[Key]) -> Iterator[Played]:
        with jobs_of(jobs, on) as pool:
            tasks = [
                pool.submit(_play, contest.chip, setup, tuple(budgets)) for setup, budgets in by_setup(left)
            ]
            for future in as_completed(tasks):
                yield from future.result()

    return Kept(Played, keep).complete(wanted, lambda game: game.key, play, progress)


def by_setup(left: Sequence[Key]) -> list[tuple[Setup, list[int]]]:
    """What has to be played, and up to which budgets: one game for all of them where the agent allows it."""
    found: dict[tuple[Setup, int | None], list[int]] = {}
    for *key, budget in left:
        setup: Setup = tuple(key)  # type: ignore[assignment]
        is_anytime = setup[4] in _ANYTIME
        found.setdefault((setup, None if is_anytime else budget), []).append(budget)
    return [(setup, sorted(budgets)) for (setup, _), budgets in found.items()]


def _play(chip_key: str, setup: Setup, budgets: tuple[int, ...]) -> list[Played]:
    """One game, judged after each budget."""
    device, objective, l2, scoreboards, agent, name, seed = setup
    kernel = _kernel(chip_key, name, L2(l2))
    timer = _timer(device, kernel, Objective(objective), seed)
    stops: list[_Stop] = []
    start = process_time()

    def stop() -> None:
        stops.append(
            _Stop(clock.spent, clock.gain, tuple(clock.finalists(FINALISTS)), process_time() - start)
        )

    def listen(evaluation: Evaluation) -> None:
        if evaluation.number in budgets[:-1]:
            stop()

    clock = Clock(timer, kernel.original, budgets[-1], listener=listen)
    with contextlib.suppress(BudgetSpentError):
        AGENTS.named(agent).play(
            lambda: Game(kernel.listing, clock, kernel, scoreboards=Scoreboards(scoreboards)), seed
        )
    # The last one also for budgets that were too large for it.
    while len(stops) < len(budgets):
        stop()
    cycles = kernel.model.simulate(kernel.original).cycles
    return [
        _judged(setup, budget, stop, timer, kernel, cycles)
        for budget, stop in zip(budgets, stops, strict=True)
    ]


@dataclass(frozen=True)
class _Stop:
    """Where a game stood when a budget was spent."""

    evaluations: int
    gain: float
    finalists: tuple[Schedule, ...]
    seconds: float


def _judged(
    setup: Setup, budget: int, stop: _Stop, timer: Timer, kernel: TracedKernel, cycles: float
) -> Played:
    device, objective, l2, scoreboards, agent, name, seed = setup
    best = timer.pick(kernel.original, stop.finalists) if stop.finalists else kernel.original
    gain = timer.confirm(kernel.original, best)
    return Played(
        agent, name, kernel.config, budget, seed, stop.evaluations, cycles, stop.gain, gain.nominal,
        gain.median, gain.share_above_zero, best.key.hex(), scoreboards, objective, l2, stop.seconds, device,
    )  # fmt: skip


def _timer(device: str, kernel: TracedKernel, objective: Objective, seed: int) -> Timer:
    if device == VIRTUAL:
        # The other cores have games of their own.
        return VirtualTimer(kernel, objective, seed, workers=1)
    return HiddenTimer(kernel, Secret.parse(device), seed)


@lru_cache(maxsize=4)
def _kernel(chip_key: str, name: str, l2: L2) -> TracedKernel:
    """The config that is named, or the one that an autotuner would choose."""
    name, _, config = name.partition("/")
    workload, sizes = workloads.shape(name)
    if config:
        return trace_workload(workload, workload.config(config), chip(chip_key), sizes, l2)
    return choose_config(workload, chip(chip_key), sizes, lambda done, total: None, l2=l2)[0]


def agents_table(games: Sequence[Played]) -> Table:
    """Over the seeds and devices their median, least and largest; below, geometric means of the medians.

    Medians over the ensemble; of hidden devices first the gain on the device itself.
    """
    is_hidden = any(game.device != VIRTUAL for game in games)
    views: dict[str, Callable[[Played], float]] = {"chips around it": lambda game: game.median}
    if is_hidden:
        views = {"the device itself": lambda game: game.confirmed, **views}
    columns = list(dict.fromkeys((game.agent, game.budget) for game in games))
    table = Table(box=None, pad_edge=False)
    for heading in ("workload", "config", "gain on")[: 3 if is_hidden else 2]:
        table.add_column(heading)
    for agent, budget in columns:
        table.add_column(f"{agent}\n{budget:,}", justify="right")
    rows = dict.fromkeys((game.workload, game.config) for game in games)
    for place, gain in views.items():
        found = [
            [[gain(g) for g in games if (g.workload, g.agent, g.budget) == (workload, *column)]
             for workload, _ in rows]
            for column in columns
        ]  # fmt: skip
        where = [place] if is_hidden else []
        for n, (workload, config) in enumerate(rows):
            table.add_row(workload, config, *where, *(_cell(column[n]) for column in found))
        means = [geometric_mean([1 + median(gains) for gains in column]) - 1 for column in found]
        table.add_row("geometric mean", "", *where, *(f"{mean:+.1%}" for mean in means))
    return table


def _cell(gains: Sequence[float]) -> str:
    if len(gains) == 1:
        return f"{gains[0]:+.1%}"
    return f"{median(gains):+.1%} [{100 * min(gains):.1f}, {100 * max(gains):.1f}]"
