"""`optimize --recorded`: one kernel of the store after the other."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from cuasmrl.cli.console import console, print_json, problems
from cuasmrl.cli.display import display
from cuasmrl.cli.fleet import PLACE, carried_out, show_fleet
from cuasmrl.cli.report import report_of
from cuasmrl.errors import CuasmrlError

if TYPE_CHECKING:
    from cuasmrl.deploy.recorded import Outcome

_INTERRUPTED = 130
_OWN = ("source", "config", "sizes", "launch", "kernel")
"""Recorded kernels bring these with them."""


def optimize_recorded(
    given: dict[str, Any],
    runs: Path | None,
    workers: int | None = None,
    on: str | None = None,
    as_json: bool = False,
) -> None:
    from cuasmrl.deploy import recorded
    from cuasmrl.deploy.store import Store
    from cuasmrl.optimize import RUNS, Watch

    stray = next((name for name in _OWN if name in given), None)
    if stray is not None:
        raise CuasmrlError(f"--recorded plays on what is in the store, so a {stray} cannot be given as well")
    if workers is not None or on is not None:
        _on_workers(given, runs or PLACE, workers, on, as_json)
        return
    store = Store()
    outcomes: list[Outcome] = []
    try:
        with display(as_json) as shown:
            watch = Watch(shown.stage, shown.choosing, shown.prepared, shown.played)
            for outcome in recorded.optimize_recorded(store, given, runs or RUNS, watch):
                outcomes.append(outcome)
                page = report_of(outcome.found) if outcome.found is not None else None
                if not as_json:
                    _print(outcome, page)
    except KeyboardInterrupt:
        problems.print("stopped; what is done is in the store, the rest stays recorded", markup=False)
        raise typer.Exit(_INTERRUPTED) from None
    if as_json:
        print_json([outcome.as_dict() for outcome in outcomes])
    else:
        console.print(_sum(outcomes, store.root), markup=False)


def _on_workers(given: dict[str, Any], place: Path, workers: int | None, on: str | None, quiet: bool) -> None:
    """A fleet in which every kernel gets the same, in one slice."""
    from cuasmrl.optimize.request import DEFAULT_BUDGET, default_agent

    asked = {"agent": default_agent(), "seed": 0, **given}
    budget = int(asked.pop("budget", DEFAULT_BUDGET))
    found = carried_out(asked, budget, budget, place, None, workers, on, quiet)
    show_fleet(found, place, quiet)


def _print(outcome: Outcome, page: Path | None) -> None:
    found = outcome.found
    named = f"{outcome.kernel or 'a cubin'} ({outcome.key[:12]})"
    if found is None:
        console.print(f"{named}: not played on: {outcome.problem}", markup=False)
        return
    lines = [
        f"{named}: {found.verdict.sentence}",
        f"  {found.evaluations:,} evaluations by {found.config.agent} on {found.config.device}, "
        f"{_launches(outcome.launches)}",
        f"  {found.verdict.modelled}",
        *(f"  {line}" for line in found.verdict.lines()),
        f"  run: {found.run}",
    ]
    for line in lines:
        console.print(line, markup=False)
    if page is not None:
        console.print(f"  report: {page}", markup=False)


def _launches(number: int) -> str:
    return "1 launch" if number == 1 else f"{number} launches"


def _sum(outcomes: list[Outcome], root: Path) -> str:
    if not outcomes:
        return f"nothing is recorded in {root}; run a program with `cuasmrl run --mode record -- ...`"
    stored = sum(outcome.entry is not None for outcome in outcomes)
    return f"{len(outcomes)} recorded, {stored} with a result in {root}"
