"""The command that measures."""

from collections.abc import Callable
from typing import Annotated, Any

import typer
from rich.table import Table

from cuasmrl.cli.console import Json, console, print_json, progress
from cuasmrl.errors import CuasmrlError


def bench(
    what: Annotated[
        str,
        typer.Argument(
            help="schedule: reading, moving, checking. emulator: beside Triton's interpreter. "
            "timing: the SM model beside published measurements."
        ),
    ] = "schedule",
    as_json: Json = False,
) -> None:
    """Measure on this machine, and print the table."""
    from cuasmrl.bench.emulator import emulator
    from cuasmrl.bench.schedule import schedule
    from cuasmrl.bench.timing import timing
    from cuasmrl.tables import emulator_table, schedule_table, timing_table

    benchmarks: dict[str, tuple[Callable[..., list[Any]], Callable[[list[Any]], Table]]] = {
        "schedule": (schedule, schedule_table),
        "emulator": (emulator, emulator_table),
        "timing": (timing, timing_table),
    }
    if what not in benchmarks:
        raise CuasmrlError(f"there is no benchmark {what!r}; choose {' or '.join(benchmarks)}")
    measure, tabulate = benchmarks[what]
    with progress("measuring", as_json) as advance:
        figures = measure(advance)
    if as_json:
        print_json([figure.as_dict() for figure in figures])
    else:
        console.print(tabulate(figures))
