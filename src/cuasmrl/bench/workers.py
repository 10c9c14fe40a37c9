"""One kernel on one and several workers, in turn: evaluations per second, and whether the way is the same."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

from rich.table import Table

from cuasmrl import workloads
from cuasmrl.agents import Agent, match
from cuasmrl.errors import CuasmrlError
from cuasmrl.game import BudgetSpentError, Clock, Game
from cuasmrl.gpu.chips import chip
from cuasmrl.gpu.devices import Timer, VirtualTimer
from cuasmrl.gpu.devices.pool import Crew, PooledTimer, Processes, replica_of
from cuasmrl.gpu.traced import TracedKernel
from cuasmrl.optimize.players import agent_of
from cuasmrl.workloads.tracing import trace_workload

KERNELS = ("gemm_leaky_relu/m64n64k64_w4_s4", "bmm/m128n128k64_w8_s3", "softmax/w8")
PLAYERS = ("greedy", "evolve", "policy")
RAY = 0
"""Stands for two nodes of a Ray cluster, among numbers of workers."""
_WARM = 20
"""Evaluations before anything is measured."""


@dataclass(frozen=True)
class Round:
    """One game."""

    workload: str
    agent: str
    workers: int
    """0 for two nodes of a Ray cluster on this machine."""
    seconds: float
    head: float
    """Seconds of processor time of this process,"""
    others: float
    """and of workers on this machine that are not on Ray."""
    evaluations: int
    gain: float
    """As the search saw it."""
    schedule: str
    """Digest of the best one."""
    load: float
    """Processes that wanted a core, in the minute before."""

    @property
    def rate(self) -> float:
        return self.evaluations / self.seconds

    @property
    def processor(self) -> float:
        """Milliseconds of an evaluation."""
        return 1000 * (self.head + self.others) / self.evaluations

    @property
    def own(self) -> float:
        """The head's part of them."""
        return 1000 * self.head / self.evaluations

    def most(self, one: Round) -> float:
        """Times the rate of one worker that processor times allow, with a free core for each worker: they
        share the work, but for the head's."""
        return one.processor / max(self.processor / self.workers, self.own)

    def as_dict(self) -> dict[str, Any]:
        return asdict(self) | {"rate": self.rate, "processor": self.processor}


def workers(
    kernels: Sequence[str],
    players: Sequence[str],
    counts: Sequence[int],
    budget: int,
    rounds: int,
    seed: int,
    batch: int | None,
    progress: Callable[[int, int], None],
) -> list[Round]:
    """Every number of workers in every round, one after the other, so that all meet the same load.

    One worker is this process, without threads.
    """
    agents = {name: agent_of(name, batch) for name in players}
    found: list[Round] = []
    total = len(kernels) * len(players) * rounds * len(counts)
    for name in kernels:
        kernel = _traced(name)
        known = VirtualTimer(kernel, game=seed, workers=1)
        _ = known.effort
        with contextlib.ExitStack() as opened:
            timers = {count: opened.enter_context(_timer(known, count)) for count in dict.fromkeys(counts)}
            for timer in timers.values():
                _warmed(kernel, timer, agents[players[0]], seed)
            for agent in agents.items():
                for _ in range(rounds):
                    for count in counts:
                        found.append(_game(kernel, timers[count], name, agent, count, budget, seed))
                        progress(len(found), total)
    return found


def _traced(name: str) -> TracedKernel:
    workload, _, config = name.partition("/")
    if not config:
        raise CuasmrlError(f"{name} names no config; write {KERNELS[0]}")
    definition = workloads.get(workload)
    return trace_workload(definition, definition.config(config), chip("a100"))


def _same(known: VirtualTimer) -> VirtualTimer:
    """A timer that has replayed nothing yet."""
    timer = VirtualTimer(known.kernel, known.objective, known.game, workers=1)
    timer.adopt(known.effort, known.seeds)
    return timer


@contextlib.contextmanager
def _timer(known: VirtualTimer, count: int) -> Iterator[Timer]:
    if count == 1:
        yield _same(known)
        return
    with _crew(count) as crew:
        timer = PooledTimer(_same(known), crew, lambda: replica_of(known, _no_launch, crew.width))
        try:
            yield timer
        finally:
            timer.close()


