"""The commands that measure what works on code: schedules, checker, emulator."""

from pathlib import Path
from typing import Annotated

import typer

from cuasmrl.cli.bench.shared import app, show
from cuasmrl.cli.console import Json, console, print_json, progress


@app.command()
def schedule(
    size: Annotated[
        list[int] | None,
        typer.Option("--size", help="Instructions of large kernels; repeat for several.", min=1),
    ] = None,
    seconds: Annotated[
        float, typer.Option("--seconds", help="Processor time for one large kernel.", min=1)
    ] = 600,
    as_json: Json = False,
) -> None:
    """Times of reading, moving and checking.

    On the largest config of each published workload; then, in processor time, on kernels of growing size.
    """
    from cuasmrl.bench.large import SIZES, large
    from cuasmrl.bench.schedule import schedule as measure
    from cuasmrl.cli.tables import large_table, schedule_table

    with progress("measuring", as_json) as advance:
        published = measure(advance)
    if not as_json:
        console.print(schedule_table(published))
    with progress("measuring large kernels", as_json) as advance:
        figures = large(advance, size or SIZES, seconds)
    if as_json:
        print_json(
            {
                "published": [figure.as_dict() for figure in published],
                "large": [figure.as_dict() for figure in figures],
            }
        )
    else:
        console.print(large_table(figures))


@app.command()
def freedom(
    directory: Annotated[Path, typer.Argument(help="Searched for cubins.", exists=True, file_okay=False)],
    as_json: Json = False,
) -> None:
    """What may move in loops with warpgroup products or copies by an engine."""
    from cuasmrl.bench.freedom import freedom as measure
    from cuasmrl.bench.freedom import freedom_table

    with progress("reading", as_json) as advance:
        found = measure(directory, advance)
    if as_json:
        print_json([one.as_dict() for one in found])
    else:
        console.print(freedom_table(found))


@app.command()
def vendor(
    directory: Annotated[
        Path, typer.Argument(help="With wheels in its folder `wheels`.", show_default=False)
    ],
    wheel: Annotated[
        list[str] | None, typer.Option("--wheel", help="Only these; repeat for several.")
    ] = None,
    arch: Annotated[
        list[int] | None, typer.Option("--arch", help="Only these chips, e.g. 80; repeat for several.")
    ] = None,
    instructions: Annotated[
        int, typer.Option("--instructions", help="Of each wheel and chip, by whole kernels.", min=1)
    ] = 12_000,
    largest: Annotated[
        int | None, typer.Option("--largest", help="Leave out kernels with more instructions.", min=1)
    ] = None,
    seconds: Annotated[
        float, typer.Option("--seconds", help="Processor time after which a kernel is slow.", min=1)
    ] = 60,
    seed: Annotated[int, typer.Option("--seed", help="Of sample and schedules.")] = 0,
    keep: Annotated[
        Path | None,
        typer.Option("--keep", help="Rows go to this file; those in it are not made again."),
    ] = None,
    mine: Annotated[
        Path | None,
        typer.Option(
            "--mine",
            help="Instead: mine the sample, write the summary of its distances to this file, and compare the "
            "shipped table with it.",
        ),
    ] = None,
    jobs: Annotated[int, typer.Option("--jobs", help="Processes.", min=1)] = 2,
    as_json: Json = False,
) -> None:
    """Kernels of public wheels: written unchanged, checked, linted, rescheduled at random."""
    from cuasmrl import workloads

    if mine is not None:
        from cuasmrl.bench.vendor.evidence import evidence
        from cuasmrl.cli.mine import compare_with_shipped, write_rows

        with progress("mining", as_json) as advance:
            mined = evidence(directory, instructions, seed, advance, wheel, arch or workloads.ARCHS, jobs)
        write_rows(mine, mined.summary)
        compare_with_shipped(mined, as_json)
        return
    from cuasmrl.bench.vendor.campaign import Effort, campaign
    from cuasmrl.bench.vendor.examination import Depth
    from cuasmrl.bench.vendor.table import findings, vendor_table

    effort = Effort(instructions, largest, Depth(seconds=seconds), seed)
    with progress("examining", as_json) as advance:
        rows = campaign(directory, effort, advance, wheel, arch or workloads.ARCHS, keep, jobs)
    if as_json:
        print_json([row.as_dict() for row in rows])
        return
    console.print(vendor_table(rows))
    for line in findings(rows):
        console.print(line, markup=False)


@app.command()
def emulator(as_json: Json = False) -> None:
    """The emulator beside Triton's interpreter."""
    from cuasmrl.bench.emulator import emulator as measure
    from cuasmrl.cli.tables import emulator_table

    show(measure, emulator_table, as_json)
