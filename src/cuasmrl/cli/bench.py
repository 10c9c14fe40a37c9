"""The commands that measure."""

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from cuasmrl.cli.agents import ListsAgents, complete
from cuasmrl.cli.console import (
    Json,
    L2Name,
    ObjectiveName,
    ScoreboardsName,
    console,
    l2_named,
    objective_named,
    print_json,
    progress,
    scoreboards_named,
)
from cuasmrl.errors import CuasmrlError

app = typer.Typer(help="Measure on this machine, and print the table.")

Changed = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="A number of the chips that is different in this run, as warp_choice=0; repeat for several.",
    ),
]


@app.command()
def schedule(
    size: Annotated[
        list[int] | None,
        typer.Option("--size", help="Instructions of large kernels; repeat for several.", min=1),
    ] = None,
    seconds: Annotated[
        float, typer.Option("--seconds", help="Processor time for one large kernel.", min=1)
    ] = 600,
    as_json: Json = False,
) -> None:
    """Times of reading, moving and checking.

    On the largest config of each published workload; then, in processor time, on kernels of growing size.
    """
    from cuasmrl.bench.large import SIZES, large
    from cuasmrl.bench.schedule import schedule as measure
    from cuasmrl.cli.tables import large_table, schedule_table

    with progress("measuring", as_json) as advance:
        published = measure(advance)
    if not as_json:
        console.print(schedule_table(published))
    with progress("measuring large kernels", as_json) as advance:
        figures = large(advance, size or SIZES, seconds)
    if as_json:
        print_json(
            {
                "published": [figure.as_dict() for figure in published],
                "large": [figure.as_dict() for figure in figures],
            }
        )
    else:
        console.print(large_table(figures))


@app.command()
def emulator(as_json: Json = False) -> None:
    """The emulator beside Triton's interpreter."""
    from cuasmrl.bench.emulator import emulator as measure
    from cuasmrl.cli.tables import emulator_table

    _show(measure, emulator_table, as_json)


@app.command()
def timing(
    changed: Changed = None,
    device: Annotated[
        str | None,
        typer.Option(
            "--device", help="Run the experiments on a GPU as well, such as cuda:0.", show_default=False
        ),
    ] = None,
    calibration: Annotated[
        Path,
        typer.Option("--calibration", help="With --device: all it measured goes to this file."),
    ] = Path("calibration.json"),
    as_json: Json = False,
) -> None:
    """The SM model beside published measurements.

    With a GPU: the same experiments there, how long LDSM waits behind LDGSTS, the order of random schedules.
    """
    if device is not None:
        _calibrate(device, calibration, as_json)
        return
    from cuasmrl.bench.timing import parsed_changes
    from cuasmrl.bench.timing import timing as measure
    from cuasmrl.bench.timing_tables import timing_table

    changes = parsed_changes(changed or ())
    _show(lambda advance: measure(advance, changes), timing_table, as_json)


@app.command()
def kernels(
    only: Annotated[
        list[str] | None,
        typer.Option("--only", help="An id, or how a group, series or kernel begins; repeat for several."),
    ] = None,
    chip: Annotated[
        list[str] | None, typer.Option("--chip", help="Of this chip; repeat for several.")
    ] = None,
    keep: Annotated[
        Path | None, typer.Option("--keep", help="Rows go to this file; those in it are not run again.")
    ] = None,
    changed: Changed = None,
    as_markdown: Annotated[bool, typer.Option("--markdown", help="Tables for a page.")] = False,
    as_json: Json = False,
) -> None:
    """Whole kernels: modelled time beside public figures.

    With the geometric mean of the deviation, the worst row and the rank correlation, by group and series.
    """
    from cuasmrl.bench.kernels.comparison import compare
    from cuasmrl.bench.kernels.figures import chosen
    from cuasmrl.bench.kernels.summary import summary
    from cuasmrl.bench.kernels.table import (
        kernels_markdown,
        kernels_table,
        summary_markdown,
        summary_table,
    )
    from cuasmrl.bench.timing import parsed_changes

    wanted, changes = chosen(only or (), chip or ()), parsed_changes(changed or ())
    with progress("running kernels", as_json or as_markdown) as advance:
        rows = compare(wanted, advance, keep, changes)
    summaries = summary(rows)
    if as_json:
        print_json({
            "rows": [row.as_dict() for row in rows],
            "summaries": [one.as_dict() for one in summaries],
        })  # fmt: skip
        return
    if as_markdown:
        typer.echo(f"{summary_markdown(summaries)}\n\n{kernels_markdown(rows)}")
        return
    console.print(kernels_table(rows))
    console.print()
    console.print(summary_table(summaries))


