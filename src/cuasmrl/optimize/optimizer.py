"""Play on a kernel, keep everything in a run directory, and let the gate judge the best schedule."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from typing import Any

from cuasmrl.agents import Agent
from cuasmrl.errors import CuasmrlError
from cuasmrl.game import BudgetSpentError, Clock, Evaluation, Game
from cuasmrl.gpu.devices import Timer, VirtualTimer, open_timer
from cuasmrl.gpu.devices.pool import Alone, Crew, PooledTimer, replica_of
from cuasmrl.gpu.traced import TracedKernel
from cuasmrl.markup import card
from cuasmrl.optimize.by_hand import BY_HAND, ByHand
from cuasmrl.optimize.choice import fastest
from cuasmrl.optimize.finalists import all_dropped, settle
from cuasmrl.optimize.gate import TRACED_SEED, Standard, Verdict, judge, no_improvement
from cuasmrl.optimize.players import settings_of, with_places
from cuasmrl.optimize.request import Request
from cuasmrl.optimize.runs import RunConfig, RunDirectory, versions
from cuasmrl.optimize.runs.directory import check_vacant, vacant
from cuasmrl.optimize.subject import Subject, prepare
from cuasmrl.schedule import Schedule, Scoreboards

RUNS = Path("runs")


@dataclass(frozen=True)
class Played:
    """How far play has come."""

    done: int
    budget: int
    gain: float
    """Of the best schedule so far, as the searching timer sees it."""
    measured: int
    """How many the device was asked for; the others were known from before."""
    tried: float
    """Gain of the schedule that was timed last; -1 if it could not be timed."""


@dataclass(frozen=True)
class Watch:
    """Who wants to know how it goes."""

    stage: Callable[[str], None] = lambda what: None
    choosing: Callable[[int, int], None] = lambda done, total: None
    prepared: Callable[[Subject, Path], None] = lambda subject, run: None
    played: Callable[[Played], None] = lambda played: None
    found: Callable[[Schedule], None] = lambda best: None
    """A better schedule than all before."""


def together(first: Watch, second: Watch) -> Watch:
    """Both are told of everything."""

    def both(one: Callable[..., None], other: Callable[..., None]) -> Callable[..., None]:
        def told(*what: Any) -> None:
            one(*what)
            other(*what)

        return told

    return Watch(*(both(getattr(first, each.name), getattr(second, each.name)) for each in fields(Watch)))


@dataclass(frozen=True)
class Optimized:
    """What came out."""

    subject: Subject = field(repr=False)
    run: Path
    config: RunConfig
    evaluations: int
    search_gain: float
    """What the search believed; the verdict's is the one that counts."""
    verdict: Verdict
    cubin: Path | None
    """Where the new cubin is; None if the original is kept."""

    @property
    def gain_over_fastest(self) -> float | None:
        """On the nominal chip, over the config that is fastest as compiled; None if no config was chosen."""
        candidates = self.subject.candidates
        own = [c.cycles for c in candidates if c.config == self.subject.kernel.config and c.cycles]
        best = fastest(candidates).cycles if own else None
        before, after = self.verdict.before, self.verdict.after
        if best is None or before is None or after is None:
            return None
        share = after / before if self.verdict.accepted else 1.0
        return best / (own[0] * share) - 1

    def _repr_html_(self) -> str:
        """For notebooks; `cuasmrl report` tells all."""
        verdict, kernel = self.verdict, self.subject.kernel
        rows = [(check.name, check.outcome.value, check.sentence) for check in verdict.checks]
        lines = [
            verdict.sentence,
            f"{self.evaluations:,} evaluations by {self.config.agent}, seed {self.config.seed}",
            verdict.modelled,
            f"run: {self.run}",
        ]
        return card(f"{kernel.name} {kernel.config} on {self.subject.device}", lines, ("check", "", ""), rows)

    def as_dict(self) -> dict[str, Any]:
        return {
            "run": str(self.run),
            "config": self.config.as_dict(),
            "candidates": [asdict(candidate) for candidate in self.subject.candidates],
            "evaluations": self.evaluations,
            "search_gain": self.search_gain,
            "gain_over_fastest": self.gain_over_fastest,
            "verdict": self.verdict.as_dict(),
            "cubin": str(self.cubin) if self.cubin else None,
        }


