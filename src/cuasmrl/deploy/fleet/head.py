"""The head of a fleet: surveys every kernel, plays in rounds, judges what came out.

All decisions are made between rounds from the answers of all tasks so far, which the journal keeps. So the
same kernels, budget and seed give the same schedules on any number of workers, whatever is killed meanwhile.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from cuasmrl.deploy.fleet.budgets import Standing, next_round
from cuasmrl.deploy.fleet.journal import Journal, name_of
from cuasmrl.deploy.fleet.pool import Failed, Pool
from cuasmrl.deploy.fleet.tasks import Answer, Finish, Finished, Job, Play, Survey, Surveyed, Task
from cuasmrl.deploy.recorded import launches_by_kernel
from cuasmrl.deploy.store import Store
from cuasmrl.errors import CuasmrlError
from cuasmrl.files import write_text
from cuasmrl.optimize.slices import BY_BUDGET, Slice

_CONFIG, _JOURNAL, _REPORT = "fleet.json", "journal.jsonl", "report.json"
WIDTH = 0.25
"""Share of the kernels that a later round gives a slice: few enough to follow what is found."""


@dataclass
class Line:
    """A kernel in the table of progress."""

    job: Job
    launches: int
    """Distinct ones that were recorded."""
    surveyed: Surveyed | None = None
    slices: list[Slice] = field(default_factory=list)
    finished: Finished | None = None
    problem: str | None = None

    @property
    def time(self) -> float:
        """Modelled cycles of all its launches; of unknown ones a cycle, so that they are played on last."""
        cycles = self.surveyed.cycles if self.surveyed else None
        return self.launches * (cycles or 1.0)

    @property
    def gain(self) -> float:
        """Confirmed."""
        return self.finished.gain if self.finished else 0.0

    @property
    def spent(self) -> int:
        return self.slices[-1].spent if self.slices else 0

    def as_dict(self) -> dict[str, Any]:
        return {
            "kernel": self.job.kernel,
            "key": self.job.key,
            "launches": self.launches,
            "surveyed": asdict(self.surveyed) if self.surveyed else None,
            "spent": self.spent,
            "search_gain": self.slices[-1].gain if self.slices else 0.0,
            "best": self.slices[-1].best if self.slices else None,
            "result": asdict(self.finished) if self.finished else None,
            "problem": self.problem,
            "run": str(self.job.run),
        }


@dataclass(frozen=True)
class Fleet:
    """What came out."""

    lines: tuple[Line, ...]

    @property
    def gain(self) -> float:
        """Of the whole program, as far as it consists of these launches, each run once."""
        before = sum(line.time for line in self.lines)
        after = sum(line.time / (1 + line.gain) for line in self.lines)
        return before / after - 1 if after else 0.0

    def as_dict(self) -> dict[str, Any]:
        return {"gain": self.gain, "kernels": [line.as_dict() for line in self.lines]}


Watch = Callable[[Sequence[Line], str], None]


def run_fleet(
    store: Store,
    given: Mapping[str, Any],
    budget: int,
    slice_: int,
    place: Path,
    pool: Pool,
    watch: Watch = lambda lines, stage: None,
) -> Fleet:
    """Tune everything that is recorded, with `budget` evaluations for each kernel on average, in slices.

    A place where a fleet has been before is continued.
    """
    if budget < slice_ or slice_ < 1:
        raise CuasmrlError(f"a slice of {slice_} evaluations has to be between 1 and the budget, {budget}")
    if given.get("agent") in BY_BUDGET and slice_ < budget:
        raise CuasmrlError(
            f"{given['agent']} plays by the budget it is given, so it cannot be played in slices; "
            f"give --slice {budget}"
        )
    lines = _lines(store, given, budget, slice_, place)
    journal = Journal(place / _JOURNAL)
    try:
        _carry_out(lines, budget, slice_, journal, pool, watch)
    finally:
        journal.close()
    fleet = Fleet(tuple(lines.values()))
    write_text(place / _REPORT, json.dumps(fleet.as_dict(), indent=1) + "\n")
    return fleet


def _carry_out(
    lines: dict[str, Line], budget: int, slice_: int, journal: Journal, pool: Pool, watch: Watch
) -> None:
    every = list(lines.values())

    def done(task: Task, answer: Answer | Failed, seconds: float) -> None:
        journal.keep(task, answer, seconds)
        _note(lines[task.job.name], answer)
        watch(every, "")

    def carry_out(tasks: Sequence[Task], stage: str) -> None:
        watch(every, stage)
        for task in tasks:
            if name_of(task) in journal.known:
                _note(lines[task.job.name], journal.known[name_of(task)])
        pool.carry_out([task for task in tasks if name_of(task) not in journal.known], done)

    carry_out([Survey(line.job) for line in every], "surveying")
    left = budget * sum(line.problem is None for line in every) // slice_
    width = max(1, round(WIDTH * len(every)))
    number = 0
    while chosen := next_round(_standings(every, slice_), left, width):
        number += 1
        left -= len(chosen)
        tasks = [Play(lines[name].job, slice_ * (len(lines[name].slices) + 1)) for name in chosen]
        carry_out(tasks, f"round {number}")
    played = [line for line in every if line.slices and line.problem is None]
    order = sorted(played, key=lambda line: (-line.time, line.job.name))
    carry_out([Finish(line.job, slice_ * len(line.slices)) for line in order], "judging")
    _forget(every)


def _forget(lines: Sequence[Line]) -> None:
    """Cubins with a result wait no longer."""
    for line in lines:
        if line.finished is not None and line.finished.stored:
            Store(line.job.store).forget_recorded(line.job.key)


def _standings(lines: Sequence[Line], slice_: int) -> dict[str, Standing]:
    whole = sum(line.time for line in lines if line.problem is None)
    return {
        line.job.name: Standing(
            line.time / whole if whole else 0.0,
            line.surveyed.headroom if line.surveyed else 0.0,
            tuple(one.gain for one in line.slices),
            # With fewer evaluations than it was given, there was nothing left to try.
            line.problem is not None or line.spent < slice_ * len(line.slices),
        )
        for line in lines
    }


def _note(line: Line, answer: Answer | Failed) -> None:
    match answer:
        case Surveyed():
            line.surveyed = answer
        case Slice():
            line.slices.append(answer)
        case Finished():
            line.finished = answer
        case Failed(reason):
            line.problem = reason


def _lines(store: Store, given: Mapping[str, Any], budget: int, slice_: int, place: Path) -> dict[str, Line]:
    """Of all that is recorded; of a fleet that goes on, of all that was when it began."""
    asked = {
        "given": {name: str(value) for name, value in sorted(given.items())},
        "budget": budget,
        "slice": slice_,
    }
    config = place / _CONFIG
    if config.exists():
        kept = json.loads(config.read_text(encoding="utf-8"))
        if kept["asked"] != asked:
            raise CuasmrlError(
                f"{place} holds a fleet that was asked for {kept['asked']}; choose another --run"
            )
        kernels = kept["kernels"]
    else:
        kernels = _recorded(store)
        try:
            place.mkdir(parents=True, exist_ok=True)
            write_text(config, json.dumps({"asked": asked, "kernels": kernels}, indent=1) + "\n")
        except OSError as error:
            raise CuasmrlError(f"cannot write {place}: {error.strerror}; choose another --run") from error
    jobs = [
        (Job(str(store.root), str(place), one["key"], one["kernel"], tuple(one["files"]), dict(given)), one)
        for one in kernels
    ]
    return {job.name: Line(job, one["launches"]) for job, one in jobs}


def _recorded(store: Store) -> list[dict[str, Any]]:
    found = []
    for recorded in store.recorded():
        try:
            groups = launches_by_kernel(recorded)
        except CuasmrlError:
            # Without a launch there is nothing to play on; `optimize --recorded` says so.
            continue
        found += [
            {
                "key": recorded.key,
                "kernel": name,
                "files": [str(path) for path in files],
                "launches": len(files),
            }
            for name, files in groups.items()
        ]
    return found
