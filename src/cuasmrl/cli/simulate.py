"""The command that times a kernel on the SM model."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cuasmrl.cli.console import (
    ChosenKernel,
    Json,
    L2Name,
    LaunchFile,
    Settings,
    console,
    l2_named,
    print_json,
    problems,
    progress,
)
from cuasmrl.cli.display import introduction, left_out
from cuasmrl.cli.sizes import sizes_given
from cuasmrl.errors import CuasmrlError

if TYPE_CHECKING:
    from cuasmrl.binary.cubin import Cubin
    from cuasmrl.gpu.traced import TracedKernel
    from cuasmrl.optimize import Chosen
    from cuasmrl.schedule import Schedule

_ORIGINAL = "original"
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
    config: Annotated[
        str | None, typer.Option("--config", help="Of a workload; without it the fastest is chosen.")
    ] = None,
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
    l2: L2Name = None,
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
    from cuasmrl.optimize import Request, choose

    sizes = sizes_given(kernel_of, launch, settings) or {}
    device = f"virtual:{chip}" if chip else None
    request = Request(
        kernel_of,
        config,
        sizes,
        str(launch) if launch else None,
        kernel=kernel,
        device=device,
        l2=l2_named(l2),
    )
    with progress("choosing a config", as_json) as advance:
        chosen = choose(request, advance)
    if not as_json:
        for line in left_out(chosen.candidates):
            problems.print(line, markup=False)
    if compare is not None:
        _compare(chosen.traced, compare, seeds, as_json)
    else:
        _simulate(chosen, seeds, timeline, timeline_issues, as_json)


def _simulate(chosen: Chosen, seeds: int, timeline: Path | None, issues: int, as_json: bool) -> None:
    from cuasmrl.cli.tables import print_simulation
    from cuasmrl.gpu.simulation import simulate

    kernel = chosen.traced
    found = simulate(kernel, seeds=seeds)
    written = _write_timeline(kernel, timeline, issues) if timeline is not None else None
    if as_json:
        candidates = [asdict(candidate) for candidate in chosen.candidates]
        print_json(
            {**found.as_dict(), "candidates": candidates, **({"timeline": written} if written else {})}
        )
        return
    console.print(introduction(chosen.kernel, chosen.device, chosen.candidates), markup=False)
    print_simulation(console, found)
    if written is not None:
        console.print(
            f"timeline: {written['issues']:,} of {written['of']:,} issues "
            f"(modelled cycles 0 to {written['cycles']:,}, seed 0; more with --timeline-issues) "
            f"in {timeline}; open it at ui.perfetto.dev, where 1 us is one cycle",
            markup=False,
        )


def _write_timeline(traced: TracedKernel, path: Path, issues: int) -> dict[str, Any]:
    from cuasmrl.explain.report.perfetto import timeline
    from cuasmrl.files import write_text

    result = traced.model.simulate(traced.original, seed=0, logged=issues)
    shown = timeline(result, traced.original, traced.model)
    write_text(path, shown.text({"kernel": f"{traced.name} {traced.config}", "chip": traced.chip.name}))
    return {"file": str(path), "issues": shown.issues, "of": shown.of, "cycles": shown.cycles}


def _compare(traced: TracedKernel, names: tuple[str, str], seeds: int, as_json: bool) -> None:
    from cuasmrl.binary.cubin import Cubin
    from cuasmrl.explain.comparison import compare, print_comparison

    cubins = [traced.cubin if name == _ORIGINAL else Cubin.load(name) for name in names]
    before, after = (_schedule_in(traced, cubin) for cubin in cubins)
    found = compare(traced.model, before, after, range(seeds), names)
    doubts = [doubt for cubin in cubins if (doubt := _doubt(traced, cubin))]
    if as_json:
        print_json({**found.as_dict(), "doubts": doubts})
        return
    print_comparison(console, found)
    for doubt in doubts:
        console.print(f"note: {doubt}", markup=False)


def _schedule_in(traced: TracedKernel, cubin: Cubin) -> Schedule:
    """The schedule in a cubin; one of another config of the workload is refused with the name of that."""
    from cuasmrl import workloads
    from cuasmrl.workloads.tracing import config_of

    try:
        return traced.schedule_in(cubin)
    except CuasmrlError:
        if traced.name in workloads.names():
            workload = workloads.get(traced.name)
            config = config_of(workload, traced.sizes, cubin)
            if config is not None and config.name != traced.config:
                raise CuasmrlError(
                    f"{cubin.source} holds a schedule of {traced.name} {config.name}, not of "
                    f"{traced.config}; give --config {config.name}"
                ) from None
        raise


def _doubt(traced: TracedKernel, cubin: Cubin) -> str | None:
    """Cycles of a schedule that computes something else are worth nothing: say so."""
    from cuasmrl.checker import Checker, Refusal

    if cubin is traced.cubin:
        return None
    try:
        Checker(traced.cubin).check(cubin)
    except Refusal as refusal:
        return f"{cubin.source} is not as safe as {traced.cubin.source}: {refusal}"
    return None