def optimize(
    request: Request,
    run: Path | None = None,
    output: Path | None = None,
    watch: Watch | None = None,
    crew: Crew | None = None,
) -> Optimized:
    """Start a run in a new directory; with a crew its workers time what the agent asks for."""
    watch = watch or Watch()
    request.check()
    agent = request.player
    if run is not None:
        check_vacant(run)
    _check_output(output)
    subject = prepare(request, watch.choosing)
    timer = timer_of(subject, request)
    config = config_of(request, agent, subject)
    check_movable(subject, timer, config)
    place = run or vacant(RUNS / _name(subject, request))
    return carry_out(
        RunDirectory.create(place, config), agent, subject, timer, request.standard, output, watch, crew
    )


def submit(
    request: Request,
    subject: Subject,
    visited: Sequence[Schedule],
    run: Path | None = None,
    watch: Watch | None = None,
) -> Optimized:
    """A run of schedules that somebody has found by hand: picked from, proved and judged like any other."""
    if not visited:
        raise CuasmrlError("nothing has been tried, so there is nothing to judge; make a move first")
    request = replace(request, agent=BY_HAND, budget=len(visited))
    if run is not None:
        check_vacant(run)
    agent, timer = ByHand(tuple(visited)), timer_of(subject, request)
    place = run or vacant(RUNS / _name(subject, request))
    directory = RunDirectory.create(place, config_of(request, agent, subject))
    return carry_out(directory, agent, subject, timer, request.standard, None, watch or Watch())


def resume(
    run: Path,
    given: Mapping[str, Any] | None = None,
    output: Path | None = None,
    watch: Watch | None = None,
    crew: Crew | None = None,
) -> Optimized:
    """Continue a run: what was timed before is not timed again, and the end is as if it had never stopped."""
    watch = watch or Watch()
    directory = RunDirectory.open(run)
    request = Request.of_run(directory.config, given or {})
    if request.agent == BY_HAND:
        raise CuasmrlError(f"{run} was played by hand; go on with `cuasmrl play --from {run}`")
    _check_output(output)
    agent = request.player
    subject = prepare(request, watch.choosing)
    difference = directory.config.difference(config_of(request, agent, subject))
    if difference is not None:
        raise CuasmrlError(f"{run} was started with {difference}; start another run with --run instead")
    timer = timer_of(subject, request)
    return carry_out(directory, agent, subject, timer, request.standard, output, watch, crew)


def carry_out(
    run: RunDirectory,
    agent: Agent,
    subject: Subject,
    timer: Timer,
    standard: Standard,
    output: Path | None,
    watch: Watch,
    crew: Crew | None = None,
) -> Optimized:
    kernel = subject.kernel
    run.keep_original(kernel.cubin, subject.launch)
    watch.prepared(subject, run.path)
    with _spread(timer, subject, crew) as playing:
        if isinstance(timer, VirtualTimer):
            watch.stage("measuring how much has to be replayed")
            run.keep_effort(timer.effort)
            watch.stage(f"schedules are scored by {timer.effort.sentence}")
        clock = play(run, with_places(agent, run.path), subject, playing, watch)
    best, verdict = _judged(run, clock, subject, timer, standard, watch)
    cubin = None
    result = best.apply(kernel.cubin) if verdict.accepted else None
    certificate = verdict.certificate.as_dict() if verdict.certificate else None
    run.finish(verdict.as_dict(), certificate, result)
    if result is not None:
        cubin = output or run.path / "result.cubin"
        if output is not None:
            result.save(output)
    return Optimized(subject, run.path, run.config, clock.spent, clock.gain, verdict, cubin)


@contextlib.contextmanager
def _spread(timer: Timer, subject: Subject, crew: Crew | None) -> Iterator[Timer]:
    """The same timer, asked on many workers while somebody plays."""
    if crew is None or isinstance(crew, Alone):
        if crew is not None and isinstance(timer, VirtualTimer):
            timer.workers = 1
        yield timer
        return
    launch = partial(subject.problems.main.launch, TRACED_SEED)
    pooled = PooledTimer(timer, crew, lambda: replica_of(timer, launch, crew.width, crew.own_gpus))
    try:
        yield pooled
    finally:
        pooled.close()


