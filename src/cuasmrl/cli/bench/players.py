"""The commands that compare players, and what they are scored by."""

from pathlib import Path
from typing import Annotated, Any

import typer

from cuasmrl.cli.agents import ListsAgents, complete
from cuasmrl.cli.bench.shared import app, show
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
from cuasmrl.cli.workers import On
from cuasmrl.errors import CuasmrlError


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

        show(lambda advance: steps(before, advance), steps_table, as_json)
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


@app.command(cls=ListsAgents)
def agents(
    agent: Annotated[
        list[str] | None,
        typer.Option(
            "--agent",
            metavar="NAME",
            help="One of the agents below, NAME:BUDGET to give it a budget of its own; repeat for several. "
            "All if none is named.",
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
    seconds: Annotated[
        list[int] | None,
        typer.Option(
            "--seconds",
            help="Of processor time for each game, instead of a budget; repeat for several.",
            min=1,
        ),
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
    on: On = None,
    chip: Annotated[str, typer.Option("--chip", help="A chip with timing data.")] = "a100",
    scoreboards: ScoreboardsName = None,
    objective: ObjectiveName = None,
    l2: L2Name = None,
    as_json: Json = False,
) -> None:
    """Agents at equal budgets, or equal processor time, on the published workloads.

    Gains by the median over the gate's ensemble: median and range over seeds; then how far each player is
    ahead of each other one, with the middle 95 % over resampled games. Hidden devices are chips that no agent
    knows; gains on them are confirmed on the device itself and on chips drawn around it.
    """
    from cuasmrl import workloads
    from cuasmrl.agents import AGENTS
    from cuasmrl.bench.agents import VIRTUAL, Contest
    from cuasmrl.bench.agents import agents as measure
    from cuasmrl.bench.agents_table import agents_table

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
        tuple(seconds or ()),
    )
    show(lambda advance: measure(contest, advance, keep, jobs, on), agents_table, as_json)


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
    show(lambda advance: measure(names, what, cache, advance), agreement_table, as_json)


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
    on: On = None,
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
    show(lambda advance: measure(contest, advance, keep, jobs, on), objective_table, as_json)


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
            help="One of the agents below; repeat for several. The default one if none is named.",
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
    from cuasmrl.optimize import default_agent

    how = scoreboards_named(scoreboards)
    effort = Effort(
        tuple(agent or [default_agent()]),
        budget,
        trial,
        chip=chip,
        scoreboards=how,
        objective=objective_named(objective),
        l2=l2_named(l2),
    )
    names = workload or [w.name for w in workloads.all() if w.published]
    show(lambda advance: measure(names, effort, advance, keep), results_table, as_json)


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
