"""What was typed wrong, in one sentence with what to do."""

import re
from collections.abc import Sequence
from typing import Any

import typer

from cuasmrl.cli.console import console

PROGRAM = "cuasmrl"
UsageError: Any = typer.BadParameter.__base__
"""Whatever is wrong with the words of a command; of all these errors Typer publishes only one."""


def sentence(message: str, command: Any, words: Sequence[str]) -> str:
    """Typer's message on the words that followed a command, and where to read on."""
    text = " ".join(message.split()).rstrip(".?")
    text = re.sub(r"(^|(?<=[.:] ))[A-Z]", lambda capital: capital[0].lower(), text)
    return f"{text.replace('. ', '; ')}; run `{_path(command, words)} -h`"


def _path(command: Any, words: Sequence[str]) -> str:
    """The command that was meant, with the group it belongs to."""
    path = [PROGRAM]
    for word in words:
        command = getattr(command, "commands", {}).get(word)
        if command is None:
            break
        path.append(word)
    return " ".join(path)


def help_without_command(context: typer.Context) -> None:
    """A group that is named without a command says which there are."""
    if context.invoked_subcommand is None:
        console.print(context.get_help(), markup=False)
