"""The commands that measure what runs beside: deployment, the fleet, the page."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from cuasmrl.cli.bench.shared import app, show
from cuasmrl.cli.console import Json, console, print_json, progress
from cuasmrl.errors import CuasmrlError


@app.command()
def deploy(as_json: Json = False) -> None:
    """What deployment costs.

    A lookup at each compile, a launch, the shim over ptxas.
    """
    from cuasmrl.bench.deploy import deploy_table
    from cuasmrl.bench.deploy import deploying as measure

    show(measure, deploy_table, as_json)


@app.command()
def fleet(
    kernels: Annotated[int, typer.Option("--kernels", help="Of the program.", min=1)] = 10_000,
    workers: Annotated[
        list[int] | None, typer.Option("--workers", help="Several, if given several times.", min=1)
    ] = None,
    budget: Annotated[int, typer.Option("--budget", help="Evaluations for each kernel on average.")] = 2000,
    slice_: Annotated[int, typer.Option("--slice", help="Evaluations between two decisions.")] = 500,
    journal: Annotated[
        Path | None,
        typer.Option("--journal", help="Of a fleet that ran: its tasks say how long theirs take."),
    ] = None,
    as_json: Json = False,
) -> None:
    """How many workers one head can lead: the queue simulated, with the head's times measured here."""
    from cuasmrl.bench.fleet import TYPICAL, measured_head, measured_tasks, simulate
    from cuasmrl.bench.fleet_table import fleet_table

    tasks = TYPICAL if journal is None else measured_tasks(journal)
    head = measured_head(kernels)
    counts = workers or [1, 10, 100, 1000, 10_000]
    found = [simulate(kernels, count, budget, slice_, tasks, head) for count in counts]
    if as_json:
        print_json({"tasks": asdict(tasks), "head": asdict(head), "fleets": [one.as_dict() for one in found]})
        return
    console.print(fleet_table(found))
    console.print(
        f"the head: {1e6 * head.task:,.0f} microseconds a task, {1e6 * head.kernel:,.1f} a kernel and round"
    )
    console.print(
        f"a worker: a survey {tasks.survey:.1f} s, an evaluation {1e3 * tasks.evaluation:.1f} ms, a slice "
        f"{tasks.opening:.1f} s besides, a judgement {tasks.finish:.0f} s"
    )


@app.command()
def workers(
    workload: Annotated[
        list[str] | None,
        typer.Option(
            "--workload", metavar="NAME/CONFIG", help="Another than the default; repeat for several."
        ),
    ] = None,
    agent: Annotated[
        list[str] | None,
        typer.Option("--agent", help="Repeat for several; greedy, evolve and policy if none."),
    ] = None,
    count: Annotated[
        list[int] | None, typer.Option("--workers", help="Besides one; repeat for several.", min=2)
    ] = None,
    ray: Annotated[
        bool, typer.Option("--ray", help="Two nodes of a Ray cluster on this machine as well.")
    ] = False,
    budget: Annotated[int, typer.Option("--budget", help="Evaluations of a game.", min=1)] = 300,
    rounds: Annotated[int, typer.Option("--rounds", help="Games of each kind, in turn.", min=1)] = 5,
    seed: Annotated[int, typer.Option("--seed", help="Of the agents.")] = 0,
    batch: Annotated[
        int | None, typer.Option("--batch", help="Candidates that agents propose at a time.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Evaluations per second of one kernel on several workers beside those on one, in one run."""
    from cuasmrl.bench import workers as measured

    counts = (1, *(count or [2]), *((measured.RAY,) if ray else ()))
    with progress("playing", as_json) as advance:
        found = measured.workers(
            workload or measured.KERNELS,
            agent or measured.PLAYERS,
            counts,
            budget,
            rounds,
            seed,
            batch,
            advance,
        )
    if as_json:
        print_json([one.as_dict() for one in found])
        return
    console.print(measured.workers_table(found))


@app.command()
def play(
    workload: Annotated[str | None, typer.Option("--workload", help="Another than the default.")] = None,
    config: Annotated[str | None, typer.Option("--config", help="Of that workload.")] = None,
    drags: Annotated[int, typer.Option("--drags", help="How many.", min=20)] = 200,
    as_json: Json = False,
) -> None:
    """How soon the page of the game answers a drag, and what it costs a run to be watched."""
    from cuasmrl.explain.play.serving import needed

    needed()
    from cuasmrl.bench import play as measured

    if (workload is None) != (config is None):
        raise CuasmrlError("--workload and --config go together")
    kernel = measured.traced(workload, config) if workload and config else measured.traced()
    with progress("dragging", as_json) as advance:
        answers = measured.answers(kernel, drags, advance)
    with progress("watching", as_json) as advance:
        cost = measured.watch_cost(kernel, advance)
    if as_json:
        print_json({"drags": answers.as_dict(), "watch": cost.as_dict()})
        return
    lines = [
        f"{kernel.name} {kernel.config}, {answers.instructions:,} instructions",
        f"{answers.drags} drags answered in {answers.drag:.0f} ms (median), {answers.drag_95:.0f} ms (95th "
        f"percentile), {answers.processor:.0f} ms of processor time; {answers.bytes:,} bytes",
        f"reach of an instruction in {answers.reach:.0f} ms (median)",
        f"greedy, {cost.evaluations:,} evaluations, per second of processor time: {cost.alone:.1f} alone, "
        f"{cost.watched:.1f} watched",
        f"watching costs {100 * cost.share:.1f} % (median of {cost.rounds} rounds: "
        f"{', '.join(f'{100 * share:+.1f}' for share in cost.shares)}); threads of the server took "
        f"{100 * cost.server:.2f} % of the processor time",
    ]
    for line in lines:
        console.print(line, markup=False)
