"""The command that makes reports of runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cuasmrl.cli.console import Json, console, print_json, problems, progress
from cuasmrl.errors import CuasmrlError

if TYPE_CHECKING:
    from cuasmrl.explain.report.facts import Facts
    from cuasmrl.optimize import Optimized

LIMIT = 60.0
REPORT = "report.html"
_COMPARISON = Path("comparison.html")


def report(
    runs: Annotated[
        list[Path],
        typer.Argument(metavar="RUN", help="Directories of runs of `cuasmrl optimize`.", show_default=False),
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            help="The file; by default report.html in the run, comparison.html for several runs.",
            show_default=False,
        ),
    ] = None,
    svg: Annotated[
        str | None,
        typer.Option("--svg", metavar="loop|curve|cycles", help="One picture of one run instead of a page."),
    ] = None,
    limit: Annotated[
        float,
        typer.Option(
            "--limit",
            help="Seconds for finding the moves that mattered, where `replay` has not; 0: none.",
            min=0,
        ),
    ] = LIMIT,
    as_json: Json = False,
) -> None:
    """A page about a run, or one that compares runs."""
    if svg is not None:
        _draw(runs, svg, output, as_json)
        return
    target = output or (runs[0] / REPORT if len(runs) == 1 else _COMPARISON)
    if output is not None and not output.absolute().parent.is_dir():
        # Better now than after a minute of replays.
        raise CuasmrlError(f"cannot write {output}: there is no directory {output.parent}; make it first")
    found = [_facts(run, limit, as_json) for run in runs]
    _write(found, target)
    if as_json:
        print_json({"report": str(target), "runs": [facts.as_dict() for facts in found]})
    else:
        console.print(f"report: {target}", markup=False)


def report_of(found: Optimized) -> Path | None:
    """The report of a run that has just ended, without the search for the moves that mattered."""
    from cuasmrl.explain.report.facts import NEEDS_REPLAYS, facts_of
    from cuasmrl.gpu.traced import UntracedKernel

    target, kernel = found.run / REPORT, found.subject.kernel
    if isinstance(kernel, UntracedKernel):
        problems.print(f"the report is without {NEEDS_REPLAYS}: {kernel.refusal}", markup=False)
    try:
        _write([facts_of(found.run, kernel, limit=0)], target)
    except CuasmrlError as error:
        problems.print(f"no report: {error}", markup=False)
        return None
    return target


def _facts(run: Path, limit: float, quiet: bool) -> Facts:
    from cuasmrl.explain.report.facts import facts_of

    if not run.is_dir():
        raise CuasmrlError(f"{run} is no directory; name a run of `cuasmrl optimize`")
    with progress(f"explaining {run}", quiet) as advance:
        return facts_of(run, limit=limit, advance=advance)


def _write(found: Sequence[Facts], target: Path) -> None:
    from cuasmrl.explain.report.page import page_of
    from cuasmrl.explain.report.several import comparison_page
    from cuasmrl.files import write_text

    write_text(target, page_of(found[0]) if len(found) == 1 else comparison_page(found))


def _draw(runs: Sequence[Path], kind: str, output: Path | None, as_json: bool) -> None:
    from cuasmrl.explain.report.pictures import PICTURES, picture
    from cuasmrl.files import write_text

    if len(runs) != 1:
        raise CuasmrlError("--svg draws one run; name one")
    if kind not in PICTURES:
        raise CuasmrlError(f"--svg is {', '.join(PICTURES[:-1])} or {PICTURES[-1]}, not {kind!r}")
    facts = _facts(runs[0], 0, quiet=True)
    target = output or runs[0] / f"{kind}.svg"
    write_text(target, picture(kind, facts))
    if as_json:
        print_json({"picture": str(target), "run": facts.as_dict()})
    else:
        console.print(f"picture: {target}", markup=False)
