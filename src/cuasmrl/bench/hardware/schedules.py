"""Random legal schedules of a few kernels: does the model order them as the GPU does?"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any

from cuasmrl import workloads
from cuasmrl.bench.hardware.session import Session
from cuasmrl.bench.kernels.summary import spearman
from cuasmrl.errors import CuasmrlError
from cuasmrl.gpu.devices.cuda import CudaTimer
from cuasmrl.gpu.devices.device import CandidateError, Timer
from cuasmrl.gpu.devices.loading import load
from cuasmrl.gpu.devices.worker import Connect
from cuasmrl.gpu.timing.uncertainty import measure
from cuasmrl.gpu.traced import TracedKernel
from cuasmrl.schedule import Board, Schedule
from cuasmrl.schedule.random_moves import random_move
from cuasmrl.workloads import Workload
from cuasmrl.workloads.tracing import trace_workload

SCHEDULES = 30
KERNELS = (
    ("gemm_leaky_relu", "m64n64k64_w4_s4"),
    ("bmm", "m128n128k64_w8_s3"),
    ("flash_attention", "m64n64_w4_s3"),
)
_FEWEST_MOVES, _MOST_MOVES = 20, 800
_TRIES = 20
"""For each legal move."""
_SEEDS = (0, 1, 2)
_APART = 0.01
"""Two schedules differ if their measured times differ by this share."""


@dataclass(frozen=True)
class Ranking:
    """Schedules of one kernel, in the model and on the GPU."""

    workload: str
    config: str
    cubin: str
    """Digest of the code that was rescheduled."""
    schedules: tuple[str, ...]
    """Digests; the first is the original."""
    moves: tuple[int, ...]
    modelled: tuple[float, ...]
    """Cycles."""
    measured: tuple[float, ...]
    """Microseconds."""
    failed: tuple[str, ...]
    """What could not be timed, by the GPU or by the model, in a sentence each."""

    @property
    def spearman(self) -> float | None:
        return spearman(list(zip(self.modelled, self.measured, strict=True)))

    @property
    def pairs(self) -> tuple[int, int]:
        """Pairs that both order alike, and all pairs that differ on the GPU."""
        times = list(zip(self.modelled, self.measured, strict=True))
        differ = [(a, b) for a, b in combinations(times, 2) if abs(a[1] - b[1]) > _APART * min(a[1], b[1])]
        return sum((a[0] - b[0]) * (a[1] - b[1]) > 0 for a, b in differ), len(differ)

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "spearman": self.spearman, "pairs": self.pairs}


def random_schedules(kernel: TracedKernel, count: int, seed: int = 0) -> list[tuple[int, Schedule]]:
    """The original, and schedules that are from a few to many random legal moves away from it."""
    rng, found = random.Random(seed), [(0, kernel.original)]
    board = Board(kernel.listing)
    for k in range(count):
        wanted = round(_FEWEST_MOVES * (_MOST_MOVES / _FEWEST_MOVES) ** (k / max(count - 1, 1)))
        board.reset()
        moves = 0
        for _ in range(_TRIES * wanted):
            moves += random_move(board, rng) is not None
            if moves == wanted:
                break
        found.append((moves, board.schedule()))
    return found


def rank(
    kernel: TracedKernel,
    schedules: Sequence[tuple[int, Schedule]],
    timer: Timer,
    progress: Callable[[], None] = lambda: None,
) -> Ranking:
    """Time schedules in the model and by a timer."""
    kept: list[tuple[int, Schedule, float, float]] = []
    failed = []
    for moves, schedule in schedules:
        try:
            time = timer.time(schedule)
        except CandidateError as error:
            failed.append(str(error))
        else:
            kept.append((moves, schedule, measure(kernel.model, schedule, _SEEDS).value, time))
        progress()
    return Ranking(
        kernel.name,
        kernel.config,
        kernel.original.digest,
        tuple(schedule.digest for _, schedule, _, _ in kept),
        tuple(moves for moves, _, _, _ in kept),
        tuple(modelled for _, _, modelled, _ in kept),
        tuple(time for _, _, _, time in kept),
        tuple(failed),
    )


def rankings(
    session: Session,
    count: int = SCHEDULES,
    connect: Connect = load,
    progress: Callable[[], None] = lambda: None,
) -> list[Ranking]:
    """The three kernels at their published shapes; what cannot be traced or timed is said to have failed."""
    found = []
    for name, config in KERNELS:
        try:
            found.append(_ranked(workloads.get(name), config, session, count, connect, progress))
        except CuasmrlError as error:
            found.append(Ranking(name, config, "", (), (), (), (), (str(error),)))
    return found


def _ranked(
    workload: Workload,
    config: str,
    session: Session,
    count: int,
    connect: Connect,
    progress: Callable[[], None],
) -> Ranking:
    chosen = workload.config(config)
    kernel = trace_workload(workload, chosen, session.chip)
    launch = workload.launch(workload.build(chosen, session.chip.arch), workload.inputs())
    timer = CudaTimer(kernel, session.gpu.ordinal, launch, connect)
    try:
        return rank(kernel, random_schedules(kernel, count), timer, progress)
    finally:
        timer.close()
