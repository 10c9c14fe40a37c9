"""The command that learns issue distances."""

import csv
import dataclasses
import io
from pathlib import Path
from typing import Annotated

import typer

from cuasmrl.cli.console import Json, console, print_json, progress


def mine(
    directory: Annotated[Path, typer.Argument(help="Searched for *.cubin.", show_default=False)],
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Write the table there.")] = None,
    jobs: Annotated[int, typer.Option("--jobs", help="Processes.", min=1)] = 2,
    as_json: Json = False,
) -> None:
    """Learn minimum issue distances from compiled kernels.

    The table is CSV; each row names its witness.
    """
    from cuasmrl.binary.sass.distances import COLUMNS
    from cuasmrl.files import write_text
    from cuasmrl.schedule import mining

    with progress("mining", as_json or output is None) as advance:
        mined = mining.mine(directory, jobs, advance)
    if as_json:
        print_json([dataclasses.asdict(row) for row in mined.rows])
        return
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows([getattr(row, column) for column in COLUMNS] for row in mined.rows)
    if output is None:
        console.out(text.getvalue(), end="")
        return
    write_text(output, text.getvalue())
    console.print(
        f"{len(mined.rows)} rows from {mined.instructions} instructions of {mined.cubins} cubins in {output}",
        markup=False,
    )
