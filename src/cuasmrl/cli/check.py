"""The command that proves."""

from pathlib import Path
from typing import Annotated

import typer

from cuasmrl.cli.console import Json, console, print_json


def check(
    original: Annotated[Path, typer.Argument(help="The cubin as compiled.", show_default=False)],
    candidate: Annotated[Path, typer.Argument(help="The rescheduled cubin.", show_default=False)],
    as_json: Json = False,
) -> None:
    """Prove a rescheduled cubin as safe as the original.

    Exit status 1 if it is not.
    """
    from cuasmrl.binary.cubin import Cubin
    from cuasmrl.checker import Checker, Refusal

    try:
        certificate = Checker(Cubin.load(original)).check(Cubin.load(candidate))
    except Refusal as refusal:
        if as_json:
            print_json(refusal.as_dict())
        else:
            console.print(f"refused ({refusal.rule}): {refusal}", markup=False)
        raise typer.Exit(1) from None
    if as_json:
        print_json(certificate.as_dict())
        return
    console.print(f"certified: {candidate} is as safe as {original}", markup=False)
    for name, proved in certificate.proved.items():
        facts = ", ".join(f"{count} {kind}" for kind, count in proved.items())
        console.print(f"  {name}: {facts}", markup=False)
