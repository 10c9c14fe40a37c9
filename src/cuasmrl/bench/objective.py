"""What to search by: the nominal chip, or chips drawn for each game; and how well either ranks schedules."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from math import exp, log
from pathlib import Path
from statistics import fmean, quantiles
from typing import Any

from rich.table import Table

from cuasmrl.bench.agents import Contest, Played, agents
from cuasmrl.gpu.devices import Objective

KERNELS = (
    "gemm_leaky_relu/m64n64k64_w4_s4",
    "gemm_leaky_relu/m128n128k32_w4_s3",
    "bmm/m128n128k64_w8_s3",
    "fused_ff/m64n64k64_w4_s3",
    "gemm_int8/m128n128k128_w8_s3",
    "gemm_persistent/m128n128k64_w8_s3",
    "moe_gemm/m64n128k32_w4_s3",
    "sgemm/m128n128k8_t8x8",
)
_RESAMPLED = 2000


@dataclass(frozen=True)
class Compared:
    """Medians over the gate's ensemble, in one kernel or in all: means over seeds."""

    kernel: str
    nominal: float
    robust: float
    low: float
    high: float
    """The middle 95 % of the difference, robust minus nominal, over resampled seeds."""
    seconds: tuple[float, float]
    """Processor time of a game."""

    @property
    def difference(self) -> float:
        return self.robust - self.nominal

    def as_dict(self) -> dict[str, Any]:
        return asdict(self) | {"difference": self.difference}


def objective(
    contest: Contest,
    progress: Callable[[int, int], None],
    keep: Path | None = None,
    jobs: int = 2,
    on: str | None = None,
) -> list[Compared]:
    """The same games under both objectives; the last line is the geometric mean over the kernels."""
    games: dict[Objective, list[Played]] = {}
    for done, kind in enumerate(Objective):

        def advance(now: int, total: int, done: int = done) -> None:
            progress(done * total + now, len(Objective) * total)

        games[kind] = agents(replace(contest, objective=kind), advance, keep, jobs, on)
    return compared(games[Objective.NOMINAL], games[Objective.ROBUST])


def compared(nominal: Sequence[Played], robust: Sequence[Played]) -> list[Compared]:
    """Games with the same kernel and seed belong together."""
    kernels = list(dict.fromkeys(game.workload for game in nominal))
    pairs = {kernel: list(zip(_of(nominal, kernel), _of(robust, kernel), strict=True)) for kernel in kernels}
    rows = [_row(kernel, {kernel: pairs[kernel]}) for kernel in kernels]
    return [*rows, _row("geometric mean", pairs)]


def _of(games: Sequence[Played], kernel: str) -> list[Played]:
    return sorted((game for game in games if game.workload == kernel), key=lambda game: game.seed)


def _row(name: str, pairs: dict[str, list[tuple[Played, Played]]]) -> Compared:
    rng = random.Random(0)
    drawn = []
    for _ in range(_RESAMPLED):
        sample = {kernel: rng.choices(games, k=len(games)) for kernel, games in pairs.items()}
        drawn.append(_mean(sample, 1) - _mean(sample, 0))
    cuts = quantiles(drawn, n=40)
    every = [pair for games in pairs.values() for pair in games]
    seconds = fmean(pair[0].seconds for pair in every), fmean(pair[1].seconds for pair in every)
    return Compared(name, _mean(pairs, 0), _mean(pairs, 1), cuts[0], cuts[-1], seconds)


def _mean(pairs: dict[str, list[tuple[Played, Played]]], arm: int) -> float:
    """The geometric mean over kernels of the mean over seeds."""
    logs = [log(1 + fmean(pair[arm].median for pair in games)) for games in pairs.values()]
    return exp(fmean(logs)) - 1


def objective_table(rows: Sequence[Compared]) -> Table:
    table = Table(
        box=None, pad_edge=False, title="gain by the median over the gate's ensemble, mean over seeds"
    )
    table.add_column("kernel")
    for column in ("nominal", "robust", "difference", "middle 95 %", "s a game, nominal", "robust"):
        table.add_column(column, justify="right")
    for row in rows:
        table.add_row(
            row.kernel, f"{row.nominal:+.2%}", f"{row.robust:+.2%}", f"{100 * row.difference:+.2f}",
            f"{100 * row.low:+.2f} to {100 * row.high:+.2f}", *(f"{s:.0f}" for s in row.seconds),
        )  # fmt: skip
    return table
