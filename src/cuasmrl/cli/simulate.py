"""The command that times a kernel on the SM model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cuasmrl.cli.console import ChosenKernel, Json, LaunchFile, Settings, console, print_json
from cuasmrl.cli.machine import sizes_of
from cuasmrl.errors import CuasmrlError

if TYPE_CHECKING:
    from cuasmrl.traced import TracedKernel

_ORIGINAL = "original"
_DEFAULT_CHIP = "a100"
_TIMELINE_ISSUES = 20_000


def simulate(
    kernel_of: Annotated[
        str,
        typer.Argument(
            metavar="WORKLOAD|CUBIN",
            help="A workload (see `cuasmrl workloads`), or a cubin file with --launch.",
            show_default=False,
        ),
    ],
    config: Annotated[str | None, typer.Option("--config", help="One config instead of the first.")] = None,
    chip: Annotated[
        str | None,
        typer.Option(
            "--chip",
            help="A chip with timing data, such as a100 or rtx4090. Without it a100, "
            "for a cubin the first chip of its architecture.",
            show_default=False,
        ),
    ] = None,
    settings: Settings = None,
    launch: LaunchFile = None,
    kernel: ChosenKernel = None,
    seeds: Annotated[int, typer.Option("--seeds", help="Replays with other latency jitter.", min=1)] = 3,
    compare: Annotated[
        tuple[str, str] | None,
        typer.Option(
            "--compare",
            metavar="A B",
            help="Explain the difference between two cubins with schedules of this kernel; "
            "`original` is the kernel itself.",
        ),
    ] = None,
    timeline: Annotated[
        Path | None, typer.Option("--timeline", help="Write the issues there for ui.perfetto.dev.")
    ] = None,
    timeline_issues: Annotated[
        int, typer.Option("--timeline-issues", help="How many issues the timeline shows.", min=1)
    ] = _TIMELINE_ISSUES,
    as_json: Json = False,
) -> None:
    """Modelled cycles of a workload or a cubin, and where each went."""
    if compare is not None and timeline is not None:
        raise CuasmrlError("--compare and --timeline do not go together; run them one after the other")
    if Path(kernel_of).suffix == ".cubin" or launch is not None:
        if config is not None or settings:
            raise CuasmrlError("--config and --set belong to workloads; the launch file says it for a cubin")
        traced = _trace_cubin(Path(kernel_of), launch, kernel, chip)
    else:
        if kernel is not None:
            raise CuasmrlError("--kernel belongs to cubins; a workload is one kernel")
        traced = _trace_workload(kernel_of, config, settings or [], chip or _DEFAULT_CHIP)
    if compare is not None:
        _compare(traced, compare, seeds, as_json)
    else:
        _simulate(traced, seeds, timeline, timeline_issues, as_json)


def _trace_cubin(path: Path, launch: Path | None, kernel: str | None, chip: str | None) -> TracedKernel:
    from cuasmrl.chips import chip as chip_named
    from cuasmrl.cubin import Cubin
    from cuasmrl.launches import load
    from cuasmrl.traced import trace_cubin

    cubin = Cubin.load(path)
    if launch is None:
        raise CuasmrlError(
            f"{path} says nothing of grid and arguments; name a launch file with --launch "
            "(docs/simulate.md, or `cuasmrl workloads --build` for examples)"
        )
    return trace_cubin(cubin, load(launch), kernel, chip_named(chip) if chip else None)


def _trace_workload(name: str, config: str | None, settings: list[str], chip: str) -> TracedKernel:
    from cuasmrl import workloads
    from cuasmrl.chips import chip as chip_named
    from cuasmrl.traced import trace_workload

    workload = workloads.get(name)
    sizes = {**workload.sizes, **sizes_of(settings, set(workload.sizes), workload.name)}
    chosen = workload.config(config) if config else workload.configs[0]
    return trace_workload(workload, chosen, chip_named(chip), sizes)


def _simulate(traced: TracedKernel, seeds: int, timeline: Path | None, issues: int, as_json: bool) -> None:
    from cuasmrl.simulate import simulation_of
    from cuasmrl.tables import print_simulation

    found = simulation_of(traced.model, traced.original, traced.name, traced.config, traced.sizes, seeds)
    written = _write_timeline(traced, timeline, issues) if timeline is not None else None
    if as_json:
        print_json({**found.as_dict(), **({"timeline": written} if written else {})})
        return
    print_simulation(console, found)
    if written is not None:
        console.print(
            f"timeline: {written['issues']:,} of {written['of']:,} issues "
            f"(modelled cycles 0 to {written['cycles']:,}, seed 0; more with --timeline-issues) "
            f"in {timeline}; open it at ui.perfetto.dev, where 1 us is one cycle",
            markup=False,
        )


def _write_timeline(traced: TracedKernel, path: Path, issues: int) -> dict[str, Any]:
    from cuasmrl.files import write_text
    from cuasmrl.report.perfetto import timeline

    result = traced.model.simulate(traced.original, seed=0, logged=issues)
    shown = timeline(result, traced.original, traced.model)
    write_text(path, shown.text({"kernel": f"{traced.name} {traced.config}", "chip": traced.chip.name}))
    return {"file": str(path), "issues": shown.issues, "of": shown.of, "cycles": shown.cycles}


def _compare(traced: TracedKernel, names: tuple[str, str], seeds: int, as_json: bool) -> None:
    from cuasmrl.comparison import compare, print_comparison
    from cuasmrl.cubin import Cubin

    cubins = [traced.cubin if name == _ORIGINAL else Cubin.load(name) for name in names]
    before, after = (traced.schedule_in(cubin) for cubin in cubins)
    found = compare(traced.model, before, after, range(seeds), names)
    doubts = [doubt for cubin in cubins if (doubt := _doubt(traced, cubin))]
    if as_json:
        print_json({**found.as_dict(), "doubts": doubts})
        return
    print_comparison(console, found)
    for doubt in doubts:
        console.print(f"note: {doubt}", markup=False)


def _doubt(traced: TracedKernel, cubin: Any) -> str | None:
    """Cycles of a schedule that computes something else are worth nothing: say so."""
    from cuasmrl.checker import Checker, Refusal

    if cubin is traced.cubin:
        return None
    try:
        Checker(traced.cubin).check(cubin)
    except Refusal as refusal:
        return f"{cubin.source} is not as safe as {traced.cubin.source}: {refusal}"
    return None
