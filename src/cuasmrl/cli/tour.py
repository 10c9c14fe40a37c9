"""The command that shows everything once."""

from pathlib import Path
from typing import Annotated

import typer

from cuasmrl.cli.console import console
from cuasmrl.cli.display import display


def demo(
    output: Annotated[Path, typer.Option("-o", "--output", help="Where the run goes.")] = Path("demo"),
    seed: Annotated[int, typer.Option("--seed", help="Of the player.")] = 0,
    budget: Annotated[int, typer.Option("--budget", help="Evaluations.", min=1)] = 1500,
) -> None:
    """Compile a kernel, make it faster, prove the result, explain it, and see a broken one refused."""
    from cuasmrl.cli.demo import tour
    from cuasmrl.optimize import Watch

    with display(quiet=False) as shown:
        watch = Watch(shown.stage, shown.choosing, shown.prepared, shown.played)
        tour(console, output, seed, watch, budget)