@contextlib.contextmanager
def _crew(count: int) -> Iterator[Crew]:
    if count != RAY:
        yield Processes(count)
        return
    from cuasmrl.gpu.devices.pool.cluster import two_nodes
    from cuasmrl.gpu.devices.pool.on_ray import OnRay

    with two_nodes() as address:
        crew = OnRay(address)
        try:
            yield crew
        finally:
            crew.close()


def _no_launch() -> Any:
    raise AssertionError("the virtual GPU launches nothing")


def _warmed(kernel: TracedKernel, timer: Timer, agent: Agent, seed: int) -> None:
    """Code compiled, workers there."""
    if isinstance(timer, PooledTimer):
        timer.gather()
    match(agent, kernel, timer, _WARM, seed + 1)


def _game(
    kernel: TracedKernel,
    timer: Timer,
    name: str,
    agent: tuple[str, Agent],
    count: int,
    budget: int,
    seed: int,
) -> Round:
    asked = _forgetful(timer)
    pids = asked.processes if isinstance(asked, PooledTimer) else []
    clock = Clock(asked, kernel.original, budget)
    game = Game(kernel.listing, clock, kernel)  # Its board is made once, however long a game is.
    before, others, start = time.process_time(), _processor(pids), time.perf_counter()
    with contextlib.suppress(BudgetSpentError):
        agent[1].play(lambda: game, seed)
    seconds = time.perf_counter() - start
    head, others = time.process_time() - before, _processor(pids) - others
    return Round(
        name, agent[0], count, seconds, head, others, clock.spent, clock.gain, clock.best.digest,
        os.getloadavg()[0],
    )  # fmt: skip


def _forgetful(timer: Timer) -> Timer:
    """What a game before has replayed must not help the next one; a pool sees to that by itself."""
    if isinstance(timer, PooledTimer):
        timer.forget()
        return timer
    assert isinstance(timer, VirtualTimer)
    fresh = _same(timer)
    _ = fresh.panel
    return fresh


def _processor(pids: Sequence[int]) -> float:
    """Seconds of processor time that these have used."""
    ticks = 0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def workers_table(rounds: Sequence[Round]) -> Table:
    """Medians over the rounds; ratios are of the rounds, each with the one worker beside it.

    Milliseconds are processor time of an evaluation, of all and of the head; `at most` is what they allow on
    cores that are free.
    """
    table = Table(box=None, pad_edge=False)
    for heading in ("kernel", "agent"):
        table.add_column(heading)
    for heading in (
        "workers",
        "evaluations/s",
        "times one",
        "range",
        "at most",
        "ms",
        "head",
        "gain",
        "load",
    ):
        table.add_column(heading, justify="right")
    table.add_column("schedule")
    for workload, agent, count in dict.fromkeys((one.workload, one.agent, one.workers) for one in rounds):
        own, ones = (_of(rounds, workload, agent, number) for number in (count, 1))
        ratios = [mine.rate / one.rate for mine, one in zip(own, ones, strict=True)]
        bounds = [mine.most(one) for mine, one in zip(own, ones, strict=True) if count != RAY]
        is_same = len({one.schedule for one in _of(rounds, workload, agent)}) == 1
        table.add_row(
            workload, agent, "2 nodes" if count == RAY else str(count), f"{median(r.rate for r in own):,.0f}",
            f"{median(ratios):.2f}", f"{min(ratios):.2f} to {max(ratios):.2f}",
            f"{median(bounds):.2f}" if bounds else "",
            f"{median(r.processor for r in own):.2f}" if bounds else "",
            f"{median(r.own for r in own):.2f}", f"{own[0].gain:+.2%}", f"{median(r.load for r in own):.1f}",
            f"{own[0].schedule[:12]} {'everywhere' if is_same else 'HERE ONLY'}",
        )  # fmt: skip
    return table


def _of(rounds: Sequence[Round], workload: str, agent: str, count: int | None = None) -> list[Round]:
    return [
        one
        for one in rounds
        if (one.workload, one.agent) == (workload, agent) and (count is None or one.workers == count)
    ]
