"""Run any program with a ptxas that takes its code from the store."""

import json
import os
import shlex
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from cuasmrl.cli.console import Json, console, print_json, problems
from cuasmrl.errors import CuasmrlError


def run(
    command: Annotated[
        list[str] | None, typer.Argument(help="A program and its arguments.", show_default=False)
    ] = None,
    mode: Annotated[
        str, typer.Option("--mode", help="deploy, record or optimize; nvcc's kernels are only recorded.")
    ] = "deploy",
    virtual: Annotated[
        str | None, typer.Option("--virtual", help="A chip: Triton launches on the virtual GPU.")
    ] = None,
    modelled: Annotated[
        bool, typer.Option("--modelled", help="Also take results that only the virtual GPU has timed.")
    ] = False,
    store: Annotated[
        Path | None, typer.Option("--store", help="A store; by default $CUASMRL_STORE or the user's.")
    ] = None,
    environment: Annotated[
        bool, typer.Option("--env", help="Run nothing, print the environment for `eval`.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No line about what was compiled.")] = False,
    as_json: Json = False,
) -> None:
    """Run a program with the store's cubins behind ptxas: `cuasmrl run -- nvcc ...`, `cuasmrl run -- make`.

    Taken are results that a GPU has measured; with --virtual or --modelled also modelled ones. The program's
    output is its own, so what was compiled is said on standard error, with --json as JSON. The exit status is
    the program's.
    """
    from cuasmrl.deploy.shim import session
    from cuasmrl.deploy.store import Store
    from cuasmrl.deploy.triton.modes import mode_named
    from cuasmrl.gpu.chips import chip

    chosen = mode_named(mode)
    if virtual is not None:
        chip(virtual)
    if environment:
        prepared = session.prepared(Store(store), chosen, virtual, modelled)
        _print_environment(prepared.changes, as_json)
        _print_problems(prepared.problems)
        return
    if not command:
        raise CuasmrlError("name a program to run: cuasmrl run -- nvcc kernel.cu")
    outcome = session.run(command, Store(store), chosen, virtual, modelled)
    _print_problems(outcome.problems)
    if as_json:
        sys.stderr.write(json.dumps(outcome.as_dict()) + "\n")
    elif not quiet:
        problems.print(f"cuasmrl: {outcome.sentence}", markup=False)
    _end_like(outcome.status)


def _print_problems(sentences: tuple[str, ...]) -> None:
    for sentence in sentences:
        problems.print(f"cuasmrl: {sentence}", markup=False)


def _print_environment(changes: Mapping[str, str], as_json: bool) -> None:
    if as_json:
        print_json(changes)
    for name, value in () if as_json else changes.items():
        console.print(f"export {name}={shlex.quote(value)}", markup=False)


def _end_like(status: int) -> None:
    if status < 0:
        # Whoever waits for us sees the signal that ended the program.
        signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    raise typer.Exit(status if status >= 0 else 128 - status)
