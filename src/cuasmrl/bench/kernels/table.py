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
            table.add_row(row.id, row.chip, row.kernel, sizes, _amount(row.published), "-", row.unit,
                          row.left_out, "", "", row.certainty)  # fmt: skip
            continue
        table.add_row(
            row.id, row.chip, kernel, sizes, _amount(row.published), _amount(row.modelled), row.unit,
            f"{row.ratio:.2f}", _span(row), _traffic(row), row.certainty,
        )  # fmt: skip
    return table


def _amount(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"


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


def kernels_markdown(rows: Sequence[Comparison]) -> str:
    """The lines of `kernels_table` as a page has them."""
    lines = [
        "| id | chip | kernel | sizes | published | modelled | time ratio | certainty |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for row in rows:
        sizes = " ".join(f"{name}={size:,}" for name, size in row.sizes.items())
        ratio = row.left_out if row.ratio is None else f"{row.ratio:.2f}"
        modelled = "-" if row.modelled is None else _amount(row.modelled)
        config = row.config.replace("|", "or")
        published = f"{_amount(row.published)} {row.unit}"
        cells = (row.id, row.chip, f"{row.kernel} {config}", sizes, published, modelled, ratio, row.certainty)
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def summary_markdown(summaries: Sequence[Summary]) -> str:
    """The lines of `summary_table` as a page has them."""
    lines = [
        "| rows of | rows | deviation | bias | worst, its ratio | Spearman |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for one in summaries:
        rank = "-" if one.spearman is None else f"{one.spearman:.2f}"
        lines.append(
            f"| {one.name} | {one.rows} | {one.deviation:.2f} | {one.bias:.2f} "
            f"| {one.worst} {one.worst_ratio:.2f} | {rank} |"
        )
    return "\n".join(lines)
