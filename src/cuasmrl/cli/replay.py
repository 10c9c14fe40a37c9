"""The command that says what runs have learned."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cuasmrl.cli.console import Json, console, print_json, progress

if TYPE_CHECKING:
    from cuasmrl.explain.moves import ExplainedRun, Rule


def replay(
    runs: Annotated[
        list[Path],
        typer.Argument(metavar="RUN", help="Directories of runs of `cuasmrl optimize`.", show_default=False),
    ],
    every: Annotated[
        bool, typer.Option("--all", help="Every move with its lines of SASS, not only a summary.")
    ] = False,
    as_json: Json = False,
) -> None:
    """What runs have learned: the moves that matter, and rules."""
    from cuasmrl.explain.moves import rules_of

    found = [_explain(run, as_json) for run in runs]
    explanations = [run.explanation for run in found if run.explanation is not None]
    rules = rules_of(explanations)
    if as_json:
        print_json({"runs": [run.as_dict() for run in found], "rules": [rule.as_dict() for rule in rules]})
        return
    if len(found) == 1 and not every:
        _print_one(found[0], rules)
    else:
        _print_several(found, rules, every)


def _print_one(run: ExplainedRun, rules: Sequence[Rule]) -> None:
    from cuasmrl.explain.moves.table import print_summary

    _introduce(run)
    if run.explanation is not None:
        print_summary(console, run.explanation, rules)


def _print_several(runs: Sequence[ExplainedRun], rules: Sequence[Rule], in_full: bool) -> None:
    from cuasmrl.explain.moves import print_explanation, print_rules

    for run in runs:
        _introduce(run)
        if run.explanation is not None:
            print_explanation(console, run.explanation, in_full)
        console.print()
    print_rules(console, rules, len(runs))


def _introduce(run: ExplainedRun) -> None:
    from cuasmrl.explain.moves.table import print_lines

    config = run.config
    lines = [f"{run.path}: {config.agent}, seed {config.seed}, budget {config.budget:,}", run.verdict]
    if run.explanation is None:
        lines.append("nothing faster than the original was found")
    print_lines(console, lines + _revealed(run.beliefs))


_SHOWN = 8
_REVEALED = 0.5


def _revealed(beliefs: Sequence[dict[str, Any]]) -> list[str]:
    """Numbers of the machine whose interval is at most half as wide as before."""
    narrowed = [one for one in beliefs if one["left"] <= _REVEALED][:_SHOWN]
    if not narrowed:
        return []
    lines = [f"what the times say of the machine, of {len(beliefs)} numbers that matter here (middle 90 %):"]
    for one in narrowed:
        (low, high), (least, most) = one["before"], one["after"]
        unit = str(one["unit"]).split()[0]
        lines.append(
            f"  {one['name']}: {low:.4g} to {high:.4g} before, {least:.4g} to {most:.4g} now ({unit})"
        )
    return lines


def _explain(run: Path, quiet: bool) -> ExplainedRun:
    from cuasmrl.explain.moves import explain_run

    with progress(f"explaining {run}", quiet) as advance:
        return explain_run(run, advance)
