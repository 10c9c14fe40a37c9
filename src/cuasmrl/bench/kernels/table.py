"""The comparisons as tables."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table

from cuasmrl.bench.kernels.comparison import Comparison
from cuasmrl.bench.kernels.summary import Summary


def kernels_table(rows: Sequence[Comparison]) -> Table:
    """A line for each figure."""
    table = Table(box=None, pad_edge=False)
    for name in ("id", "chip", "kernel", "sizes"):
        table.add_column(name)
    for name in ("published", "modelled", "unit", "time ratio", "at other clocks", "DRAM / least"):
        table.add_column(name, justify="left" if name == "unit" else "right")
    table.add_column("certainty")
    for row in rows:
        kernel = f"{row.kernel} {row.config}"
        sizes = " ".join(f"{name}={size}" for name, size in row.sizes.items())
        if row.modelled is None or row.ratio is None:
            table.add_row(row.id, row.chip, row.kernel, sizes, f"{row.published:,.5g}", "-", row.unit,
                          row.left_out, "", "", row.certainty)  # fmt: skip
            continue
        table.add_row(
            row.id, row.chip, kernel, sizes, f"{row.published:,.5g}", f"{row.modelled:,.5g}", row.unit,
            f"{row.ratio:.2f}", _span(row), _traffic(row), row.certainty,
        )  # fmt: skip
    return table


def _span(row: Comparison) -> str:
    """Time ratios at the highest and the lowest clock, where the clock is not stated."""
    if row.slowest_us is None or row.fastest_us is None or row.slowest_us == row.fastest_us:
        return ""
    return f"{row.fastest_us / row.published_us:.2f} to {row.slowest_us / row.published_us:.2f}"


def _traffic(row: Comparison) -> str:
    if row.dram_bytes is None or not row.moved_bytes:
        return "-"
    return f"{row.dram_bytes / row.moved_bytes:.2f}"


def summary_table(summaries: Sequence[Summary]) -> Table:
    """A line for each group and series; the last is of all rows."""
    table = Table(box=None, pad_edge=False)
    table.add_column("rows of")
    for name in ("rows", "deviation", "bias", "worst", "its ratio", "Spearman"):
        table.add_column(name, justify="right")
    for one in summaries:
        table.add_row(
            one.name, str(one.rows), f"{one.deviation:.2f}", f"{one.bias:.2f}", one.worst,
            f"{one.worst_ratio:.2f}", "-" if one.spearman is None else f"{one.spearman:.2f}",
        )  # fmt: skip
    return table
