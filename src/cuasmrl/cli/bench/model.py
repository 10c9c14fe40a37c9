"""The commands that hold the model against what is known."""

from pathlib import Path
from typing import Annotated

import typer

from cuasmrl.cli.bench.shared import Changed, app, show
from cuasmrl.cli.console import Json, console, print_json, progress


@app.command()
def timing(
    changed: Changed = None,
    device: Annotated[
        str | None,
        typer.Option(
            "--device", help="Run the experiments on a GPU as well, such as cuda:0.", show_default=False
        ),
    ] = None,
    calibration: Annotated[
        Path,
        typer.Option("--calibration", help="With --device: all it measured goes to this file."),
    ] = Path("calibration.json"),
    as_json: Json = False,
) -> None:
    """The SM model beside published measurements.

    With a GPU: the same experiments there, how long LDSM waits behind LDGSTS, the order of random schedules.
    """
    if device is not None:
        _calibrate(device, calibration, as_json)
        return
    from cuasmrl.bench.timing import parsed_changes
    from cuasmrl.bench.timing import timing as measure
    from cuasmrl.bench.timing_tables import timing_table

    changes = parsed_changes(changed or ())
    show(lambda advance: measure(advance, changes), timing_table, as_json)


@app.command()
def kernels(
    only: Annotated[
        list[str] | None,
        typer.Option("--only", help="An id, or how a group, series or kernel begins; repeat for several."),
    ] = None,
    chip: Annotated[
        list[str] | None, typer.Option("--chip", help="Of this chip; repeat for several.")
    ] = None,
    keep: Annotated[
        Path | None, typer.Option("--keep", help="Rows go to this file; those in it are not run again.")
    ] = None,
    changed: Changed = None,
    as_markdown: Annotated[bool, typer.Option("--markdown", help="Tables for a page.")] = False,
    as_json: Json = False,
) -> None:
    """Whole kernels: modelled time beside public figures.

    With the geometric mean of the deviation, the worst row and the rank correlation, by group and series.
    """
    from cuasmrl.bench.kernels.comparison import compare
    from cuasmrl.bench.kernels.figures import chosen
    from cuasmrl.bench.kernels.summary import summary
    from cuasmrl.bench.kernels.table import (
        kernels_markdown,
        kernels_table,
        summary_markdown,
        summary_table,
    )
    from cuasmrl.bench.timing import parsed_changes

    wanted, changes = chosen(only or (), chip or ()), parsed_changes(changed or ())
    with progress("running kernels", as_json or as_markdown) as advance:
        rows = compare(wanted, advance, keep, changes)
    summaries = summary(rows)
    if as_json:
        print_json({
            "rows": [row.as_dict() for row in rows],
            "summaries": [one.as_dict() for one in summaries],
        })  # fmt: skip
        return
    if as_markdown:
        typer.echo(f"{summary_markdown(summaries)}\n\n{kernels_markdown(rows)}")
        return
    console.print(kernels_table(rows))
    console.print()
    console.print(summary_table(summaries))


@app.command()
def latencies(
    code: Annotated[
        Path | None,
        typer.Option(
            "--code",
            help="Look for pairs in the cubins and libraries below this folder that stand closer instead; "
            "status 1 if there are any. With --json also how many pairs each number decides about.",
        ),
    ] = None,
    jobs: Annotated[int, typer.Option("--jobs", help="Processes.", min=1)] = 2,
    as_json: Json = False,
) -> None:
    """The table of distances beside the sanitizer's latencies.

    With every pair for which the table answers less than the model needs.
    """
    from cuasmrl.bench.latencies import compare_code, compare_table, latencies_table, witnesses

    if code is not None:
        with progress("mining", as_json) as advance:
            mined, closer = compare_code(code, jobs, advance)
        if as_json:
            print_json({
                "cubins": mined.cubins, "instructions": mined.instructions,
                "closer": [one.as_dict() for one in closer],
                "numbers": [one.as_dict() for one in witnesses(mined)],
            })  # fmt: skip
        else:
            for one in closer:
                console.print(str(one), markup=False)
            console.print(
                f"{len(closer)} pairs of {len(mined.rows)} in {mined.instructions} instructions of "
                f"{mined.cubins} cubins stand closer than the latencies allow",
                markup=False,
            )
        if closer:
            raise typer.Exit(1)
        return
    comparisons = compare_table()
    if as_json:
        print_json([one.as_dict() for one in comparisons])
        return
    console.print(latencies_table(comparisons))
    for one in (one for comparison in comparisons for one in comparison.below):
        console.print(str(one), markup=False)


def _calibrate(device: str, file: Path, as_json: bool) -> None:
    from cuasmrl.bench.hardware.calibration import calibrate
    from cuasmrl.bench.hardware.table import calibration_table

    with progress("measuring", as_json) as advance:
        found = calibrate(device, advance)
    found.write(file)
    if as_json:
        print_json(found.as_dict())
        return
    console.print(calibration_table(found))
    console.print(f"written to {file}", markup=False)
