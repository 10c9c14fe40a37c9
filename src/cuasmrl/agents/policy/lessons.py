"""Labelled moves: positions of climbs, and what the model says that moves from there bring.

Replays are free, so a lesson asks for as many as it likes. It begins with every block retimed: the first move
in a block does that by itself, and what it brings must not be mistaken for the worth of a move.
"""

from __future__ import annotations

import math
import os
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from cuasmrl.agents.policy.draws import Draws
from cuasmrl.agents.policy.observation.facts import Float, Int
from cuasmrl.agents.policy.ranker import Policy
from cuasmrl.agents.proposals import Mix, Walk
from cuasmrl.errors import CuasmrlError
from cuasmrl.game import Clock, Game
from cuasmrl.gpu.devices import Rival
from cuasmrl.gpu.profile import Profile, replayed
from cuasmrl.gpu.timing import Model
from cuasmrl.gpu.timing.records import SUB_CORES, Job
from cuasmrl.gpu.timing.uncertainty import Gain, draw
from cuasmrl.gpu.traced import TracedKernel
from cuasmrl.schedule import Drag, Schedule, Scoreboards

Double: TypeAlias = npt.NDArray[np.float64]

_UNLIMITED = 1 << 40
_MORE = 4
"""Moves that are drawn for each that is labelled: some are not legal, or lead to the same."""


HELPS = 0.05
"""Percent that a move has to gain to be one that helps; it also has to be beyond doubt,"""
_DOUBT = 3.0
"""so many standard errors above zero."""


@dataclass(frozen=True)
class Plan:
    """How much is asked of one kernel."""

    stops: tuple[int, ...] = (0, 60, 150, 300, 600, 1000, 1500)
    """Evaluations of the climb at which moves are labelled."""
    moves: int = 96
    """Labelled at each stop."""
    seeds: int = 4
    """Of the latency jitter, whose mean is the label where blocks share an SM or warps a sub-core; else one
    is enough."""
    iterations: int = 4
    """Of each loop that are replayed."""
    heaviest: int = 26_500
    """Issues in such a replay; kernels with more are left out, as they would take most of the time."""
    patience: int = 300
    """Evaluations of the climb without a gain after which it steps aside."""
    aside: int = 4
    """Random moves of such a step."""


@dataclass(frozen=True, eq=False)
class Position:
    """A schedule, where its time goes, and what moves from there bring."""

    stop: int
    """Evaluations that led there."""
    indices: npt.NDArray[np.int32]
    bits: npt.NDArray[np.int32]
    executions: Double
    waits: Double
    instructions: Int
    """Of each move."""
    targets: Int
    gains: Float
    """In percent of the time before the move."""
    errors: Float
    """Standard errors of the gains."""

    @property
    def profile(self) -> Profile:
        return Profile(self.executions.astype(np.float64), self.waits.astype(np.float64))


_ARRAYS = ("indices", "bits", "executions", "waits", "instructions", "targets", "gains", "errors")


@dataclass(frozen=True, eq=False)
class Oracle:
    """The model as a timer: one chip, some seeds."""

    model: Model
    seeds: Sequence[int]
    device: str = "model"
    unit: str = "modelled cycles"
    finalists: int = 1
    cost: float = 1.0

    def time(self, schedule: Schedule, rival: Rival | None = None) -> float:
        return float(self.model.cycles(self.model.table(schedule), self.seeds[0], self.model.resident))

    def times(self, schedules: Sequence[Schedule], rival: Rival | None = None) -> list[float]:
        return [self.time(schedule) for schedule in schedules]

    def samples(self, schedule: Schedule) -> Double:
        """Cycles under each seed."""
        table = self.model.table(schedule)
        return np.array([self.model.cycles(table, seed, self.model.resident) for seed in self.seeds], float)

    def pick(self, old: Schedule, candidates: Sequence[Schedule]) -> Schedule:
        return min(candidates, key=self.time)

    def confirm(self, old: Schedule, new: Schedule) -> Gain:
        gain = float((self.samples(old) / self.samples(new)).mean()) - 1
        return Gain(gain, gain, gain, gain, float(gain > 0), (gain,))


