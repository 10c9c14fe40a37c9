"""What the commands that measure have in common."""

from collections.abc import Callable
from typing import Annotated, Any

import typer
from rich.table import Table

from cuasmrl.cli.console import console, print_json, progress

app = typer.Typer(help="Measure on this machine, and print the table.")

Changed = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="A number of the chips that is different in this run, as warp_choice=0; repeat for several.",
    ),
]


def show(
    measure: Callable[[Callable[[int, int], None]], list[Any]],
    tabulate: Callable[[list[Any]], Table],
    as_json: bool,
) -> None:
    with progress("measuring", as_json) as advance:
        figures = measure(advance)
    if as_json:
        print_json([figure.as_dict() for figure in figures])
    else:
        console.print(tabulate(figures))
