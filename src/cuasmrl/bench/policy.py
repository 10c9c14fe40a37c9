"""How well a policy ranks moves on kernels that it has never seen, and how many replays that saves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from rich.table import Table

from cuasmrl import workloads
from cuasmrl.agents import Agent, match
from cuasmrl.agents.greedy import Greedy
from cuasmrl.agents.policy import weights
from cuasmrl.agents.policy.agent import PolicyClimb
from cuasmrl.agents.policy.lessons import Plan, Position, is_help, positions_of
from cuasmrl.agents.policy.ranker import Policy
from cuasmrl.errors import CuasmrlError
from cuasmrl.game import Evaluation
from cuasmrl.gpu.chips import chip
from cuasmrl.gpu.devices import VirtualTimer
from cuasmrl.gpu.devices.objective import SEARCH_SEEDS
from cuasmrl.gpu.traced import TracedKernel
from cuasmrl.schedule import Board, Schedule, Scoreboards
from cuasmrl.workloads.tracing import trace_workload

Float: TypeAlias = npt.NDArray[np.float64]

TOP = 0.02
"""Share of the moves whose precision is reported."""
ANY = 1 << 40
"""Issues: no kernel is too heavy to be examined on."""
_LEAST = 4
"""Moves that help, without which a ranking of a position says nothing."""


@dataclass(frozen=True)
class Examination:
    """What a policy is asked."""

    weights: Path = weights.DEFAULT
    chip: str = "a100"
    stops: tuple[int, ...] = (200, 1000)
    """Evaluations of hill climbing that led to the positions."""
    moves: int = 600
    """Ranked at each position."""
    first_seed: int = 10
    seeds: int = 1
    evaluations: int = 800
    """Of hill climbing, whose result the policy has to reach with fewer."""


@dataclass(frozen=True)
class Ranking:
    """One position."""

    kernel: str
    scoreboards: str
    seed: int
    stop: int
    moves: int
    helpful: int
    auc: float
    """Of the odds: how often a move that helps is ranked above one that does not."""
    precision: float
    """Share of moves that help among the best ranked."""

    @property
    def base(self) -> float:
        return self.helpful / self.moves

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "base": self.base}


@dataclass(frozen=True)
class Saving:
    """One pair of climbs under the same conditions."""

    kernel: str
    scoreboards: str
    seed: int
    greedy: int
    """Replays after which greedy had its best."""
    gain: float
    """In percent, as both climbs see it."""
    policy: int | None
    """Replays after which the policy was as good; None if it was not within as many."""

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def rankings(kernels: Sequence[str], how: Examination, progress: Callable[[int, int], None]) -> list[Ranking]:
    """At positions of climbs on each `WORKLOAD[/CONFIG]`, under both treatments of scoreboards."""
    policy = Policy.load(how.weights)
    found: list[Ranking] = []
    games = [(name, mode, how.first_seed + k) for name in kernels for mode in Scoreboards
             for k in range(how.seeds)]  # fmt: skip
    progress(0, len(games))
    for done, (name, mode, seed) in enumerate(games, 1):
        kernel = held_out(name, how)
        board = Board(kernel.listing, scoreboards=mode)
        for position in positions_of(
            kernel, Plan(stops=how.stops, moves=how.moves, heaviest=ANY), seed, mode
        ):
            helps = is_help(position).astype(np.float64)
            if helps.sum() >= _LEAST:
                odds = judged(policy, board, position)
                found.append(
                    Ranking(f"{kernel.name} {kernel.config}", mode.value, seed, position.stop, len(helps),
                            int(helps.sum()), auc(helps, odds), precision(helps, odds))
                )  # fmt: skip
        progress(done, len(games))
    return found


def savings(kernels: Sequence[str], how: Examination, progress: Callable[[int, int], None]) -> list[Saving]:
    """Climbs with and without the policy, each move replayed once on the nominal chip."""
    found: list[Saving] = []
    games = [(name, mode, how.first_seed + k) for name in kernels for mode in Scoreboards
             for k in range(how.seeds)]  # fmt: skip
    progress(0, len(games))
    for done, (name, mode, seed) in enumerate(games, 1):
        kernel = held_out(name, how)
        goal = best_times(Greedy(), kernel, how.evaluations, seed, mode)
        mine = best_times(PolicyClimb(weights=how.weights), kernel, how.evaluations, seed, mode)
        reached = int(np.argmax(goal <= goal[-1]))
        faster = np.flatnonzero(mine <= goal[-1])
        found.append(
            Saving(
                f"{kernel.name} {kernel.config}", mode.value, seed, reached,
                100 * (float(goal[0]) / float(goal[-1]) - 1), int(faster[0]) if len(faster) else None,
            )
        )  # fmt: skip
        progress(done, len(games))
    return found


def best_times(agent: Agent, kernel: TracedKernel, budget: int, seed: int, mode: Scoreboards) -> Float:
    """The best time after so many evaluations, that of the original first."""
    times: list[float] = []

    def note(evaluation: Evaluation) -> None:
        times.append(evaluation.time)

    timer = VirtualTimer(kernel, iterations=4, seeds=(SEARCH_SEEDS[0],))
    clock = match(agent, kernel, timer, budget, seed, listener=note, scoreboards=mode)
    return np.minimum.accumulate(np.array([clock.start, *times]))


@lru_cache(maxsize=1)
def held_out(name: str, how: Examination) -> TracedKernel:
    """A kernel of a workload that the weights were not trained on."""
    workload = workloads.get(name.partition("/")[0])
    seen = weights.load(how.weights)[1]["curriculum"]
    if workload.name not in seen["hold_out"]:
        raise CuasmrlError(
            f"the weights {how.weights} were trained on {workload.name}; hold it out to examine them on it"
        )
    config = name.partition("/")[2]
    return trace_workload(
        workload, workload.config(config) if config else workload.configs[0], chip(how.chip)
    )


def judged(policy: Policy, board: Board, position: Position) -> Float:
    """The odds that a policy gives to the moves of a position."""
    board.restore(Schedule.of_arrays(board.listing, position.indices, position.bits))
    odds = policy.look(board, position.profile).odds(position.instructions, position.targets)
    return odds.astype(np.float64)


def auc(helps: Float, odds: Float) -> float:
    """Share of pairs of a move that helps and one that does not which are ranked rightly; ties count half."""
    is_help = helps > 0
    good, bad = odds[is_help], odds[~is_help]
    above = (good[:, None] > bad[None]).mean() + (good[:, None] == bad[None]).mean() / 2
    return float(above)


def precision(helps: Float, odds: Float) -> float:
    """Share of moves that help among the best ranked `TOP` of all."""
    best = np.argsort(-odds, kind="stable")[: max(1, round(TOP * len(odds)))]
    return float(helps[best].mean())


def rankings_table(found: Sequence[Ranking]) -> Table:
    table = Table(box=None, pad_edge=False)
    for column in ("kernel", "scoreboards"):
        table.add_column(column)
    for column in ("seed", "after", "moves", "help", "AUC", f"in the top {TOP:.0%}", "x base"):
        table.add_column(column, justify="right")
    for row in found:
        table.add_row(
            row.kernel, row.scoreboards, str(row.seed), f"{row.stop:,}", str(row.moves), f"{row.base:.1%}",
            f"{row.auc:.2f}", f"{row.precision:.0%}", f"{row.precision / row.base:.1f}",
        )  # fmt: skip
    if found:
        table.add_row(
            "mean", "", "", "", "", f"{np.mean([r.base for r in found]):.1%}",
            f"{np.mean([r.auc for r in found]):.2f}", f"{np.mean([r.precision for r in found]):.0%}",
            f"{np.mean([r.precision for r in found]) / np.mean([r.base for r in found]):.1f}",
        )  # fmt: skip
    return table


def savings_table(found: Sequence[Saving]) -> Table:
    table = Table(box=None, pad_edge=False)
    for column in ("kernel", "scoreboards"):
        table.add_column(column)
    for column in ("seed", "gain", "replays of greedy", "of the policy"):
        table.add_column(column, justify="right")
    for row in found:
        policy = "not reached" if row.policy is None else f"{row.policy:,}"
        table.add_row(
            row.kernel, row.scoreboards, str(row.seed), f"{row.gain:+.1f} %", f"{row.greedy:,}", policy
        )
    return table
