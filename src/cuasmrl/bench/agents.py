"""Agents at equal budgets or equal processor time: what each finds on the published workloads, over seeds.

On the virtual GPU, or on hidden devices, which no agent knows and no chip file describes.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import as_completed
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from time import process_time
from typing import Any, TypeAlias

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

Key: TypeAlias = tuple[str, str, str, str, str, str, int, int, int]
"""Device, objective, L2, scoreboards, agent, workload, seed, and when the game is judged."""
Limit: TypeAlias = tuple[int, int]
"""Evaluations, or seconds of processor time; the other one is 0."""
_ANYTIME = frozenset(("random", "greedy", "evolve", "policy", "twin"))
"""Agents whose play does not depend on their budget: a long game holds the short ones."""
VIRTUAL = "virtual"
Setup: TypeAlias = tuple[str, str, str, str, str, str, int]
"""A key without its limit."""
_UNLIMITED = 1 << 40


@dataclass(frozen=True)
class Contest:
    """What is compared."""

    agents: tuple[str, ...]
    """A name, or `name:budget` for one that has a budget of its own."""
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
    seconds: tuple[int, ...] = ()
    """Of processor time for each game, instead of budgets."""

    def check(self) -> None:
        for agent in self.agents:
            AGENTS.named(named := agent.partition(":")[0])
            if self.seconds and named not in _ANYTIME:
                raise CuasmrlError(
                    f"{named} plays by its budget, so it cannot be compared by seconds; give --budget"
                )
        for device in self.devices:
            if device != VIRTUAL:
                Secret.parse(device)
        for name in self.workloads:
            workload, _ = workloads.shape(name.partition("/")[0])
            if "/" in name:
                workload.config(name.partition("/")[2])
        limits = [max(limit) for agent in self.agents for limit in self.limits(agent)]
        if self.seeds < 1 or min(limits) < 1:
            raise CuasmrlError("an agent needs at least one seed and one evaluation")

    def limits(self, agent: str) -> list[Limit]:
        """When games of an agent are judged."""
        own = agent.partition(":")[2]
        if own:
            if not own.isdecimal():
                raise CuasmrlError(
                    f"{agent!r} has no number of evaluations behind the colon; write greedy:2000"
                )
            return [(int(own), 0)]
        return [(0, seconds) for seconds in self.seconds] or [(budget, 0) for budget in self.budgets]


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
    limit: int = 0
    """Seconds of processor time that it was given, where that is its budget."""

    @property
    def key(self) -> Key:
        return (
            self.device, self.objective, self.l2, self.scoreboards, self.agent, self.workload, self.seed,
            self.budget, self.limit,
        )  # fmt: skip

    @property
    def player(self) -> str:
        """The agent and what it was given."""
        return f"{self.agent}\n{f'{self.limit} s' if self.limit else f'{self.budget:,}'}"

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
        (*how(device), agent.partition(":")[0], name, contest.first_seed + seed, *limit)
        for device in contest.devices
        for name in contest.workloads
        for agent in contest.agents
        for limit in contest.limits(agent)
        for seed in range(contest.seeds)
    ]

    def play(left: list[Key]) -> Iterator[Played]:
        with jobs_of(jobs, on) as pool:
            tasks = [
                pool.submit(_play, contest.chip, setup, tuple(limits)) for setup, limits in by_setup(left)
            ]
            for future in as_completed(tasks):
                yield from future.result()

    return Kept(Played, keep).complete(wanted, lambda game: game.key, play, progress)


def by_setup(left: Sequence[Key]) -> list[tuple[Setup, list[Limit]]]:
    """What has to be played, and up to which limits: one game for all of them where the agent allows it."""
    found: dict[tuple[Setup, bool, int | None], list[Limit]] = {}
    for *key, budget, seconds in left:
        setup: Setup = tuple(key)  # type: ignore[assignment]
        is_anytime = setup[4] in _ANYTIME
        together = setup, bool(seconds), None if is_anytime else budget
        found.setdefault(together, []).append((budget, seconds))
    return [(setup, sorted(limits)) for (setup, *_), limits in found.items()]


class _TimeOverError(CuasmrlError):
    """A game had the processor time that it was given."""


def _play(chip_key: str, setup: Setup, limits: tuple[Limit, ...]) -> list[Played]:
    """One game, judged at each limit."""
    device, objective, l2, scoreboards, agent, name, seed = setup
    kernel = _kernel(chip_key, name, L2(l2))
    timer = _timer(device, kernel, Objective(objective), seed)
    stops: list[_Stop] = []
    start = process_time()

    def stop() -> None:
        stops.append(
            _Stop(clock.spent, clock.gain, tuple(clock.finalists(FINALISTS)), process_time() - start)
        )

    def is_reached(evaluation: Evaluation, limit: Limit) -> bool:
        budget, seconds = limit
        return process_time() - start >= seconds if seconds else evaluation.number == budget

    def listen(evaluation: Evaluation) -> None:
        while len(stops) < len(limits) and is_reached(evaluation, limits[len(stops)]):
            stop()
        if len(stops) == len(limits):
            raise _TimeOverError

    clock = Clock(timer, kernel.original, limits[-1][0] or _UNLIMITED, listener=listen)
    with contextlib.suppress(BudgetSpentError, _TimeOverError):
        AGENTS.named(agent).play(
            lambda: Game(kernel.listing, clock, kernel, scoreboards=Scoreboards(scoreboards)), seed
        )
    # The last one also for budgets that were too large for it.
    while len(stops) < len(limits):
        stop()
    cycles = kernel.model.simulate(kernel.original).cycles
    return [
        _judged(setup, limit, stop, timer, kernel, cycles) for limit, stop in zip(limits, stops, strict=True)
    ]


@dataclass(frozen=True)
class _Stop:
    """Where a game stood at a limit."""

    evaluations: int
    gain: float
    finalists: tuple[Schedule, ...]
    seconds: float


def _judged(
    setup: Setup, limit: Limit, stop: _Stop, timer: Timer, kernel: TracedKernel, cycles: float
) -> Played:
    device, objective, l2, scoreboards, agent, name, seed = setup
    best = timer.pick(kernel.original, stop.finalists) if stop.finalists else kernel.original
    gain = timer.confirm(kernel.original, best)
    return Played(
        agent, name, kernel.config, limit[0], seed, stop.evaluations, cycles, stop.gain, gain.nominal,
        gain.median, gain.share_above_zero, best.key.hex(), scoreboards, objective, l2, stop.seconds, device,
        limit[1],
    )  # fmt: skip


def _timer(device: str, kernel: TracedKernel, objective: Objective, seed: int) -> Timer:
    """With one thread: the other cores have games of their own."""
    if device == VIRTUAL:
        return VirtualTimer(kernel, objective, seed, workers=1)
    return HiddenTimer(kernel, Secret.parse(device), seed, workers=1)


@lru_cache(maxsize=4)
def _kernel(chip_key: str, name: str, l2: L2) -> TracedKernel:
    """The config that is named, or the one that an autotuner would choose."""
    name, _, config = name.partition("/")
    workload, sizes = workloads.shape(name)
    if config:
        return trace_workload(workload, workload.config(config), chip(chip_key), sizes, l2)
    return choose_config(workload, chip(chip_key), sizes, lambda done, total: None, l2=l2)[0]
