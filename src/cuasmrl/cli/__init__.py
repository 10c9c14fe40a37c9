"""The command line. Each command prints what a person wants to see, or JSON with --json."""

import sys
from typing import Annotated

import typer

from cuasmrl import __version__
from cuasmrl.cli import bench, code, game, machine, replay, simulate, tour
from cuasmrl.cli.console import console, problems
from cuasmrl.errors import CuasmrlError

app = typer.Typer(no_args_is_help=True, add_completion=False, rich_markup_mode=None, help=__doc__)


def main() -> None:
    """Entry point: every expected failure is one sentence and exit status 2."""
    try:
        app()
    except CuasmrlError as error:
        problems.print(f"error: {error}", markup=False)
        sys.exit(2)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(0)


@app.callback(invoke_without_command=True)
def root(version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False) -> None:
    if version:
        console.print(f"cuasmrl {__version__}")
        raise typer.Exit


# In the order in which --help lists them.
for command in (
    tour.demo,
    game.optimize,
    replay.replay,
    code.disasm,
    code.check,
    code.lint,
    code.mine,
    machine.workloads,
    machine.emulate,
    simulate.simulate,
):
    app.command()(command)
app.add_typer(bench.app, name="bench")
