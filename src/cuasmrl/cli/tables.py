"""The tables that commands print."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from cuasmrl.bench.emulator import EmulatorFigures
from cuasmrl.bench.large import STAGES, LargeFigures, growth
from cuasmrl.bench.schedule import ScheduleFigures
from cuasmrl.gpu.simulation import Simulation
from cuasmrl.workloads.emulation import Outcome

_BOUNDS_SHOWN = 8
_SMALLEST_CHANGE = 0.005


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
    spread = max(result.cycles) - min(result.cycles)
    console.print(
        f"{result.mean_cycles:,.0f} modelled cycles (mean of {len(result.cycles)} seeds, {spread} apart)\n"
        f"one SM: {result.blocks} blocks, {result.resident} at a time (limit: {result.limit}), "
        f"{result.instructions:,} warp instructions",
        markup=False,
    )
    table = _columns("cycles by reason", "sub-cores", "warps")
    for name in sorted({*result.reasons, *result.warp_reasons}, key=lambda n: -result.reasons.get(n, 0)):
        shares = (f"{100 * share.get(name, 0):.1f} %" for share in (result.reasons, result.warp_reasons))
        table.add_row(name, *shares)
    console.print(table)
    busy = ", ".join(f"{name} {100 * share:.0f} %" for name, share in result.units.items() if share >= 0.005)
    console.print(f"units held: {busy}", markup=False)
    console.print(_bounds_table(result))
    console.print(_counterfactuals_table(result))
    hot = _columns("hot instructions", "executed", "warp cycles", "slack", "mostly")
    for i in result.hot:
        text = escape(f"{i.address:05x}  {i.text}")
        hot.add_row(text, f"{i.executions:,}", f"{i.cycles:,}", f"{i.slack:.0f}", i.reason)
    console.print(hot)


def _bounds_table(result: Simulation) -> Table:
    """The work for each resource, and how far the simulation is above what it needs."""
    table = _columns("lower bounds of any schedule", "busy", "of total", "bound", "of total")
    for bound in result.bounds[:_BOUNDS_SHOWN]:
        busy, least = (f"{100 * n / result.mean_cycles:.1f} %" for n in (bound.busy, bound.cycles))
        table.add_row(bound.resource, f"{bound.busy:,.0f}", busy, f"{bound.cycles:,}", least)
    return table


def _counterfactuals_table(result: Simulation) -> Table:
    table = _columns("if this were free", "cycles", "change", "")
    hidden = 0
    for one in result.counterfactuals:
        if abs(one.change) < _SMALLEST_CHANGE:
            hidden += 1
            continue
        remark = "would not compute the same" if one.is_fiction else ""
        table.add_row(one.mechanism, f"{one.cycles:,.0f}", f"{100 * one.change:+.1f} %", remark)
    if hidden:
        table.add_row(f"{hidden} others", "", f"< {100 * _SMALLEST_CHANGE:.1f} %", "")
    return table


def _columns(first: str, *others: str) -> Table:
    """A table with text in the first column and numbers in the others, but for remarks."""
    table = Table(box=None, pad_edge=False)
    table.add_column(first)
    for column in others:
        table.add_column(column, justify="left" if column in ("", "mostly") else "right")
    return table


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


def large_table(figures: list[LargeFigures]) -> Table:
    """A row for each size, and for each shape how the last grew against the first: 1 is linear."""
    table = Table(box=None, pad_edge=False)
    table.add_column("processor time (sm_80)")
    for column in (
        "instr.",
        "blocks",
        "load",
        "board",
        "reassigned",
        "lint",
        "check",
        "swap",
        "shift",
        "memory",
    ):
        table.add_column(column, justify="right")
    for shape in dict.fromkeys(f.shape for f in figures):
        alike = [f for f in figures if f.shape == shape]
        for f in alike:
            times = (_seconds(getattr(f, stage)) for stage in STAGES[:-2])
            moves = ("" if time is None else f"{1000 * time:.2f} ms" for time in (f.swap, f.shift))
            memory = "" if f.megabytes is None else f"{f.megabytes:,.0f} MB"
            table.add_row(shape, f"{f.instructions:,}", f"{f.blocks:,}", *times, *moves, memory)
        ratios = (growth(alike, stage) for stage in STAGES[:-2])
        texts = ("" if ratio is None else f"{ratio:.2f}" for ratio in ratios)
        table.add_row("  growth per instruction", "", "", *texts)
    return table


def _seconds(seconds: float | None) -> str:
    return "not in time" if seconds is None else f"{seconds:.2f} s"


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