def positions_of(
    kernel: TracedKernel, plan: Plan, seed: int, scoreboards: Scoreboards, policy: Policy | None = None
) -> Iterator[Position]:
    """Climb on one member of the kernel's ensemble, and label moves on the way.

    Of a policy the moves that it likes best are labelled among others.
    """
    part = kernel.part(plan.iterations)
    # Every third lesson is on the chip as its file describes it.
    model = part.with_parameters(draw(part.parameters, 2, seed)[1]) if seed % 3 else part
    rng = random.Random(seed)
    warps = part.resident * int(part.work[Job.WARPS_PER_BLOCK])
    count = plan.seeds if part.resident > 1 or warps > SUB_CORES else 1
    oracle = Oracle(model, [rng.randrange(1 << 20) for _ in range(count)])
    issues = model.simulate(kernel.original, oracle.seeds[0], model.resident).instructions
    if issues > plan.heaviest:
        raise CuasmrlError(
            f"{kernel.name} ({kernel.config}) issues {issues:,} instructions in a replay, which is more than "
            f"lessons are given on; raise `heaviest`, which is {plan.heaviest:,}"
        )
    game = Game(kernel.listing, Clock(oracle, kernel.original, _UNLIMITED), kernel, scoreboards=scoreboards)
    walk = Walk(game, rng, Mix())
    for block in game.scope.blocks:
        game.board.retime(block.number)
    walk.go_to(game.schedule)
    draws = np.random.default_rng(seed)
    spent = last_gain = 0
    for stop in plan.stops:
        while spent < stop:
            spent += 1
            is_aside = spent - last_gain >= plan.patience
            time = walk.propose(plan.aside if is_aside else 1)
            if time is None:
                return
            if time < walk.time or is_aside:
                last_gain = spent
            if time <= walk.time or is_aside:
                walk.keep(time)
            else:
                walk.take_back()
        yield label(game, walk.schedule, oracle, draws, stop, plan.moves, policy)


def label(
    game: Game, here: Schedule, oracle: Oracle, rng: np.random.Generator, stop: int, count: int,
    policy: Policy | None = None,
) -> Position:  # fmt: skip
    """So many different moves from a schedule."""
    profile = replayed(oracle.model, here, oracle.seeds[0])
    base = oracle.samples(here)
    drawn = Draws(game, profile).draw(_MORE * count, rng)
    order = rng.permutation(len(drawn.instructions))
    if policy is not None:
        odds = policy.look(game.board, profile).odds(*drawn)
        liked = np.argsort(-odds, kind="stable")[: count // 2]
        order = np.concatenate([liked, order[~np.isin(order, liked)]])
    seen = {here.key}
    moves: list[tuple[int, int]] = []
    gains: list[Double] = []
    for n in order:
        if len(moves) == count:
            break
        move = int(drawn.instructions[n]), int(drawn.targets[n])
        if not game.play(Drag(*move)):
            continue
        schedule = game.schedule
        game.back_to(here)
        if schedule.key not in seen:
            seen.add(schedule.key)
            moves.append(move)
            gains.append(100 * (1 - oracle.samples(schedule) / base))
    found = np.array(gains, np.float64).reshape(len(moves), -1)
    errors = found.std(axis=1, ddof=1) / math.sqrt(len(base)) if len(base) > 1 else np.zeros(len(moves))
    pairs = np.array(moves, np.int64).reshape(-1, 2)
    return Position(
        stop, here.indices, here.bits, profile.executions, profile.waits, pairs[:, 0], pairs[:, 1],
        found.mean(axis=1).astype(np.float32), errors.astype(np.float32),
    )  # fmt: skip


def is_help(position: Position) -> Float:
    """1 for moves that help, else 0.

    A few seeds say little about the noise of one move, but much about that of all moves together.
    """
    errors = position.errors[position.errors > 0]
    noise = math.sqrt(float((errors.astype(np.float64) ** 2).mean())) if len(errors) else 0.0
    return (position.gains > max(HELPS, _DOUBT * noise)).astype(np.float32)


def save(path: Path, positions: Sequence[Position]) -> None:
    """All of it or nothing."""
    arrays: dict[str, npt.NDArray[np.generic]] = {"stops": np.array([p.stop for p in positions], np.int64)}
    for number, position in enumerate(positions):
        for name in _ARRAYS:
            values = getattr(position, name)
            is_double = values.dtype == np.float64
            arrays[f"{name} {number}"] = values.astype(np.float32) if is_double else values
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    with partial.open("wb") as file:
        np.savez_compressed(file, **arrays)  # type: ignore[arg-type]
    os.replace(partial, path)


def load(path: Path) -> list[Position]:
    with np.load(path) as file:
        return [
            Position(int(stop), **{name: file[f"{name} {number}"] for name in _ARRAYS})
            for number, stop in enumerate(file["stops"])
        ]
