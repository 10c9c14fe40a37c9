"""A comparison as text."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from cuasmrl.explain.comparison.changes import Comparison, InstructionChange

_SHOWN = 12


def print_comparison(console: Console, found: Comparison) -> None:
    console.print(f"{found.kernel} on {found.chip}, modelled cycles", markup=False)
    console.print(_totals(found))
    console.print(_verdict(found), markup=False)
    if not found.reasons:
        return
    console.print(_reasons(found))
    shown = found.instructions[:_SHOWN]
    console.print(_instructions(shown))
    if len(found.instructions) > len(shown):
        console.print(f"and {len(found.instructions) - len(shown)} more with smaller changes")
    if found.sentences:
        console.print("in words")
    for sentence in found.sentences:
        console.print(f"  {sentence}", markup=False)


def _totals(found: Comparison) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("schedule")
    for column in ("mean", "range", "seeds"):
        table.add_column(column, justify="right")
    for timed in (found.before, found.after):
        extent = f"{min(timed.cycles):,} to {max(timed.cycles):,}"
        table.add_row(escape(timed.name), f"{timed.mean_cycles:,.1f}", extent, str(len(timed.cycles)))
    return table


def _verdict(found: Comparison) -> str:
    share = 100 * found.difference / found.before.mean_cycles
    seeds = len(found.before.cycles)
    changed = f"{found.moved} instructions moved, {found.edited} with other control bits"
    if not found.difference:
        return f"no difference; {changed}"
    return (
        f"{found.difference:+,.1f} cycles ({share:+.2f} %), faster in {found.faster_seeds} of {seeds} seeds; "
        + changed
    )


def _reasons(found: Comparison) -> Table:
    """The SM's cycles, each sub-core's under one name: the column of changes sums to the difference."""
    table = Table(box=None, pad_edge=False)
    table.add_column("cycles by reason")
    for column in ("before", "after", "change"):
        table.add_column(column, justify="right")
    for reason in found.reasons:
        table.add_row(
            reason.reason, f"{reason.before:,.1f}", f"{reason.after:,.1f}", f"{reason.change:+,.1f}"
        )
    table.add_row("sum", "", "", f"{sum(reason.change for reason in found.reasons):+,.1f}")
    return table


def _instructions(changes: tuple[InstructionChange, ...]) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("instruction", overflow="fold")
    table.add_column("address")
    for column in ("warp cycles lost", "change"):
        table.add_column(column, justify="right")
    table.add_column("mostly")
    for c in changes:
        address = f"{c.address_before:05x}"
        if c.address_after != c.address_before:
            address += f" > {c.address_after:05x} ({c.positions:+d})"
        lost = f"{c.lost_before:,.0f} > {c.lost_after:,.0f}"
        mostly = f"{c.reason} {c.reason_change:+,.0f}"
        table.add_row(escape(c.text), address, lost, f"{c.change:+,.0f}", mostly)
    return table
