"""The command that makes a kernel faster."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cuasmrl.cli.agents import complete
from cuasmrl.cli.console import (
    ChosenKernel,
    Json,
    L2Name,
    LaunchFile,
    ObjectiveName,
    ScoreboardsName,
    Settings,
    console,
    l2_named,
    objective_named,
    print_json,
    problems,
    scoreboards_named,
)
from cuasmrl.cli.display import Display, display, introduction, left_out
from cuasmrl.cli.recorded import optimize_recorded
from cuasmrl.cli.report import report_of
from cuasmrl.cli.sizes import sizes_given
from cuasmrl.cli.watch import watching
from cuasmrl.cli.workers import On, Workers, crew_of
from cuasmrl.errors import CuasmrlError

if TYPE_CHECKING:
    from cuasmrl.deploy.store import Entry
    from cuasmrl.explain.play.watching import Watched
    from cuasmrl.gpu.devices.pool import Crew
    from cuasmrl.optimize import Optimized

_INTERRUPTED = 130


def optimize(
    kernel_of: Annotated[
        str | None,
        typer.Argument(
            metavar="WORKLOAD|CUBIN",
            help="A workload (see `cuasmrl workloads`), or a cubin file with --launch; none with --resume.",
            show_default=False,
        ),
    ] = None,
    config: Annotated[
        str | None, typer.Option("--config", help="Of a workload; without it the fastest is chosen.")
    ] = None,
    trial: Annotated[
        int | None,
        typer.Option(
            "--trial",
            help="Play so many evaluations on each config near the fastest, and choose by that.",
            show_default=False,
        ),
    ] = None,
    settings: Settings = None,
    launch: LaunchFile = None,
    kernel: ChosenKernel = None,
    device: Annotated[
        str | None,
        typer.Option(
            "--device",
            help="virtual:CHIP or cuda:N. Without it virtual:a100, for a cubin a chip of its architecture.",
            show_default=False,
        ),
    ] = None,
    agent: Annotated[
        str | None,
        typer.Option(
            "--agent",
            metavar="NAME",
            help="Who plays, one of the agents below; greedy by default.",
            autocompletion=complete,
            show_default=False,
        ),
    ] = None,
    budget: Annotated[
        int | None, typer.Option("--budget", help="Device evaluations; 2000 by default.", show_default=False)
    ] = None,
    seed: Annotated[
        int | None, typer.Option("--seed", help="Of the agent; 0 by default.", show_default=False)
    ] = None,
    batch: Annotated[
        int | None,
        typer.Option(
            "--batch",
            help="Candidates that the agent proposes at a time: keeps more workers busy.",
            show_default=False,
        ),
    ] = None,
    scoreboards: ScoreboardsName = None,
    l2: L2Name = None,
    objective: ObjectiveName = None,
    min_gain: Annotated[
        float | None,
        typer.Option(
            "--min-gain",
            metavar="PERCENT",
            help="Least median over the ensemble for a modelled gain to be confirmed; 0.5 by default.",
            show_default=False,
        ),
    ] = None,
    min_faster: Annotated[
        str | None,
        typer.Option(
            "--min-faster",
            metavar="SHARE",
            help="Share of the ensemble's chips on which it has to be faster; 42/48 by default.",
            show_default=False,
        ),
    ] = None,
    run: Annotated[
        Path | None,
        typer.Option("--run", help="Directory for the run; by default one in runs/.", show_default=False),
    ] = None,
    resume: Annotated[
        Path | None, typer.Option("--resume", help="Continue the run in this directory.", show_default=False)
    ] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Write the new cubin there, if there is a gain.")
    ] = None,
    store: Annotated[
        bool, typer.Option("--store", help="Put an accepted result into the store ($CUASMRL_STORE).")
    ] = False,
    recorded: Annotated[
        bool,
        typer.Option("--recorded", help="Play on every kernel recorded in the store, and store results."),
    ] = False,
    workers: Workers = None,
    on: On = None,
    watch: Annotated[
        bool, typer.Option("--watch", help="Serve a page on which the run can be watched in a browser.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Make a kernel faster: play, prove, compare, confirm the gain."""
    asked: dict[str, Any] = {
        "source": kernel_of, "config": config, "trial": trial,
        "sizes": sizes_given(kernel_of, launch, settings), "launch": str(launch) if launch else None,
        "kernel": kernel, "device": device, "agent": agent, "budget": budget, "seed": seed, "batch": batch,
        "scoreboards": scoreboards_named(scoreboards) if scoreboards else None,
        "l2": l2_named(l2) if l2 else None,
        "objective": objective_named(objective) if objective else None,
        "min_gain": None if min_gain is None else min_gain / 100, "min_faster": _share(min_faster),
    }  # fmt: skip
    given = {name: value for name, value in asked.items() if value is not None}
    if recorded:
        if resume is not None or output is not None or watch:
            raise CuasmrlError("--recorded plays on what is in the store; leave out --resume, -o and --watch")
        optimize_recorded(given, run, workers, on, as_json)
        return
    if run is not None and resume is not None:
        raise CuasmrlError("--run starts a run and --resume continues one; give one of them")
    with crew_of(workers, on, _device_of(device, resume)) as crew, watching(watch) as watched:
        found = _run(given, run, resume, output, as_json, watched, crew)
        entry = _deposit(found) if store else None
        if not as_json:
            _print(found, output)
            if entry is not None:
                console.print(_stored(entry, found), markup=False)
        page = report_of(found)
        if watched is not None:
            watched.finished(found, page)
    if as_json:
        stored = entry.key if entry else None
        print_json({**found.as_dict(), "stored": stored, "report": str(page) if page else None})
    elif page is not None:
        console.print(f"report: {page}", markup=False)


