"""What the commands share: two consoles, progress, JSON, and options that several take."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from cuasmrl.errors import CuasmrlError

if TYPE_CHECKING:
    from cuasmrl.gpu.devices import Objective
    from cuasmrl.gpu.timing import L2
    from cuasmrl.schedule import Scoreboards

# Piped output is read by programs and in logs: no reason to fold it at 80 columns.
console = Console(highlight=False, emoji=False, soft_wrap=True, width=None if sys.stdout.isatty() else 160)
problems = Console(stderr=True, highlight=False, emoji=False, soft_wrap=True)

Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
CubinFile = Annotated[Path, typer.Argument(help="A cubin file.", show_default=False)]
KernelName = Annotated[str | None, typer.Option("--kernel", help="Only this kernel.", show_default=False)]
LaunchFile = Annotated[
    Path | None, typer.Option("--launch", help="Launch file of a cubin: grid, block, arguments.")
]
ChosenKernel = Annotated[
    str | None, typer.Option("--kernel", help="The kernel, where a cubin holds several.")
]
Settings = Annotated[
    list[str] | None, typer.Option("--set", help="A size such as M=512; repeat for several.")
]

L2Name = Annotated[
    str | None,
    typer.Option(
        "--l2",
        help="What the L2 cache of the virtual GPU holds at the start: cold (the default), nothing of the "
        "kernel's data; warm, all of it; again, what the same launch left there.",
        show_default=False,
    ),
]

ScoreboardsName = Annotated[
    str | None,
    typer.Option(
        "--scoreboards",
        help="kept (the default): they travel with their instructions; reassigned: moves may change them.",
        show_default=False,
    ),
]


ObjectiveName = Annotated[
    str | None,
    typer.Option(
        "--objective",
        help="What the virtual GPU scores schedules by: robust (the default), the mean over chips drawn from "
        "the uncertainty of its numbers; nominal, the chip as its file has it.",
        show_default=False,
    ),
]


def objective_named(name: str | None) -> Objective:
    from cuasmrl.gpu.devices import Objective

    if name not in (None, *Objective):
        raise CuasmrlError(f"--objective is {' or '.join(Objective)}, not {name!r}")
    return Objective(name or Objective.ROBUST)


def l2_named(name: str | None) -> L2:
    from cuasmrl.gpu.timing import L2

    if name not in (None, *L2):
        raise CuasmrlError(f"--l2 is one of {', '.join(L2)}, not {name!r}")
    return L2(name or L2.COLD)


def scoreboards_named(name: str | None) -> Scoreboards:
    from cuasmrl.schedule import Scoreboards

    if name not in (None, *Scoreboards):
        raise CuasmrlError(f"--scoreboards is {' or '.join(Scoreboards)}, not {name!r}")
    return Scoreboards(name or Scoreboards.KEPT)


def print_json(value: Any) -> None:
    json.dump(value, sys.stdout, indent=1, default=str)
    sys.stdout.write("\n")


@contextmanager
def progress(what: str, quiet: bool) -> Iterator[Callable[[int, int], None]]:
    """A bar on a terminal, a line every tenth elsewhere, nothing where output is data."""
    if quiet:
        yield lambda done, total: None
    elif problems.is_terminal:
        columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        with Progress(*columns, console=problems, transient=True) as bar:
            task = bar.add_task(what, total=None)
            yield lambda done, total: bar.update(task, completed=done, total=total)
    else:
        shown = -1

        def line(done: int, total: int) -> None:
            nonlocal shown
            tenth = 10 * done // total
            if tenth != shown:
                shown = tenth
                problems.print(f"{what}: {done} of {total}")

        yield line
