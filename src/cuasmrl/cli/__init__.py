"""Makes the SASS schedule of CUDA kernels faster, and proves that they compute the same.

Every command takes --json and -h.
"""

import logging
import sys
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup
from typer.main import get_command

from cuasmrl import __version__
from cuasmrl.cli import (
    bench,
    check,
    demo,
    disasm,
    doctor,
    emulate,
    fleet,
    lint,
    mine,
    optimize,
    play,
    replay,
    report,
    run,
    simulate,
    store,
    train,
    usage,
    workloads,
)
from cuasmrl.cli.agents import ListsAgents
from cuasmrl.cli.console import console, problems
from cuasmrl.errors import CuasmrlError

_ORDER = (
    "demo", "optimize", "replay", "report", "play",
    "emulate", "simulate", "disasm", "check", "lint",
    "run", "store", "doctor", "fleet",
    "train", "bench", "mine", "workloads",
)  # fmt: skip
"""Of the commands in --help: the main job, one kernel examined, into compilers, for those who carry on."""


class _InOrder(TyperGroup):
    def list_commands(self, ctx: Any) -> list[str]:
        return sorted(self.commands, key=_ORDER.index)


app = typer.Typer(
    cls=_InOrder,
    help=__doc__,
    invoke_without_command=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main() -> None:
    """Entry point: whatever is wrong with the input is one sentence and exit status 2."""
    command = get_command(app)
    _show_log()
    try:
        status = command(prog_name=usage.PROGRAM, standalone_mode=False)
    except CuasmrlError as error:
        _refuse(str(error))
    except usage.UsageError as error:
        _refuse(usage.sentence(error.format_message(), command, sys.argv[1:]))
    sys.exit(status)


def _show_log() -> None:
    """Compilation takes long and shows no progress, so it is said where problems are."""

    class Console(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            problems.print(record.getMessage(), markup=False)

    log = logging.getLogger("cuasmrl.compiled")
    log.setLevel(logging.INFO)
    log.addHandler(Console())


def _refuse(sentence: str) -> NoReturn:
    problems.print(f"error: {sentence}", markup=False)
    sys.exit(2)


@app.callback()
def root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    if version:
        console.print(f"cuasmrl {__version__}")
        raise typer.Exit
    usage.help_without_command(context)


for command in (
    demo.demo,
    play.play,
    replay.replay,
    report.report,
    emulate.emulate,
    simulate.simulate,
    disasm.disasm,
    check.check,
    lint.lint,
    doctor.doctor,
    fleet.fleet,
    train.train,
    mine.mine,
    workloads.workloads,
):
    app.command()(command)
app.command(cls=ListsAgents)(optimize.optimize)
# What follows the program's name is the program's, options included.
app.command(context_settings={"allow_interspersed_args": False})(run.run)
for name, group in (("store", store.app), ("bench", bench.app)):
    app.add_typer(
        group,
        name=name,
        callback=usage.help_without_command,
        invoke_without_command=True,
        no_args_is_help=False,
    )
