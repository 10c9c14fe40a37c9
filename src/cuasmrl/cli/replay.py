"""The command that says what runs have learned."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cuasmrl.cli.console import Json, console, print_json, progress

if TYPE_CHECKING:
    from cuasmrl.explain.moves import ExplainedRun


def replay(
    runs: Annotated[
        list[Path],
        typer.Argument(metavar="RUN", help="Directories of runs of `cuasmrl optimize`.", show_default=False),
    ],
    as_json: Json = False,
) -> None:
    """What runs have learned: the moves that matter one by one, and rules in words."""
    from cuasmrl.explain.moves import print_explanation, print_rules, rules_of

    found = [_explain(run, as_json) for run in runs]
    explanations = [run.explanation for run in found if run.explanation is not None]
    rules = rules_of(explanations)
    if as_json:
        print_json({"runs": [run.as_dict() for run in found], "rules": [rule.as_dict() for rule in rules]})
        return
    for run in found:
        config = run.config
        console.print(
            f"{run.path}: {config.agent}, seed {config.seed}, budget {config.budget:,}; {run.verdict}",
            markup=False,
        )
        if run.explanation is None:
            console.print("nothing faster than the original was found", markup=False)
        else:
            print_explanation(console, run.explanation, in_full=len(found) == 1)
        console.print()
    print_rules(console, rules, len(found))


def _explain(run: Path, quiet: bool) -> ExplainedRun:
    from cuasmrl.explain.moves import explain_run

    with progress(f"explaining {run}", quiet) as advance:
        return explain_run(run, advance)