def _device_of(device: str | None, resume: Path | None) -> str | None:
    """That of the run which is continued, unless another is given."""
    if device is not None or resume is None:
        return device
    from cuasmrl.optimize.runs import RunDirectory

    return RunDirectory.open(resume).config.device


def _run(
    given: dict[str, Any],
    run: Path | None,
    resume: Path | None,
    output: Path | None,
    as_json: bool,
    watched: Watched | None,
    crew: Crew | None,
) -> Optimized:
    with display(as_json) as shown:
        try:
            return _carry_out(given, run, resume, output, shown, watched, crew)
        except KeyboardInterrupt:
            if shown.run is not None:
                problems.print(f"stopped; continue with --resume {shown.run}", markup=False)
            raise typer.Exit(_INTERRUPTED) from None


def _stored(entry: Entry, found: Optimized) -> str:
    from cuasmrl.deploy.store.allowed import is_modelled

    if found.cubin is not None and entry.optimised != found.cubin.read_bytes():
        return f"the store keeps {entry.key[:12]}, which is measured or faster"
    hint = (
        " (modelled: compilers take it with `cuasmrl run --modelled`)"
        if is_modelled(entry.measurement)
        else ""
    )
    return f"stored as {entry.key[:12]}{hint}"


def _share(text: str | None) -> float | None:
    """`42/48` or `0.875` as a number."""
    try:
        return None if text is None else float(Fraction(text))
    except (ValueError, ZeroDivisionError):
        raise CuasmrlError(f"--min-faster {text} is not understood; write a share such as 42/48") from None


def _carry_out(
    given: dict[str, Any],
    run: Path | None,
    resume: Path | None,
    output: Path | None,
    shown: Display,
    watched: Watched | None,
    crew: Crew | None,
) -> Optimized:
    from cuasmrl import optimize as way

    watch = way.Watch(shown.stage, shown.choosing, shown.prepared, shown.played)
    if watched is not None:
        watch = way.together(watch, watched.hooks)
    if resume is not None:
        return way.resume(resume, given, output, watch, crew)
    if "source" not in given:
        raise CuasmrlError("name a workload or a cubin to optimise, or a run to continue with --resume")
    return way.optimize(way.Request(**given), run, output, watch, crew)


def _deposit(found: Optimized) -> Entry | None:
    from cuasmrl.deploy.deposit import deposit
    from cuasmrl.deploy.store import Store

    return deposit(found, Store())


def _print(found: Optimized, output: Path | None) -> None:
    verdict = found.verdict
    lines = [
        introduction(found.subject.kernel, found.subject.device, found.subject.candidates),
        *left_out(found.subject.candidates),
        f"{found.evaluations:,} evaluations by {found.config.agent}, seed {found.config.seed}; "
        f"best found {100 * found.search_gain:+.2f} % in the search",
        verdict.modelled,
        *(f"  {line}" for line in verdict.lines()),
        verdict.sentence,
    ]
    lines += _against_fastest(found)
    if found.cubin is not None:
        lines.append(f"new cubin: {found.cubin}")
    elif output is not None:
        lines.append(f"nothing was written to {output}")
    lines.append(f"run: {found.run}")
    for line in lines:
        console.print(line, markup=False)


def _against_fastest(found: Optimized) -> list[str]:
    """How the result compares with what an autotuner would have taken, if that is another config."""
    from cuasmrl.optimize import fastest

    gain = found.gain_over_fastest
    if gain is None or fastest(found.subject.candidates).config == found.subject.kernel.config:
        return []
    rival = fastest(found.subject.candidates)
    return [
        f"fastest config as compiled: {rival.config} with {rival.cycles:,.0f} modelled cycles; "
        f"over that {100 * gain:+.2f} %"
    ]
