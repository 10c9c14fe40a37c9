"""How far the model is from the figures, over groups and series."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from statistics import correlation, geometric_mean
from typing import Any

from cuasmrl.bench.kernels.comparison import Comparison

_FEWEST = 4
"""Rows from which a rank correlation says something."""
ALL = "all"


@dataclass(frozen=True)
class Summary:
    """Of a group, of a series, or of all rows that were run."""

    name: str
    rows: int
    deviation: float
    """Geometric mean of the larger of ratio and inverse."""
    bias: float
    """Geometric mean of the ratio: below 1 the model is too fast."""
    worst: str
    worst_ratio: float
    spearman: float | None
    """Between modelled and published time; None for a few rows."""

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def summary(rows: Iterable[Comparison]) -> list[Summary]:
    """Of each group, then of each series in which an order can be told, then of all."""
    run = [row for row in rows if row.ratio is not None]
    found = [*_by(run, lambda row: row.group, 1), *_by(run, lambda row: row.series, _FEWEST)]
    return [*found, _summed(ALL, run)] if run else []


def _by(rows: Sequence[Comparison], name_of: Callable[[Comparison], str], fewest: int) -> list[Summary]:
    named: dict[str, list[Comparison]] = {}
    for row in rows:
        named.setdefault(name_of(row), []).append(row)
    return [_summed(name, mine) for name, mine in named.items() if len(mine) >= fewest]


def _summed(name: str, rows: Sequence[Comparison]) -> Summary:
    ratios = {row.id: row.ratio for row in rows if row.ratio is not None}
    deviations = {key: max(ratio, 1 / ratio) for key, ratio in ratios.items()}
    worst = max(deviations, key=lambda key: deviations[key])
    return Summary(
        name, len(rows), geometric_mean(deviations.values()), geometric_mean(ratios.values()), worst,
        ratios[worst], spearman([(row.modelled_us or 0.0, row.published_us) for row in rows]),
    )  # fmt: skip


def spearman(pairs: Sequence[tuple[float, float]]) -> float | None:
    """Rank correlation; equal values share the mean of their ranks."""
    if len(pairs) < _FEWEST:
        return None
    first, second = (_ranks([pair[side] for pair in pairs]) for side in (0, 1))
    if len(set(first)) == 1 or len(set(second)) == 1:
        return None
    return correlation(first, second)


def _ranks(values: Sequence[float]) -> list[float]:
    ordered = sorted(values)
    return [ordered.index(value) + (ordered.count(value) - 1) / 2 for value in values]
