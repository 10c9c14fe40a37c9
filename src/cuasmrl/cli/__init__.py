"""The command line. Each command prints what a person wants to see, or JSON with --json."""

import sys
from typing import Annotated

import typer

from cuasmrl import __version__
from cuasmrl.cli import bench, code, doctor, game, machine, replay, run, simulate, store, tour
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
# What follows the program's name is the program's, options included.
app.command(context_settings={"allow_interspersed_args": False})(run.run)
app.command()(doctor.doctor)
app.add_typer(store.app, name="store")
app.add_typer(bench.app, name="bench")
