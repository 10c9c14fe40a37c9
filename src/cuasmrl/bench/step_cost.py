"""What an evaluated step costs, replays and all, and without them: moves, retiming, key, table, observation.

Run as a file it measures whatever revision of the package is on the path, so that two of them can be
compared: `cuasmrl bench game --before DIRECTORY`. It must keep to what all of them have.

Without replays a game is played with a plain timer that keeps what it saw, then again from what was kept:
the processor time of the game is then all that is left.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from inspect import signature
from statistics import median
from time import perf_counter, process_time
from typing import Any

import numpy as np

from cuasmrl import workloads
from cuasmrl.agents.greedy import Greedy
from cuasmrl.game import BudgetSpentError, Clock, FreeGame, Game
from cuasmrl.gpu.chips import chip
from cuasmrl.gpu.devices.virtual import VirtualTimer
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
    (GREEDY, "flash_attention", "m64n128_w4_s3"),
    (GREEDY, "softmax", "w8"),
    (FREE, "gemm_leaky_relu", "m64n64k64_w4_s4"),
)
SEARCH, EQUAL, BESIDE = "search", "equal", "beside"
"""As this revision searches; the nominal chip under three seeds with 12 iterations of each loop, whatever
revision it is; and without replays."""
_WARM_UP, _EVALUATIONS = 50, 300
_FEWER = {"flash_attention": 60}
"""Evaluations of kernels whose replays are long."""
_ITERATIONS, _SEEDS = 12, (1, 2, 3)
_TAPED_ITERATIONS, _SEED = 4, 1
_TIMES = 5


@dataclass(frozen=True)
class Waits:
    """A profile, whatever a revision calls it."""

    executions: Any
    waits: Any

    @property
    def spent(self) -> Any:
        return self.executions + self.waits.sum(axis=1)


class TapedGame(Game):
    """Where time goes comes from the tape too."""

    def profile(self, schedule: Schedule) -> Any:
        return self.clock.timer.profile(schedule)  # type: ignore[attr-defined]


class Tape:
    """A timer that replays once and then plays back; what is not a replay, it does each time."""

    device, unit, finalists, cost = "tape", "cycles", 1, 1.0

    def __init__(self, kernel: TracedKernel) -> None:
        trace = excerpt(kernel.trace, _TAPED_ITERATIONS)
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


def step_cost(kind: str, name: str, config: str, how: str) -> dict[str, Any]:
    """Milliseconds of an evaluated step: processor time on one core, and on the wall with all cores."""
    workload = workloads.get(name)
    kernel = trace_workload(workload, workload.config(config), chip("a100"))
    count = _FEWER.get(name, _EVALUATIONS)
    if how == BESIDE:
        tape = Tape(kernel)
        played = [_played(kernel, tape, TapedGame, kind, count) for _ in range(1 + _TIMES)][1:]
        processor, wall = (median(column) for column in zip(*played, strict=True))
    else:
        timer = _timer(kernel, how)
        processor, wall = _played(kernel, timer, Game, kind, count)
        if hasattr(timer, "workers"):
            timer.workers = len(os.sched_getaffinity(0))
            _, wall = _played(kernel, timer, Game, kind, count)
    return {"step": kind, "kernel": f"{name} {config}", "how": how, "processor": processor, "wall": wall}


def _timer(kernel: TracedKernel, how: str) -> Any:
    known = signature(VirtualTimer.__init__).parameters
    given: dict[str, Any] = {"workers": 1} if "workers" in known else {}
    if how == EQUAL or "objective" not in known:
        given |= {"iterations": _ITERATIONS, "seeds": _SEEDS}
    return VirtualTimer(kernel, **given)


def _played(
    kernel: TracedKernel, timer: Any, game_of: Callable[..., Game], kind: str, count: int
) -> tuple[float, float]:
    marks: list[tuple[float, float]] = []

    def listen(evaluation: Any) -> None:
        if evaluation.number in (_WARM_UP, _WARM_UP + count):
            marks.append((process_time(), perf_counter()))

    clock = Clock(timer, kernel.original, _WARM_UP + count, listener=listen)
    # Players did not always get the trace: they asked the device where time goes.
    traced = (kernel,) if "traced" in signature(Game.__init__).parameters else ()
    play = (_climber if kind == GREEDY else _walker)(game_of(kernel.listing, clock, *traced))
    with contextlib.suppress(BudgetSpentError):
        play()
    (a, b), (c, d) = marks
    return 1000 * (c - a) / count, 1000 * (d - b) / count


def _climber(game: Game) -> Callable[[], None]:
    return lambda: Greedy().play(lambda: game, seed=0)


def _walker(game: Game) -> Callable[[], None]:
    """Legal moves at random; what makes the kernel slower is taken back, as the policy plays."""
    environment = FreeGame(lambda: game, keep_worse=False)
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
    number, how = sys.argv[1:]
    json.dump(step_cost(*STEPS[int(number)], how), sys.stdout)