@app.command()
def latencies(
    code: Annotated[
        Path | None,
        typer.Option(
            "--code",
            help="Look for pairs in the cubins and libraries below this folder that stand closer instead; "
            "status 1 if there are any. With --json also how many pairs each number decides about.",
        ),
    ] = None,
    jobs: Annotated[int, typer.Option("--jobs", help="Processes.", min=1)] = 2,
    as_json: Json = False,
) -> None:
    """The table of distances beside the sanitizer's latencies.

    With every pair for which the table answers less than the model needs.
    """
    from cuasmrl.bench.latencies import compare_code, compare_table, latencies_table, witnesses

    if code is not None:
        with progress("mining", as_json) as advance:
            mined, closer = compare_code(code, jobs, advance)
        if as_json:
            print_json({
                "cubins": mined.cubins, "instructions": mined.instructions,
                "closer": [one.as_dict() for one in closer],
                "numbers": [one.as_dict() for one in witnesses(mined)],
            })  # fmt: skip
        else:
            for one in closer:
                console.print(str(one), markup=False)
            console.print(
                f"{len(closer)} pairs of {len(mined.rows)} in {mined.instructions} instructions of "
                f"{mined.cubins} cubins stand closer than the latencies allow",
                markup=False,
            )
        if closer:
            raise typer.Exit(1)
        return
    comparisons = compare_table()
    if as_json:
        print_json([one.as_dict() for one in comparisons])
        return
    console.print(latencies_table(comparisons))
    for one in (one for comparison in comparisons for one in comparison.below):
        console.print(str(one), markup=False)


@app.command()
def freedom(
    directory: Annotated[Path, typer.Argument(help="Searched for cubins.", exists=True, file_okay=False)],
    as_json: Json = False,
) -> None:
    """What may move in loops with warpgroup products or copies by an engine."""
    from cuasmrl.bench.freedom import freedom as measure
    from cuasmrl.bench.freedom import freedom_table

    with progress("reading", as_json) as advance:
        found = measure(directory, advance)
    if as_json:
        print_json([one.as_dict() for one in found])
    else:
        console.print(freedom_table(found))


