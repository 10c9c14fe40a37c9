"""The command that executes a workload."""

from typing import Annotated

import typer

from cuasmrl.cli.console import Json, Settings, console, print_json, progress
from cuasmrl.cli.sizes import sizes_of
from cuasmrl.errors import CuasmrlError


def emulate(
    workload: Annotated[str, typer.Argument(help="A workload, see `cuasmrl workloads`.", show_default=False)],
    config: Annotated[str | None, typer.Option("--config", help="One config instead of all.")] = None,
    arch: Annotated[
        int, typer.Option("--arch", help="Chip to compile for: 75, 80, 86, 89, 90, 100, 103, 120.")
    ] = 80,
    settings: Settings = None,
    seed: Annotated[int, typer.Option("--seed", help="Of the random inputs.")] = 0,
    blocks: Annotated[
        str | None, typer.Option("--blocks", help="Execute only these: 5 or 0-3,17 (linear indices).")
    ] = None,
    budget: Annotated[
        int | None,
        typer.Option("--budget", help="Instructions a warp may execute before it counts as endless.", min=1),
    ] = None,
    as_json: Json = False,
) -> None:
    """Execute a workload and compare with its reference.

    It runs on the virtual GPU. Exit status 1 if the results differ.
    """
    from cuasmrl import workloads
    from cuasmrl.cli.tables import print_outcomes
    from cuasmrl.gpu.emulator import DEFAULT_BUDGET
    from cuasmrl.workloads import emulation

    chosen = workloads.get(workload)
    sizes = sizes_of(chosen, settings)
    chosen_blocks = _ranges(blocks)
    configs = (
        [chosen.config(config)] if config else [c for c in chosen.configs if chosen.supports(c, arch) is None]
    )
    outcomes = []
    for one in configs:
        with progress(f"{chosen.name} {one.name}", as_json) as advance:
            outcomes.append(
                emulation.emulate(
                    chosen, one, arch, sizes, seed, chosen_blocks, budget or DEFAULT_BUDGET, progress=advance
                )
            )
    if not outcomes:
        raise CuasmrlError(f"{chosen.name} has no config for sm_{arch}; choose another chip")
    if as_json:
        print_json([outcome.as_dict() for outcome in outcomes])
    else:
        print_outcomes(console, outcomes)
    if not all(outcome.passed for outcome in outcomes):
        raise typer.Exit(1)


def _ranges(text: str | None) -> list[int] | None:
    """`0-3,17` as numbers."""
    if text is None:
        return None
    numbers: list[int] = []
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()):
            raise CuasmrlError(f"--blocks {text} is not understood; write for example 0-3,17")
        numbers += range(int(first), int(last if dash else first) + 1)
    return numbers
