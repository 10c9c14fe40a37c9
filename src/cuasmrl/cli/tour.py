"""The command that shows everything once."""

from pathlib import Path
from typing import Annotated

import typer

from cuasmrl.cli.console import console


def demo(
    output: Annotated[Path, typer.Option("-o", "--output", help="Where the cubins go.")] = Path("demo"),
    seed: Annotated[int, typer.Option("--seed", help="Of the random moves.")] = 0,
) -> None:
    """Compile a kernel, read it, reschedule it, prove the result, and see a broken one refused."""
    from cuasmrl.demo import run

    run(console, output, seed)