@app.command()
def game(
    before: Annotated[
        Path | None,
        typer.Option(
            "--before",
            metavar="DIRECTORY",
            help="A checkout of another revision: evaluated steps with its code and with this one.",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Evaluations per second of a search, and steps of the two environments.

    And what they are made of; the replay for the time only beside the one that names cycles.
    """
    if before is not None:
        from cuasmrl.bench.steps import steps, steps_table

        _show(lambda advance: steps(before, advance), steps_table, as_json)
        return
    from cuasmrl.bench.evaluations import evaluations, evaluations_table
    from cuasmrl.bench.game import game as measure
    from cuasmrl.bench.game import game_table

    with progress("measuring evaluations", as_json) as advance:
        searches = evaluations(advance)
    if not as_json:
        console.print(evaluations_table(searches))
    with progress("measuring steps", as_json) as advance:
        played = measure(advance)
    if as_json:
        print_json(
            {
                "evaluations": [figure.as_dict() for figure in searches],
                "steps": [figure.as_dict() for figure in played],
            }
        )
    else:
        console.print(game_table(played))


@app.command()
def deploy(as_json: Json = False) -> None:
    """What deployment costs.

    A lookup at each compile, a launch, the shim over ptxas.
    """
    from cuasmrl.bench.deploy import deploy_table
    from cuasmrl.bench.deploy import deploying as measure

    _show(measure, deploy_table, as_json)


@app.command(cls=ListsAgents)
def agents(
    agent: Annotated[
        list[str] | None,
        typer.Option(
            "--agent",
            metavar="NAME",
            help="One of the agents below; repeat for several. All if none is named.",
            autocompletion=complete,
        ),
    ] = None,
    workload: Annotated[
        list[str] | None,
        typer.Option("--workload", help="A workload, or NAME:large for its large shape; repeat for several."),
    ] = None,
    budget: Annotated[
        list[int] | None, typer.Option("--budget", help="Evaluations; repeat for several.", min=1)
    ] = None,
    seeds: Annotated[int, typer.Option("--seeds", help="Games per agent and workload.", min=1)] = 5,
    first_seed: Annotated[int, typer.Option("--first-seed", help="The first of them.", min=0)] = 0,
    device: Annotated[
        list[str] | None,
        typer.Option(
            "--device",
            metavar="DEVICE",
            help="hidden:SEED is a chip drawn by a secret, hidden:SEED+KIND moreover a strange one; "
            "repeat for several. The virtual GPU if none is named.",
        ),
    ] = None,
    keep: Annotated[
        Path | None,
        typer.Option("--keep", help="Games go to this file; those in it are not played again."),
    ] = None,
    jobs: Annotated[int, typer.Option("--jobs", help="Games at a time.", min=1)] = 2,
    chip: Annotated[str, typer.Option("--chip", help="A chip with timing data.")] = "a100",
    scoreboards: ScoreboardsName = None,
    objective: ObjectiveName = None,
    l2: L2Name = None,
    as_json: Json = False,
) -> None:
    """Agents at equal budgets on the published workloads.

    Gains by the median over the gate's ensemble: median and range over seeds. Hidden devices are chips that
    no agent knows; gains on them are confirmed on the device itself and on chips drawn around it.
    """
    from cuasmrl import workloads
    from cuasmrl.agents import AGENTS
    from cuasmrl.bench.agents import VIRTUAL, Contest, agents_table
    from cuasmrl.bench.agents import agents as measure

    contest = Contest(
        tuple(agent or AGENTS),
        tuple(workload or [w.name for w in workloads.all() if w.published]),
        tuple(budget or [2000]),
        seeds,
        chip,
        scoreboards_named(scoreboards),
        objective_named(objective),
        l2_named(l2),
        first_seed,
        tuple(device or [VIRTUAL]),
    )
    _show(lambda advance: measure(contest, advance, keep, jobs), agents_table, as_json)


@app.command()
def agreement(
    workload: Annotated[
        list[str] | None, typer.Option("--workload", help="WORKLOAD/CONFIG; repeat for several.")
    ] = None,
    objective: ObjectiveName = None,
    l2: L2Name = None,
    as_json: Json = False,
) -> None:
    """How well the scores of a search rank schedules as whole kernels do."""
    from cuasmrl.bench.agreement import KERNELS, agreement_table
    from cuasmrl.bench.agreement import agreement as measure

    names, what, cache = tuple(workload or KERNELS), objective_named(objective), l2_named(l2)
    _show(lambda advance: measure(names, what, cache, advance), agreement_table, as_json)


@app.command()
def objective(
    workload: Annotated[
        list[str] | None,
        typer.Option("--workload", help="A workload, or WORKLOAD/CONFIG; repeat for several."),
    ] = None,
    agent: Annotated[str, typer.Option("--agent", metavar="NAME", help="Who plays.")] = "greedy",
    budget: Annotated[int, typer.Option("--budget", help="Evaluations.", min=1)] = 2000,
    seeds: Annotated[int, typer.Option("--seeds", help="Games per kernel and objective.", min=2)] = 5,
    first_seed: Annotated[int, typer.Option("--first-seed", help="The first of them.", min=0)] = 0,
    keep: Annotated[
        Path | None,
        typer.Option("--keep", help="Games go to this file; those in it are not played again."),
    ] = None,
    jobs: Annotated[int, typer.Option("--jobs", help="Games at a time.", min=1)] = 2,
    chip: Annotated[str, typer.Option("--chip", help="A chip with timing data.")] = "a100",
    scoreboards: ScoreboardsName = None,
    l2: L2Name = None,
    as_json: Json = False,
) -> None:
    """Searching by the nominal chip, and by chips drawn for each game.

    What the gate's ensemble says of the results, with intervals over seeds.
    """
    from cuasmrl.bench.agents import Contest
    from cuasmrl.bench.objective import KERNELS, objective_table
    from cuasmrl.bench.objective import objective as measure

    contest = Contest(
        (agent,),
        tuple(workload or KERNELS),
        (budget,),
        seeds,
        chip,
        scoreboards_named(scoreboards),
        l2=l2_named(l2),
        first_seed=first_seed,
    )
    _show(lambda advance: measure(contest, advance, keep, jobs), objective_table, as_json)


@app.command(cls=ListsAgents)
def results(
    workload: Annotated[
        list[str] | None,
        typer.Option("--workload", help="A workload, or NAME:large for its large shape; repeat for several."),
    ] = None,
    agent: Annotated[
        list[str] | None,
        typer.Option(
            "--agent",
            metavar="NAME",
            help="One of the agents below; repeat for several. Greedy and evolve if none is named.",
            autocompletion=complete,
        ),
    ] = None,
    budget: Annotated[int, typer.Option("--budget", help="Evaluations of each agent.", min=1)] = 20_000,
    trial: Annotated[
        int, typer.Option("--trial", help="Evaluations on each config near the fastest.", min=0)
    ] = 2000,
    keep: Annotated[
        Path | None,
        typer.Option("--keep", help="Results go to this file; those in it are not made again."),
    ] = None,
    chip: Annotated[str, typer.Option("--chip", help="A chip with timing data.")] = "a100",
    scoreboards: ScoreboardsName = None,
    objective: ObjectiveName = None,
    l2: L2Name = None,
    as_json: Json = False,
) -> None:
    """The best config and schedule of each published workload.

    After the gate, beside its lower bound.
    """
    from cuasmrl import workloads
    from cuasmrl.bench.results import Effort, results_table
    from cuasmrl.bench.results import results as measure

    how = scoreboards_named(scoreboards)
    effort = Effort(
        tuple(agent or ["greedy", "evolve"]),
        budget,
        trial,
        chip=chip,
        scoreboards=how,
        objective=objective_named(objective),
        l2=l2_named(l2),
    )
    names = workload or [w.name for w in workloads.all() if w.published]
    _show(lambda advance: measure(names, effort, advance, keep), results_table, as_json)


@app.command()
def policy(
    kernel: Annotated[
        list[str] | None,
        typer.Option(
            "--kernel",
            help="WORKLOAD or WORKLOAD/CONFIG that the weights have not seen; repeat for several. The "
            "published workloads if none is named.",
        ),
    ] = None,
    weights: Annotated[
        Path | None,
        typer.Option("--weights", metavar="FILE.safetensors", help="Instead of those that come along."),
    ] = None,
    chip: Annotated[str, typer.Option("--chip", help="A chip with timing data.")] = "a100",
    moves: Annotated[int, typer.Option("--moves", help="Ranked at each position.", min=50)] = 600,
    first_seed: Annotated[int, typer.Option("--first-seed", help="Of positions and climbs.", min=0)] = 10,
    seeds: Annotated[int, typer.Option("--seeds", help="Climbs on each kernel.", min=1)] = 1,
    evaluations: Annotated[
        int, typer.Option("--evaluations", help="Of hill climbing in the second table.", min=1)
    ] = 800,
    only: Annotated[
        str | None, typer.Option("--only", help="One table: rankings or savings.", show_default=False)
    ] = None,
    as_json: Json = False,
) -> None:
    """How well the policy ranks moves on kernels it has never seen, and how many replays that saves."""
    from cuasmrl import workloads
    from cuasmrl.bench import policy as bench

    if only not in (None, "rankings", "savings"):
        raise CuasmrlError(f"--only is rankings or savings, not {only!r}")
    names = kernel or [workload.name for workload in workloads.all() if workload.published]
    how = bench.Examination(
        weights=weights or bench.Examination.weights,
        chip=chip,
        moves=moves,
        first_seed=first_seed,
        seeds=seeds,
        evaluations=evaluations,
    )
    found: dict[str, list[Any]] = {}
    if only != "savings":
        with progress("ranking", as_json) as advance:
            found["rankings"] = ranked = bench.rankings(names, how, advance)
        if not as_json:
            console.print(bench.rankings_table(ranked))
    if only != "rankings":
        with progress("climbing", as_json) as advance:
            found["savings"] = saved = bench.savings(names, how, advance)
        if not as_json:
            console.print(bench.savings_table(saved))
    if as_json:
        print_json({name: [row.as_dict() for row in rows] for name, rows in found.items()})


@app.command()
def vendor(
    directory: Annotated[
        Path, typer.Argument(help="With wheels in its folder `wheels`.", show_default=False)
    ],
    wheel: Annotated[
        list[str] | None, typer.Option("--wheel", help="Only these; repeat for several.")
    ] = None,
    arch: Annotated[
        list[int] | None, typer.Option("--arch", help="Only these chips, e.g. 80; repeat for several.")
    ] = None,
    instructions: Annotated[
        int, typer.Option("--instructions", help="Of each wheel and chip, by whole kernels.", min=1)
    ] = 12_000,
    largest: Annotated[
        int | None, typer.Option("--largest", help="Leave out kernels with more instructions.", min=1)
    ] = None,
    seconds: Annotated[
        float, typer.Option("--seconds", help="Processor time after which a kernel is slow.", min=1)
    ] = 60,
    seed: Annotated[int, typer.Option("--seed", help="Of sample and schedules.")] = 0,
    keep: Annotated[
        Path | None,
        typer.Option("--keep", help="Rows go to this file; those in it are not made again."),
    ] = None,
    mine: Annotated[
        Path | None,
        typer.Option(
            "--mine",
            help="Instead: mine the sample, write the summary of its distances to this file, and compare the "
            "shipped table with it.",
        ),
    ] = None,
    jobs: Annotated[int, typer.Option("--jobs", help="Processes.", min=1)] = 2,
    as_json: Json = False,
) -> None:
    """Kernels of public wheels: written unchanged, checked, linted, rescheduled at random."""
    from cuasmrl import workloads

    if mine is not None:
        from cuasmrl.bench.vendor.evidence import evidence
        from cuasmrl.cli.mine import compare_with_shipped, write_rows

        with progress("mining", as_json) as advance:
            mined = evidence(directory, instructions, seed, advance, wheel, arch or workloads.ARCHS, jobs)
        write_rows(mine, mined.summary)
        compare_with_shipped(mined, as_json)
        return
    from cuasmrl.bench.vendor.campaign import Effort, campaign
    from cuasmrl.bench.vendor.examination import Depth
    from cuasmrl.bench.vendor.table import findings, vendor_table

    effort = Effort(instructions, largest, Depth(seconds=seconds), seed)
    with progress("examining", as_json) as advance:
        rows = campaign(directory, effort, advance, wheel, arch or workloads.ARCHS, keep, jobs)
    if as_json:
        print_json([row.as_dict() for row in rows])
        return
    console.print(vendor_table(rows))
    for line in findings(rows):
        console.print(line, markup=False)


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


def _calibrate(device: str, file: Path, as_json: bool) -> None:
    from cuasmrl.bench.hardware.calibration import calibrate
    from cuasmrl.bench.hardware.table import calibration_table

    with progress("measuring", as_json) as advance:
        found = calibrate(device, advance)
    found.write(file)
    if as_json:
        print_json(found.as_dict())
        return
    console.print(calibration_table(found))
    console.print(f"written to {file}", markup=False)


def _show(
    measure: Callable[[Callable[[int, int], None]], list[Any]],
    tabulate: Callable[[list[Any]], Table],
    as_json: bool,
) -> None:
    with progress("measuring", as_json) as advance:
        figures = measure(advance)
    if as_json:
        print_json([figure.as_dict() for figure in figures])
    else:
        console.print(tabulate(figures))
