"""Deviation, bias and rank correlation, computed by hand."""

from math import sqrt

import pytest

from cuasmrl.bench.kernels.comparison import Comparison
from cuasmrl.bench.kernels.summary import spearman, summary
from cuasmrl.bench.kernels.table import kernels_table, summary_table


def row(
    key: str, modelled: float | None, published: float, group: str = "memory", series: str = ""
) -> Comparison:
    return Comparison(
        key, group, series or key, "a100", "stream", "scale_b256", {"n": 4}, "us", published, published,
        "high", "somewhere", "" if modelled else "no chip a100", modelled, modelled, moved_bytes=100,
    )  # fmt: skip


def test_ratio_and_deviation() -> None:
    assert (row("A", 50.0, 100.0).ratio, row("A", 50.0, 100.0).deviation) == (0.5, 2.0)
    assert row("A", 200.0, 100.0).deviation == 2.0
    assert row("A", None, 100.0).deviation is None


def test_groups_series_and_all() -> None:
    rows = [row(f"A{k}", m, 100.0 * (k + 1), series="A") for k, m in enumerate((50.0, 400.0, 150.0, 400.0))]
    rows += [row("B", 100.0, 100.0, "gemm"), row("C", None, 1.0, "gemm")]
    memory, gemm, series, everything = summary(rows)
    assert (memory.name, memory.rows, gemm.name, gemm.rows) == ("memory", 4, "gemm", 1)
    assert (series.name, series.spearman) == ("A", memory.spearman)
    # Ratios 0.5, 2, 0.5, 1.
    assert memory.deviation == pytest.approx(8 ** (1 / 4))
    assert memory.bias == pytest.approx(sqrt(sqrt(0.5)))
    assert (memory.worst, memory.worst_ratio) == ("A0", 0.5)
    # Ranks of the modelled times: 0, 2.5, 1, 2.5; of the published ones 0, 1, 2, 3.
    assert memory.spearman == pytest.approx(3.0 / sqrt(4.5 * 5.0))
    assert (everything.name, everything.rows) == ("all", 5)
    assert summary([row("C", None, 1.0)]) == []


def test_rank_correlation() -> None:
    rising = [(float(k), float(k * k)) for k in range(5)]
    assert spearman(rising) == pytest.approx(1.0)
    assert spearman([(a, -b) for a, b in rising]) == pytest.approx(-1.0)
    assert spearman(rising[:3]) is None
    assert spearman([(1.0, b) for _, b in rising]) is None


def test_tables() -> None:
    rows = [row("A", 50.0, 100.0), row("C", None, 1.0)]
    table = kernels_table(rows)
    assert list(table.columns[7].cells) == ["0.50", "no chip a100"]
    assert list(table.columns[9].cells) == ["-", ""]
    assert list(summary_table(summary(rows)).columns[0].cells) == ["memory", "all"]
