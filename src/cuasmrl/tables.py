"""The tables that commands print."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from cuasmrl.bench.emulator import EmulatorFigures
from cuasmrl.bench.schedule import ScheduleFigures
from cuasmrl.bench.timing import TimingFigures, summary
from cuasmrl.emulate import Outcome
from cuasmrl.simulate import Simulation


def print_outcomes(console: Console, outcomes: list[Outcome]) -> None:
    first = outcomes[0]
    sizes = ", ".join(f"{name} = {size}" for name, size in first.sizes.items())
    console.print(f"{first.workload} on sm_{first.arch}: {sizes}; seed {first.seed}", markup=False)
    table = Table(box=None, pad_edge=False)
    table.add_column("config")
    table.add_column("output")
    for column in (
        "blocks",
        "elements",
        "exact",
        "worst error",
        "of allowed",
        "warp instr.",
        "seconds",
        "lane instr./s",
    ):
        table.add_column(column, justify="right")
    table.add_column("verdict")
    for o in outcomes:
        for output in o.outputs:
            table.add_row(
                o.config, output.name, str(o.blocks), str(output.elements),
                f"{100 * output.exact / max(1, output.elements):.1f} %", f"{output.worst_error:.3g}",
                f"{100 * output.worst_share:.0f} %", f"{o.warp_instructions:,}", f"{o.seconds:.2f}",
                f"{o.lane_rate / 1e6:.0f} M", "ok" if output.failure is None else "DIFFERS",
            )  # fmt: skip
    console.print(table)
    for why in dict.fromkeys(output.bound for o in outcomes for output in o.outputs):
        console.print(f"allowed error: {why}", markup=False)
    for o in outcomes:
        for output in o.outputs:
            if output.failure is not None:
                console.print(f"{o.config}: {output.name} {output.failure}", markup=False)


def print_simulation(console: Console, result: Simulation) -> None:
    shape = " ".join(f"{name}={size}" for name, size in result.sizes.items())
    spread = max(result.cycles) - min(result.cycles)
    console.print(
        f"{result.workload} {result.config} on {result.chip}, {shape}\n"
        f"{result.mean_cycles:,.0f} modelled cycles (mean of {len(result.cycles)} seeds, {spread} apart)\n"
        f"one SM: {result.blocks} blocks, {result.resident} at a time (limit: {result.limit}), "
        f"{result.instructions:,} warp instructions",
        markup=False,
    )
    table = Table(box=None, pad_edge=False)
    for column in ("cycles by reason", "sub-cores", "warps"):
        table.add_column(column, justify="left" if column.startswith("cycles") else "right")
    for name in sorted({*result.reasons, *result.warp_reasons}, key=lambda n: -result.reasons.get(n, 0)):
        shares = (f"{100 * share.get(name, 0):.1f} %" for share in (result.reasons, result.warp_reasons))
        table.add_row(name, *shares)
    console.print(table)
    busy = ", ".join(f"{name} {100 * share:.0f} %" for name, share in result.units.items() if share >= 0.005)
    console.print(f"units held: {busy}", markup=False)
    hot = Table(box=None, pad_edge=False)
    for column in ("hot instructions", "executed", "warp cycles", "mostly"):
        hot.add_column(column, justify="right" if column in ("executed", "warp cycles") else "left")
    for i in result.hot:
        hot.add_row(f"{i.address:05x}  {i.text}", f"{i.executions:,}", f"{i.cycles:,}", i.reason)
    console.print(hot)


def schedule_table(figures: list[ScheduleFigures]) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("kernel (sm_80)")
    for column in ("instr.", "nvdisasm", "load + analysis", "swap + mask", "shift + retime", "check"):
        table.add_column(column, justify="right")
    for f in figures:
        whole = (f"{value:.0f} ms" for value in (f.nvdisasm, f.load))
        moves = f"{1000 * f.swap:.0f} µs", f"{f.shift:.1f} ms", f"{f.check:.0f} ms"
        table.add_row(f.kernel, str(f.instructions), *whole, *moves)
    return table


def emulator_table(figures: list[EmulatorFigures]) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("workload (sm_80)")
    table.add_column("size")
    for column in ("blocks", "warp instr.", "emulator", "interpreter", "ratio", "lane instr./s"):
        table.add_column(column, justify="right")
    for f in figures:
        size = " ".join(f"{name}={number}" for name, number in f.sizes.items())
        table.add_row(
            f"{f.workload} {f.config}", size, str(f.blocks), f"{f.warp_instructions:,}",
            f"{f.emulator_seconds:.2f} s", f"{f.interpreter_seconds:.2f} s", f"{f.ratio:.1f}",
            f"{f.lane_instructions_per_second / 1e6:.0f} M",
        )  # fmt: skip
    return table


def timing_table(figures: list[TimingFigures]) -> Table:
    table = Table(box=None, pad_edge=False)
    for column in ("row", "chip", "stream", "setup", "metric"):
        table.add_column(column, overflow="fold")
    for column in ("published", "model", "error"):
        table.add_column(column, justify="right")
    group = ""
    for f in figures:
        m = f.measurement
        if m.group != group:
            group = m.group
            table.add_row("", "", f"{group}:", end_section=True)
        model = "-" if f.model is None else f"{f.model:.4g}"
        error = "-" if f.error is None else f"{f.error:+.1f} %"
        setup = f"{m.setup}; not run: {m.left_out}" if m.left_out else m.setup
        table.add_row(m.id, m.chip, escape(m.what), setup, m.metric, f"{m.value:g}", model, error)
    table.add_section()
    for s in summary(figures):
        rows = f"{s.rows} rows" + (f", {s.left_out} not run" if s.left_out else "")
        worst = f"largest {s.largest:.1f} %" + (f" ({s.worst})" if s.largest else "")
        table.add_row("", "", s.group, rows, worst, "", "mean", f"{s.mean:.1f} %")
    return table
