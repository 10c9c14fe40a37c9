"""Simulated fleets as a table."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table

from cuasmrl.bench.fleet import Simulated


def fleet_table(fleets: Sequence[Simulated]) -> Table:
    table = Table()
    head = ("workers", "tasks", "rounds", "evaluations", "hours", "workers busy", "head busy")
    for name in (*head, "network", "journal", "runs"):
        table.add_column(name, justify="right")
    for one in fleets:
        table.add_row(
            f"{one.workers:,}",
            f"{one.tasks:,}",
            str(one.rounds),
            f"{one.evaluations / 1e6:.1f} M",
            f"{one.hours:,.1f}",
            f"{one.busy:.0%}",
            f"{one.head:.2%}",
            _bytes(one.network_bytes),
            _bytes(one.journal_bytes),
            _bytes(one.run_bytes),
        )
    return table


def _bytes(number: int) -> str:
    return f"{number / 1e9:.1f} GB" if number >= 1e9 else f"{number / 1e6:.0f} MB"
