"""Look after the surroundings: compilers, hooks, store, caches."""

import typer

from cuasmrl.cli.console import Json, console, print_json
from cuasmrl.cli.store import Root

_MARKS = {"ok": "  ", "note": "- ", "action": "! "}


def doctor(root: Root = None, as_json: Json = False) -> None:
    """What is installed, which ptxas each framework uses, whether stored results are used, and what to do.

    Exit status 1 if something needs action.
    """
    from cuasmrl.deploy.doctor import Level, examine
    from cuasmrl.deploy.store import Store

    findings = list(examine(Store(root)))
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
