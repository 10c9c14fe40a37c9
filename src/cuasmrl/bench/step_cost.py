"""What an evaluated step costs beside its replays: moves, retiming, key, table, restoring, observation.

A game is played with a plain timer that keeps what it saw, then again from what was kept: then nothing is
replayed, and the processor time of the game is all that is left. Run as a file it measures whatever revision
of the package is on the path, so that two of them can be compared: `cuasmrl bench game --before DIRECTORY`.
It must keep to what all of them have.
"""

from __future__ import annotations

import contextlib
import json
import random
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from statistics import median
from time import process_time
from typing import Any

import numpy as np

from cuasmrl import workloads
from cuasmrl.agents.greedy import Greedy
from cuasmrl.game import BudgetSpentError, Clock, FreeGame, Game
from cuasmrl.gpu.chips import chip
from cuasmrl.gpu.timing import Model, Reason
from cuasmrl.gpu.timing.excerpt import excerpt
from cuasmrl.gpu.traced import TracedKernel
from cuasmrl.schedule import Schedule
from cuasmrl.workloads.tracing import trace_workload

GREEDY, FREE = "greedy", "AssemblyGame-v1"
STEPS = (
    (GREEDY, "gemm_leaky_relu", "m64n64k64_w4_s4"),
    (GREEDY, "gemm_leaky_relu", "m128n128k32_w4_s3"),
    (GREEDY, "fused_ff", "m64n64k64_w4_s3"),
    (GREEDY, "bmm", "m128n128k64_w8_s3"),
    (FREE, "gemm_leaky_relu", "m64n64k64_w4_s4"),
)
_EVALUATIONS = 200
_ITERATIONS = 4
_SEED = 1
_TIMES = 5


@dataclass(frozen=True)
class Waits:
    """A profile, whatever a revision calls it."""

    executions: Any
    waits: Any


class TapedGame(Game):
    """Where time goes comes from the tape too."""

    def profile(self, schedule: Schedule) -> Any:
        return self.clock.timer.profile(schedule)  # type: ignore[attr-defined]


class Tape:
    """A timer that replays once and then plays back; what is not a replay, it does each time."""

    device, unit, finalists = "tape", "cycles", 1

    def __init__(self, kernel: TracedKernel) -> None:
        trace = excerpt(kernel.trace, _ITERATIONS)
        self._model = Model(kernel.original, trace, kernel.chip, l2=kernel.l2)
        self._kept: dict[bytes, tuple[float, Waits]] = {}

    def time(self, schedule: Schedule, rival: object = None) -> float:
        self._model.table(schedule)
        return self._seen(schedule)[0]

    def times(self, schedules: Sequence[Schedule], rival: object = None) -> list[float]:
        return [self.time(schedule) for schedule in schedules]

    def profile(self, schedule: Schedule) -> Waits:
        return self._seen(schedule)[1]

    def pick(self, old: Schedule, candidates: Sequence[Schedule]) -> Schedule:
        raise NotImplementedError

    def confirm(self, old: Schedule, new: Schedule) -> Any:
        raise NotImplementedError

    def _seen(self, schedule: Schedule) -> tuple[float, Waits]:
        if schedule.key not in self._kept:
            result = self._model.simulate(schedule, _SEED, self._model.resident)
            waits = result.row_reasons.astype(np.float64)
            executions = waits[:, Reason.ISSUED].copy()
            waits[:, Reason.ISSUED] = 0
            self._kept[schedule.key] = float(result.cycles), Waits(executions, waits)
        return self._kept[schedule.key]


def step_cost(kind: str, name: str, config: str) -> dict[str, Any]:
    """Microseconds of processor time of an evaluated step without its replays, and which way it went."""
    workload = workloads.get(name)
    kernel = trace_workload(workload, workload.config(config), chip("a100"))
    tape, player = Tape(kernel), _climber if kind == GREEDY else _walker
    seconds, ways = zip(*(_played(kernel, tape, player) for _ in range(1 + _TIMES)), strict=True)
    return {
        "step": kind,
        "kernel": f"{name} {config}",
        "microseconds": 1e6 * median(seconds[1:]) / _EVALUATIONS,
        "way": ways[0],
    }


def _played(
    kernel: TracedKernel, tape: Tape, player: Callable[[Game], Callable[[], None]]
) -> tuple[float, str]:
    way = sha256()
    clock = Clock(tape, kernel.original, _EVALUATIONS, listener=lambda evaluation: way.update(evaluation.key))
    play = player(TapedGame(kernel.listing, clock))
    start = process_time()
    with contextlib.suppress(BudgetSpentError):
        play()
    return process_time() - start, way.hexdigest()[:12]


def _climber(game: Game) -> Callable[[], None]:
    return lambda: Greedy().play(lambda: game, seed=0)


def _walker(game: Game) -> Callable[[], None]:
    """Legal moves at random, all of them kept."""
    environment = FreeGame(lambda: game)
    rng = random.Random(0)

    def walk() -> None:
        environment.reset(seed=0)
        while not game.clock.is_over:
            legal = np.flatnonzero(environment.action_masks()[:-1])
            _, _, terminated, truncated, _ = environment.step(legal[rng.randrange(len(legal))])
            if terminated or truncated:
                environment.reset()

    return walk


if __name__ == "__main__":
    for step in STEPS:
        json.dump(step_cost(*step), sys.stdout)
        print(flush=True)
