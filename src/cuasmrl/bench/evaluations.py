"""Speed of a search: what an evaluation costs, and replays with and without the names of cycles."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from statistics import median
from time import perf_counter, thread_time
from typing import Any

from rich.table import Table

from cuasmrl import workloads
from cuasmrl.agents.greedy import Greedy
from cuasmrl.game import Clock, Game
from cuasmrl.gpu.chips import chip
from cuasmrl.gpu.devices import VirtualTimer
from cuasmrl.gpu.devices.device import Rival
from cuasmrl.gpu.devices.objective import SEARCH_SEEDS
from cuasmrl.gpu.profile import Profile
from cuasmrl.gpu.traced import TracedKernel
from cuasmrl.schedule import Schedule
from cuasmrl.workloads.tracing import trace_workload

_KERNELS = (
    ("gemm_leaky_relu", "m64n64k64_w4_s4"),
    ("gemm_leaky_relu", "m128n128k32_w4_s3"),
    ("fused_ff", "m64n64k64_w4_s3"),
    ("bmm", "m128n128k64_w8_s3"),
    ("flash_attention", "m64n128_w4_s3"),
    ("softmax", "w8"),
)
_EVALUATIONS = 200
_PAIRS = 30


@dataclass(frozen=True)
class EvaluationFigures:
    """Milliseconds of processor time: of one replay in each way, and of an evaluation of hill climbing by
    part."""

    kernel: str
    conditions: int
    """Under which a schedule is replayed if it is not given up before."""
    replays: float
    """Of an evaluation, in the mean."""
    time_only: float
    attributing: float
    """One replay that also names cycles."""
    replay: float
    """Replays of an evaluation, without names."""
    table: float
    """The records of the schedule for them."""
    profile: float
    """Replays with names, of moves that are kept: the share of one evaluation."""
    moves: float
    """Everything else: drawing moves, the board, retiming, the key."""
    wall: float
    """An evaluation by the clock on the wall: others may use the machine too."""

    @property
    def ratio(self) -> float:
        return self.attributing / self.time_only

    @property
    def evaluations_per_second(self) -> float:
        return 1000 / (self.replay + self.table + self.profile + self.moves)

    def as_dict(self) -> dict[str, Any]:
        return {
            **asdict(self),
            "ratio": self.ratio,
            "evaluations_per_second": self.evaluations_per_second,
        }


class Stopwatch(VirtualTimer):
    """Also measures how long it takes to time, if one thread does it."""

    timing = 0.0

    def time(self, schedule: Schedule, rival: Rival | None = None) -> float:
        start = thread_time()
        time = super().time(schedule, rival)
        self.timing += thread_time() - start
        return time


class WatchedGame(Game):
    """Also measures how long it takes to say where time goes."""

    profiling = 0.0

    def profile(self, schedule: Schedule) -> Profile:
        start = thread_time()
        profile = super().profile(schedule)
        self.profiling += thread_time() - start
        return profile


def evaluations(progress: Callable[[int, int], None]) -> list[EvaluationFigures]:
    """Hill climbing by the robust objective on the A100."""
    figures = []
    for done, (name, config) in enumerate(_KERNELS, 1):
        workload = workloads.get(name)
        figures.append(evaluations_of(trace_workload(workload, workload.config(config), chip("a100"))))
        progress(done, len(_KERNELS))
    return figures


def evaluations_of(kernel: TracedKernel, count: int = _EVALUATIONS) -> EvaluationFigures:
    watch = Stopwatch(kernel, workers=1)
    clock = Clock(watch, kernel.original, count)
    game = WatchedGame(kernel.listing, clock, kernel)
    time_only, attributing, table = _replays(watch)
    watch.timing = game.profiling = 0.0
    before = watch.panel.replays
    start, began = thread_time(), perf_counter()
    Greedy().play(lambda: game, seed=0)
    seconds, wall = thread_time() - start, perf_counter() - began
    spent = max(1, clock.spent)
    return EvaluationFigures(
        kernel=f"{kernel.name} {kernel.config}",
        conditions=watch.effort.conditions,
        replays=(watch.panel.replays - before) / spent,
        time_only=time_only,
        attributing=attributing,
        replay=1000 * watch.timing / spent - table,
        table=table,
        profile=1000 * game.profiling / spent,
        moves=1000 * (seconds - watch.timing - game.profiling) / spent,
        wall=1000 * wall / spent,
    )


def _replays(timer: VirtualTimer) -> tuple[float, float, float]:
    """Milliseconds of a replay in each way and of the table, in turn: others may use the machine too."""
    part, schedule = timer.part, timer.kernel.original
    table, seed, blocks = part.table(schedule), SEARCH_SEEDS[0], timer.part.resident
    actions: tuple[Callable[[], object], ...] = (
        lambda: part.cycles(table, seed, blocks),
        lambda: part.replay(table, seed, blocks),
        lambda: part.table(schedule),
    )
    for action in actions:
        action()
    rounds = [[_milliseconds(action) for action in actions] for _ in range(_PAIRS)]
    time_only, attributing, laid_out = (median(column) for column in zip(*rounds, strict=True))
    return time_only, attributing, laid_out


def _milliseconds(action: Callable[[], object]) -> float:
    start = thread_time()
    action()
    return 1000 * (thread_time() - start)


def evaluations_table(figures: list[EvaluationFigures]) -> Table:
    table = Table(box=None, pad_edge=False, title="one replay, and an evaluation of hill climbing, ms")
    table.add_column("kernel")
    columns = (
        "time only",
        "attributing",
        "ratio",
        "conditions",
        "replays",
        "ms",
        "table",
        "profile",
        "moves",
        "eval/s",
        "wall ms",
    )
    for column in columns:
        table.add_column(column, justify="right")
    for f in figures:
        table.add_row(
            f.kernel, f"{f.time_only:.2f}", f"{f.attributing:.2f}", f"{f.ratio:.2f}", str(f.conditions),
            f"{f.replays:.1f}",
            f"{f.replay:.2f}", f"{f.table:.2f}", f"{f.profile:.2f}", f"{f.moves:.2f}",
            f"{f.evaluations_per_second:.0f}", f"{f.wall:.2f}",
        )  # fmt: skip
    return table
