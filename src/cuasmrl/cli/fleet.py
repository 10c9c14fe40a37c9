"""The command that tunes everything a program was seen to launch, on many workers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.live import Live
from rich.table import Table

from cuasmrl.cli.agents import complete
from cuasmrl.cli.console import Json, console, print_json, problems
from cuasmrl.cli.store import Root
from cuasmrl.cli.workers import On, Workers, address_of
from cuasmrl.errors import CuasmrlError

if TYPE_CHECKING:
    from cuasmrl.deploy.fleet.head import Fleet, Line
    from cuasmrl.deploy.fleet.pool import Pool

_INTERRUPTED = 130
PLACE = Path("fleet")


def fleet(
    root: Root = None,
    budget: Annotated[int, typer.Option("--budget", help="Evaluations for each kernel on average.")] = 2000,
    slice_: Annotated[
        int, typer.Option("--slice", help="Evaluations between two looks at which kernels gain.")
    ] = 500,
    agent: Annotated[
        str | None,
        typer.Option(
            "--agent",
            metavar="NAME",
            help="Who plays; as in `cuasmrl optimize` by default.",
            autocompletion=complete,
            show_default=False,
        ),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Of the agent.")] = 0,
    device: Annotated[
        str | None,
        typer.Option("--device", help="Without it where each kernel was seen.", show_default=False),
    ] = None,
    workers: Workers = None,
    on: On = None,
    run: Annotated[
        Path, typer.Option("--run", help="Directory of the fleet; one that is there is continued.")
    ] = PLACE,
    as_json: Json = False,
) -> None:
    """Tune everything that is recorded in the store, on many workers, and store what is accepted.

    Evaluations go where the program gains most. A fleet that was stopped or killed goes on where it was.
    """
    from cuasmrl.optimize import default_agent

    given: dict[str, Any] = {"agent": agent or default_agent(), "seed": seed}
    if device is not None:
        given["device"] = device
    found = carried_out(given, budget, slice_, run, root, workers, on, as_json)
    show_fleet(found, run, as_json)


def show_fleet(found: Fleet, run: Path, as_json: bool) -> None:
    if as_json:
        print_json(found.as_dict())
        return
    console.print(table_of(found.lines))
    for line in _summary(found, run):
        console.print(line, markup=False)


def carried_out(
    given: dict[str, Any],
    budget: int,
    slice_: int,
    run: Path,
    root: Path | None,
    workers: int | None,
    on: str | None,
    quiet: bool,
) -> Fleet:
    """With a live table on a terminal, plain lines elsewhere."""
    from cuasmrl.deploy.fleet.head import run_fleet
    from cuasmrl.deploy.store import Store

    store = Store(root)
    if not (store.recorded() or (run / "fleet.json").exists()):
        raise CuasmrlError(
            f"nothing is recorded in {store.root}; run a program with `cuasmrl run --mode record -- ...`"
        )
    pool = _pool(workers, on, Path(store.root), run)
    shown = _Shown(quiet)
    try:
        with shown:
            return run_fleet(store, given, budget, slice_, run, pool, shown.show)
    except KeyboardInterrupt:
        problems.print(f"stopped; the same command with --run {run} goes on", markup=False)
        raise typer.Exit(_INTERRUPTED) from None
    finally:
        pool.close()


def _pool(workers: int | None, on: str | None, store: Path, run: Path) -> Pool:
    from cuasmrl.deploy.fleet.pool import Alone, Processes
    from cuasmrl.gpu.devices.pool import check_workers, cores

    if on is None:
        count = workers if workers is not None else cores()
        check_workers(count)
        return Processes(count) if count > 1 else Alone()
    if workers is not None:
        raise CuasmrlError(
            "--workers are processes of this machine; on Ray its cluster says how many there are"
        )
    from cuasmrl.deploy.fleet.on_ray import OnRay

    run.mkdir(parents=True, exist_ok=True)
    return OnRay(address_of(on), (store, run))


class _Shown:
    """The table while it changes."""

    def __init__(self, quiet: bool) -> None:
        self._quiet = quiet
        self._live = Live(console=problems, transient=True) if problems.is_terminal and not quiet else None

    def __enter__(self) -> _Shown:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._live is not None:
            self._live.stop()

    def show(self, lines: Sequence[Line], stage: str) -> None:
        if self._live is not None:
            self._live.update(table_of(lines))
        elif stage and not self._quiet:
            done = sum(line.spent for line in lines)
            problems.print(f"{stage}: {len(lines)} kernels, {done:,} evaluations so far", markup=False)


def table_of(lines: Sequence[Line]) -> Table:
    """Those that take most of the program's time first."""
    whole = sum(line.time for line in lines) or 1.0
    table = Table()
    for name in ("kernel", "share of time", "headroom", "evaluations", "search", "result"):
        table.add_column(name, justify="left" if name in ("kernel", "result") else "right")
    for line in sorted(lines, key=lambda line: -line.time):
        headroom = line.surveyed.headroom if line.surveyed else 0.0
        search = f"{line.slices[-1].gain:+.2%}" if line.slices else ""
        table.add_row(
            line.job.name,
            f"{line.time / whole:.1%}",
            f"{headroom:.1%}",
            f"{line.spent:,}",
            search,
            _result(line),
        )
    return table


def _result(line: Line) -> str:
    if line.problem is not None:
        return f"not played on: {line.problem}"
    if line.finished is None:
        return ""
    return f"{line.finished.gain:+.2%}, stored" if line.finished.stored else "the original is kept"


def _summary(found: Fleet, run: Path) -> list[str]:
    stored = sum(line.finished is not None and line.finished.stored for line in found.lines)
    failed = sum(line.problem is not None for line in found.lines)
    lines = [
        f"{len(found.lines)} kernels, {stored} with a result in the store"
        + (f", {failed} not played on" if failed else ""),
        f"all launches together, each run once: {found.gain:+.2%}",
        f"fleet: {run}",
    ]
    return lines
