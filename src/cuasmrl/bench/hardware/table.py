"""What `bench timing --device` prints."""

from __future__ import annotations

from collections.abc import Sequence

from rich.markup import escape
from rich.table import Table

from cuasmrl.bench.hardware.calibration import Calibration
from cuasmrl.bench.hardware.rows import COPY_BYTES, Row, Unsettled
from cuasmrl.bench.hardware.schedules import Ranking


def calibration_table(found: Calibration) -> Table:
    """All tables, one above the other."""
    low, high = sorted(found.clocks_mhz)
    tables = Table.grid()
    tables.add_row(
        escape(f"{found.gpu['name']} beside the model of {found.chip}; SMs at {low:.0f} to {high:.0f} MHz")
    )
    for table in (_rows(found.rows), _unsettled(found.unsettled), _rankings(found.rankings)):
        tables.add_row("")
        tables.add_row(table)
    return tables


def _rows(rows: Sequence[Row]) -> Table:
    table = Table(box=None, pad_edge=False)
    for name in ("row", "experiment", "unit"):
        table.add_column(name, overflow="fold")
    for name in ("published", "model", "measured", "model is off by"):
        table.add_column(name, justify="right")
    for row in rows:
        off = "" if row.measured is None or row.modelled is None else _percent(row.modelled, row.measured)
        table.add_row(
            row.id, escape(row.what), row.unit, _number(row.published), _number(row.modelled),
            _number(row.measured) if row.measured is not None else escape(row.reason), off,
        )  # fmt: skip
    return table


def _unsettled(rows: Sequence[Unsettled]) -> Table:
    settings = sorted({setting for row in rows for setting in row.predicted})
    table = Table(box=None, pad_edge=False)
    table.add_column("cycles of")
    for name in (*(f"{COPY_BYTES} {setting:g}" for setting in settings), "measured"):
        table.add_column(name, justify="right")
    for row in rows:
        predicted = (_number(row.predicted.get(setting)) for setting in settings)
        table.add_row(row.what, *predicted, escape(row.reason) or _number(row.measured))
    return table


def _rankings(rankings: Sequence[Ranking]) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("random legal schedules of")
    for name in ("timed", "failed", "slowest / original", "Spearman", "pairs ordered alike"):
        table.add_column(name, justify="right")
    for one in rankings:
        alike, pairs = one.pairs
        rank = "-" if one.spearman is None else f"{one.spearman:.2f}"
        slowest = f"{max(one.measured) / one.measured[0]:.2f}" if one.measured else "-"
        table.add_row(
            f"{one.workload} {one.config}", str(len(one.measured)), str(len(one.failed)), slowest, rank,
            f"{alike} of {pairs}",
        )  # fmt: skip
    return table


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"


def _percent(modelled: float, measured: float) -> str:
    return f"{100 * (modelled - measured) / (measured or 1):+.1f} %"