def _judged(
    run: RunDirectory, clock: Clock, subject: Subject, timer: Timer, standard: Standard, watch: Watch
) -> tuple[Schedule, Verdict]:
    """Pick a schedule, and let the gate judge it."""
    kernel, original = subject.kernel, subject.kernel.original
    if clock.best_time >= clock.start:
        return clock.best, no_improvement(kernel, timer)

    def judged(schedule: Schedule) -> Verdict:
        run.keep_best(schedule, clock.time(schedule))
        opened = partial(open_timer, subject.device)
        return judge(kernel, schedule, subject.problems, timer, opened, watch.stage, standard)

    def drop(key: bytes, reason: str) -> None:
        run.drop(key, reason)
        watch.stage(f"dropped a finalist: {reason}")

    watch.stage("picking a schedule")
    finalists = clock.finalists(timer.finalists)
    settled = settle(original, finalists, timer, judged, run.dropped(), drop)
    if settled is not None:
        return settled.schedule, settled.verdict
    dropped = run.dropped()
    reasons = [dropped[schedule.key] for schedule in finalists]
    return clock.best, all_dropped(no_improvement(kernel, timer), reasons)


def play(run: RunDirectory, agent: Agent, subject: Subject, timer: Timer, watch: Watch) -> Clock:
    """Every evaluation goes to the log before play goes on, and every improvement to its file."""
    original = subject.kernel.original
    log = run.open_log()
    known = log.known
    start = known.get(original.key)
    if start is None:
        start = timer.time(original)
    log.record(Evaluation(0, original.key, start, True))

    def listen(evaluation: Evaluation) -> None:
        log.record(evaluation)
        if evaluation.is_best:
            run.keep_best(clock.best, clock.best_time)
            watch.found(clock.best)
        measured = max(0, evaluation.number - max(0, len(log.found) - 1))
        tried = clock.start / evaluation.time - 1
        watch.played(Played(evaluation.number, clock.budget, clock.gain, measured, tried))

    clock = Clock(timer, original, run.config.budget, {**known, original.key: start}, listen)
    try:
        with contextlib.suppress(BudgetSpentError):
            agent.play(lambda: _game(subject, clock, run.config), run.config.seed)
    finally:
        log.close()
    return clock


def timer_of(subject: Subject, request: Request) -> Timer:
    launch = partial(subject.problems.main.launch, TRACED_SEED)
    return open_timer(subject.device, subject.kernel, launch, request.objective, request.seed)


def config_of(request: Request, agent: Agent, subject: Subject) -> RunConfig:
    return RunConfig(
        source=subject.source,
        kernel=subject.kernel.listing.kernel.name,
        cubin=subject.digest,
        problem=subject.problem,
        device=subject.device,
        agent=request.agent,
        settings=settings_of(agent),
        budget=request.budget,
        seed=request.seed,
        scoreboards=request.scoreboards,
        l2=request.l2,
        objective=request.objective,
        min_faster=request.min_faster,
        min_gain=request.min_gain,
        versions=versions(subject.compiler),
    )


def _name(subject: Subject, request: Request) -> str:
    kernel = subject.kernel
    parts = (Path(kernel.name).stem, kernel.config, kernel.chip.key, request.agent, f"seed{request.seed}")
    return "-".join(parts)


def _game(subject: Subject, clock: Clock, config: RunConfig) -> Game:
    kernel = subject.kernel
    traced = kernel if isinstance(kernel, TracedKernel) else None
    return Game(kernel.listing, clock, traced, scoreboards=Scoreboards(config.scoreboards))


def check_movable(subject: Subject, timer: Timer, config: RunConfig) -> None:
    """A game without moves is refused here, before anything is written."""
    _game(subject, Clock(timer, subject.kernel.original, budget=1), config)


def _check_output(output: Path | None) -> None:
    """Better now than after hours of play."""
    if output is not None and output.is_dir():
        raise CuasmrlError(f"cannot write {output}: it is a directory; name a file")
    if output is not None and not output.absolute().parent.is_dir():
        raise CuasmrlError(f"cannot write {output}: there is no directory {output.parent}; make it first")
