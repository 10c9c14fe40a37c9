"""What `bench timing` prints: the model beside publications, and how fast it is."""

from __future__ import annotations

from collections.abc import Sequence

from rich.markup import escape
from rich.table import Table

from cuasmrl.bench.microbenchmarks import missing_compiler
from cuasmrl.bench.microbenchmarks.unsettled import Prediction
from cuasmrl.bench.speed import SpeedFigures
from cuasmrl.bench.timing import Errors, TimingFigures, summary


def timing_table(figures: Sequence[TimingFigures | Prediction | SpeedFigures]) -> Table:
    """All tables of the benchmark, one above the other."""
    rows = [f for f in figures if isinstance(f, TimingFigures)]
    open_questions = [f for f in figures if isinstance(f, Prediction)]
    speeds = [f for f in figures if isinstance(f, SpeedFigures)]
    tables = Table.grid()
    tables.add_row(_rows(rows))
    tables.add_row("")
    tables.add_row(_summary(rows))
    if skipped := missing_compiler():
        tables.add_row(escape(skipped))
    if open_questions:
        tables.add_row("")
        tables.add_row(_predictions(open_questions))
    if speeds:
        tables.add_row("")
        tables.add_row(_speeds(speeds))
    return tables


def _rows(figures: list[TimingFigures]) -> Table:
    table = Table(box=None, pad_edge=False)
    for column in ("row", "chip", "stream by hand", "setup", "metric"):
        table.add_column(column, overflow="fold")
    for column in ("published", "by hand", "error", "compiled", "error"):
        table.add_column(column, justify="right")
    group = ""
    for f in figures:
        m = f.measurement
        if m.group != group:
            group = m.group
            table.add_row("", "", f"{group}:", end_section=True)
        reasons = [f"by hand not run: {m.left_out}"] if m.left_out else []
        reasons += [f"compiled not run: {f.unmet}"] if f.unmet else []
        table.add_row(
            m.id, m.chip, escape(m.what), "; ".join([m.setup, *reasons]), m.metric, f"{m.value:g}",
            _number(f.model), _percent(f.error), _number(f.compiled), _percent(f.compiled_error),
        )  # fmt: skip
    return table


def _summary(figures: list[TimingFigures]) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("group")
    errors = ("mean error", "largest", "within 10 %")
    for column in ("rows", "by hand", *errors, "compiled", *errors):
        table.add_column(column, justify="right")
    for s in summary(figures):
        table.add_row(s.group, str(s.rows), *_errors(s.hand), *_errors(s.compiled))
    return table


def _predictions(figures: list[Prediction]) -> Table:
    """Rows by experiment, a column for each setting of the number that it would settle."""
    table = Table(box=None, pad_edge=False)
    settings = sorted({setting for f in figures for setting in f.cycles})
    table.add_column("not measured yet: modelled cycles")
    table.add_column("chip")
    for setting in settings:
        table.add_column(f"{figures[0].parameter} {setting:g}", justify="right")
    for f in figures:
        table.add_row(f.what, f.chip, *(_number(f.cycles.get(setting)) for setting in settings))
    return table


def _speeds(figures: list[SpeedFigures]) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("speed of the model")
    for column in ("warp instr.", "a replay", "warp instr./s", "two threads"):
        table.add_column(column, justify="right")
    table.add_column("ns per instr. at 1, 2, 4, 8 times the work", justify="right")
    for column in ("state", "trace", "twice the same"):
        table.add_column(column, justify="right")
    for f in figures:
        size = " ".join(f"{name}={number}" for name, number in f.sizes.items())
        table.add_row(
            f"{f.workload} {f.config} {size}, {f.chip}", f"{f.instructions:,}", f"{f.milliseconds:.1f} ms",
            f"{f.rate / 1e6:.1f} M", f"{f.threads:.1f} x on {f.cores} cores",
            ", ".join(f"{n:.0f}" for n in f.growth), f"{f.state_bytes / 1024:.0f} KiB",
            f"{f.trace_bytes / 1024:.0f} KiB", "yes" if f.same else "NO",
        )  # fmt: skip
    return table


def _errors(errors: Errors | None) -> tuple[str, str, str, str]:
    if errors is None:
        return "-", "-", "-", "-"
    largest = f"{errors.largest:.1f} %" + (f" ({errors.worst})" if errors.largest else "")
    return str(errors.rows), f"{errors.mean:.1f} %", largest, str(errors.near)


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{value:+.1f} %"
