"""Look after the surroundings: compilers, hooks, store, caches."""

from typing import Annotated

import typer

from cuasmrl.cli.console import Json, console, print_json
from cuasmrl.cli.store import Root
from cuasmrl.errors import CuasmrlError

_MARKS = {"ok": "  ", "note": "- ", "action": "! "}


def doctor(
    root: Root = None,
    gpu: Annotated[
        bool, typer.Option("--gpu", help="Try everything that play on a real GPU needs, instead.")
    ] = False,
    device: Annotated[
        str | None,
        typer.Option("--device", help="With --gpu: which one; cuda:0 by default.", show_default=False),
    ] = None,
    lock_clocks: Annotated[
        bool, typer.Option("--lock-clocks", help="With --gpu: lock the SM clock, as root.")
    ] = False,
    as_json: Json = False,
) -> None:
    """What is installed, which ptxas each framework uses, whether stored results are used, and what to do.

    Exit status 1 if something needs action.
    """
    from cuasmrl.deploy.doctor import Level, examine, first_hour
    from cuasmrl.deploy.store import Store
    from cuasmrl.gpu.devices.opening import ordinal_of

    if not gpu and (device is not None or lock_clocks):
        raise CuasmrlError("--device and --lock-clocks belong to --gpu; add it")
    found = first_hour.examine(ordinal_of(device or "cuda:0"), lock_clocks=lock_clocks) if gpu else None
    findings = list(examine(Store(root)) if found is None else found)
    actions = [finding for finding in findings if finding.level is Level.ACTION]
    if as_json:
        print_json({"healthy": not actions, "findings": [finding.as_dict() for finding in findings]})
    else:
        topic = ""
        for finding in findings:
            if finding.topic != topic:
                topic = finding.topic
                console.print(topic)
            console.print(f"{_MARKS[finding.level]}{finding.subject}: {finding.text}", markup=False)
            if finding.advice:
                console.print(f"    > {finding.advice}", markup=False)
        count = {0: "nothing needs", 1: "1 thing needs"}.get(len(actions), f"{len(actions)} things need")
        console.print(f"{count} action")
    if actions:
        raise typer.Exit(1)
