"""The command that looks for hazards and waste."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Annotated

import typer

from cuasmrl.cli.console import CubinFile, Json, KernelName, console, print_json

if TYPE_CHECKING:
    from cuasmrl.schedule.lint import Finding


def lint(
    cubin: CubinFile,
    kernel: KernelName = None,
    show: Annotated[int, typer.Option("--show", help="Findings of each kind to print; 0 for all.")] = 5,
    as_json: Json = False,
) -> None:
    """Hazards, wasted stalls and fillers in a cubin.

    Exit status 1 if there are hazards.
    """
    from cuasmrl.binary.cubin import Cubin
    from cuasmrl.binary.sass import disassemble
    from cuasmrl.schedule.lint import lint as findings_of

    loaded = Cubin.load(cubin)
    listings = disassemble(loaded)
    chosen = [loaded.kernel(kernel)] if kernel else loaded.kernels
    found = [finding for k in chosen for finding in findings_of(listings[k.name])]
    if as_json:
        print_json([finding.as_dict() for finding in found])
    else:
        for k in chosen:
            _print(k.name, [f for f in found if f.kernel == k.name], show)
    if any(finding.is_hazard for finding in found):
        raise typer.Exit(1)


def _print(name: str, found: list[Finding], show: int) -> None:
    from cuasmrl.schedule.lint import Rule

    counts = Counter(finding.rule for finding in found)
    hazards = sum(finding.is_hazard for finding in found)
    wasted = sum(finding.cycles for finding in found)
    console.print(
        f"{name}: {hazards} hazards, {len(found) - hazards} notes, {wasted} stall cycles more than needed",
        markup=False,
    )
    for rule in Rule:
        of_rule = [finding for finding in found if finding.rule is rule]
        for finding in of_rule[: show or None]:
            console.print(f"  {rule}: {finding.sentence}", markup=False)
        if show and counts[rule] > show:
            console.print(f"  {rule}: and {counts[rule] - show} more")
