"""The command that learns issue distances."""

from __future__ import annotations

import csv
import dataclasses
import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cuasmrl.cli.console import Json, console, print_json, problems, progress

if TYPE_CHECKING:
    from cuasmrl.binary.sass import Row
    from cuasmrl.schedule.mining import Mined


def mine(
    directory: Annotated[
        Path,
        typer.Argument(help="Searched for cubins, fat binaries, objects and libraries.", show_default=False),
    ],
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Write the table there.")] = None,
    summary: Annotated[
        bool,
        typer.Option(
            "--summary",
            help="Only distances with five witnesses, each with the folder of a library as its source.",
        ),
    ] = False,
    compare: Annotated[
        bool,
        typer.Option(
            "--compare",
            help="List the pairs for which the shipped table answers less than this code shows five times; "
            "status 1 if there are any.",
        ),
    ] = False,
    jobs: Annotated[int, typer.Option("--jobs", help="Processes.", min=1)] = 2,
    as_json: Json = False,
) -> None:
    """Learn minimum issue distances from compiled kernels.

    The table is CSV; each row names its witness.
    """
    from cuasmrl.schedule import mining

    with progress("mining", as_json or output is None) as advance:
        mined = mining.mine(directory, jobs, advance)
    if compare:
        compare_with_shipped(mined, as_json)
        return
    rows = mined.summary if summary else mined.rows
    if as_json:
        print_json({
            "rows": [dataclasses.asdict(row) for row in rows], "cubins": mined.cubins,
            "instructions": mined.instructions, "skipped": [str(one) for one in mined.skipped],
        })  # fmt: skip
        return
    if output is None:
        console.out(_csv(rows), end="")
        return
    write_rows(output, rows)
    console.print(
        f"{len(rows)} rows from {mined.instructions} instructions of {mined.cubins} cubins in {output}",
        markup=False,
    )
    for one in mined.skipped:
        problems.print(f"skipped {one}", markup=False)


def write_rows(path: Path, rows: Sequence[Row]) -> None:
    from cuasmrl.files import write_text

    write_text(path, _csv(rows))


def _csv(rows: Sequence[Row]) -> str:
    from cuasmrl.binary.sass.distances import COLUMNS

    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows([getattr(row, column) for column in COLUMNS] for row in rows)
    return text.getvalue()


def compare_with_shipped(mined: Mined, as_json: bool) -> None:
    from cuasmrl.schedule.mining import below

    found = below(mined.summary)
    if as_json:
        print_json({
            "compared": len(mined.summary), "cubins": mined.cubins, "instructions": mined.instructions,
            "below": [{**dataclasses.asdict(row), "answer": answer} for row, answer in found],
        })  # fmt: skip
    else:
        for row, answer in found:
            consumer = f"{row.consumer} {row.consumer_role}".rstrip()
            console.print(
                f"sm_{row.arch} {row.hazard} {row.file} {row.producer} {row.producer_role} > {consumer}: "
                f"the table says {answer}, seen {row.supporting} times at {row.distance} ({row.witness})",
                markup=False,
            )
        console.print(
            f"{len(mined.summary)} pairs in {mined.instructions} instructions of {mined.cubins} cubins; "
            f"the table answers less for {len(found)}",
            markup=False,
        )
    if found:
        raise typer.Exit(1)
