"""The SM model beside published measurements, row by row.

`timing/published.csv` holds the measurements and, in our words, how each was made: `what` is the stream of
instructions, `setup` how it is run and `metric` what is read off. A row that has no stream by hand says why.
Rates that follow from the cycles of another row of the same table are not repeated.

`microbenchmarks` makes most rows again with compiled kernels.
"""

from __future__ import annotations

import csv
import re
import statistics
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache
from importlib import resources
from io import StringIO
from typing import Any

from cuasmrl.bench.microbenchmarks import NOTHING, experiments, figure, missing_compiler
from cuasmrl.bench.microbenchmarks.unsettled import Prediction, predictions
from cuasmrl.bench.speed import SpeedFigures, speed
from cuasmrl.bench.streams import SHARED, Memory, issues, listing, round_cycles, run
from cuasmrl.errors import CuasmrlError
from cuasmrl.gpu.chips import chip as chip_named
from cuasmrl.gpu.timing.parameters import chips_with_data, load_parameters

_CLOCK = "CS2R.32 R240, SR_CLOCKLO"
_LOADS = re.compile(r"load (\d+) on the (first|last) of (\d) sub-cores")
_STEADY = re.compile(r"steady loads on (\d) sub-cores")
_LONGEST_STALL = 11
_NEAR = 10
_REACHES: dict[str, tuple[Memory, dict[str, float]]] = {
    "L1": (Memory(sectors=1), {}),
    "L2": (Memory(sectors=1, fresh=True), {}),
    "DRAM": (Memory(sectors=1, fresh=True), {"dram_share": 1.0}),
    "whole lines in L1": (Memory(sectors=4), {}),
}


@dataclass(frozen=True)
class Measurement:
    """A published number and how it came about."""

    id: str
    group: str
    chip: str
    what: str
    setup: str
    metric: str
    value: float
    unit: str
    source: str
    left_out: str
    """Why there is no stream by hand; empty if there is one."""


@dataclass(frozen=True)
class TimingFigures:
    """What the model says of a published number."""

    measurement: Measurement
    model: float | None
    """On a stream of instructions written by hand."""
    compiled: float | None = None
    """On a compiled kernel."""
    unmet: str = ""
    """Why a compiled kernel is not compared although there is one."""

    @property
    def error(self) -> float | None:
        """Of the stream by hand."""
        return _error(self.model, self.measurement.value)

    @property
    def compiled_error(self) -> float | None:
        return _error(self.compiled, self.measurement.value)

    def as_dict(self) -> dict[str, Any]:
        return {
            **asdict(self.measurement),
            "model": self.model,
            "error": self.error,
            "compiled": self.compiled,
            "compiled_error": self.compiled_error,
            "unmet": self.unmet,
        }


def _error(found: float | None, published: float) -> float | None:
    """In percent of the published number; where that is 0, in percent of one cycle."""
    return None if found is None else 100 * (found - published) / (published or 1)


@dataclass(frozen=True)
class Errors:
    """Sizes of errors, in percent."""

    rows: int
    mean: float
    largest: float
    worst: str
    """The row of the largest."""
    near: int
    """Rows that are off by 10 % at most."""

    @staticmethod
    def of(errors: dict[str, float | None]) -> Errors | None:
        sizes = {row: abs(error) for row, error in errors.items() if error is not None}
        if not sizes:
            return None
        worst = max(sizes, key=lambda row: sizes[row])
        near = sum(size <= _NEAR for size in sizes.values())
        return Errors(len(sizes), statistics.fmean(sizes.values()), sizes[worst], worst, near)


@dataclass(frozen=True)
class GroupErrors:
    """How far the model is from the rows of a group."""

    group: str
    rows: int
    hand: Errors | None
    compiled: Errors | None


@lru_cache
def published() -> tuple[Measurement, ...]:
    text = (resources.files("cuasmrl.gpu.timing") / "published.csv").read_text()
    rows = csv.DictReader(StringIO(text))
    return tuple(_measurement(row) for row in rows)


def _measurement(row: dict[str, Any]) -> Measurement:
    return Measurement(**{**row, "value": float(row["value"])})


def timing(
    progress: Callable[[int, int], None], changes: Mapping[str, float] = NOTHING
) -> list[TimingFigures | Prediction | SpeedFigures]:
    """Every published row with what the model says, experiments to be made, then how fast the model is.

    `changes` are numbers of the chips that are different in this run.
    """
    rows = published()
    kernels = not missing_compiler()
    figures: list[TimingFigures] = []
    for done, row in enumerate(rows, 1):
        figures.append(compare(row, kernels, changes))
        progress(done, len(rows))
    return [*figures, *(predictions(changes) if kernels else ()), *speed()]


def parsed_changes(texts: Iterable[str]) -> dict[str, float]:
    """`warp_choice=1` and the like; every chip with timing data must have the number, and allow the value."""
    changes = {}
    for text in texts:
        name, _, value = text.partition("=")
        try:
            changes[name] = float(value)
        except ValueError:
            raise CuasmrlError(
                f"--set {text!r} is not NAME=VALUE with a number, such as warp_choice=1."
            ) from None
    for chip in chips_with_data():
        load_parameters(chip).with_values(changes)
    return changes


def compare(row: Measurement, kernels: bool = True, changes: Mapping[str, float] = NOTHING) -> TimingFigures:
    """A published row beside the model: on its stream, and on its compiled kernel if kernels are wanted."""
    by_hand = None if row.left_out else modelled(row, changes)
    experiment = experiments().get(row.id) if kernels else None
    if experiment is None:
        return TimingFigures(row, by_hand)
    if experiment.unmet:
        return TimingFigures(row, by_hand, unmet=experiment.unmet)
    return TimingFigures(row, by_hand, figure(experiment, row.chip, changes))


def summary(figures: Iterable[TimingFigures]) -> list[GroupErrors]:
    """Errors of each group of which something was run, in the order of the rows, and of all together."""
    groups: dict[str, list[TimingFigures]] = {}
    everything = list(figures)
    for f in everything:
        groups.setdefault(f.measurement.group, []).append(f)
    groups["all"] = everything
    found = [
        GroupErrors(
            group,
            len(mine),
            Errors.of({f.measurement.id: f.error for f in mine}),
            Errors.of({f.measurement.id: f.compiled_error for f in mine}),
        )
        for group, mine in groups.items()
    ]
    return [g for g in found if g.hand or g.compiled]


def modelled(row: Measurement, changes: Mapping[str, float] = NOTHING) -> float:
    """The model's number for a row."""
    arch = chip_named(row.chip).arch
    match row.setup.split(", ", 1)[0]:
        case "between clocks":
            return _between_clocks(row, arch, changes)
        case "to the last":
            return _to_the_last(row, arch, changes)
        case "least stall that holds the last":
            return _least_stall(row, arch, changes)
        case "round and round":
            return _rounds(row, arch, changes)
    if match := _LOADS.fullmatch(row.setup):
        number, which, cores = int(match[1]), match[2], int(match[3])
        # The publication calls the cycle of the first load 2.
        warp = cores - 1 if which == "last" else 0
        return _load_issues(row, arch, cores, warp, changes)[number - 1] + 2
    if match := _STEADY.fullmatch(row.setup):
        cycles = _load_issues(row, arch, int(match[1]), 0, changes)
        return (cycles[-1] - cycles[8]) / (len(cycles) - 9)
    raise CuasmrlError(f"{row.id}: the bench does not know the setup {row.setup!r}.")


def _lines(row: Measurement, **fields: object) -> list[str]:
    """The stream of a row, each line as often as there are chains."""
    words = _Words(row.setup)
    lines = [line.strip() for line in row.what.split(";")]
    return [
        line.format(register=32 + 8 * k, wait="-" * k + str(k) + "-" * (5 - k), board=k, **fields)
        for k in range(words.number("chains"))
        for line in lines
    ]


class _Words:
    """The setup of a row: `round and round, 4 warps, 3 chains, 2 passes, L2`."""

    def __init__(self, setup: str) -> None:
        self.words = setup.split(", ")

    def number(self, noun: str) -> int:
        """Before a noun, one if the noun is not there."""
        return next(
            (int(w.split()[0]) for w in self.words if w.endswith((f" {noun}", f" {noun.rstrip('s')}"))), 1
        )

    def memory(self) -> tuple[Memory, dict[str, float]]:
        """What accesses touch, and the numbers that this changes."""
        place = next((word for word in self.words if word in _REACHES), None)
        return _REACHES[place] if place else (Memory(passes=self.number("passes")), {})


def _between_clocks(row: Measurement, arch: int, changes: Mapping[str, float]) -> float:
    lines = _lines(row)
    elapsed = _elapsed(lines, row.chip, arch, changes)
    match row.metric:
        case "cycles":
            return elapsed
        case "bubbles":
            return elapsed - len(lines) - 1
        case "cycles more than without":
            return elapsed - _elapsed([], row.chip, arch, changes)
        case "whole cycles per instruction":
            return round(elapsed / len(lines))
    raise CuasmrlError(f"{row.id}: the bench does not know the metric {row.metric!r}.")


def _elapsed(lines: list[str], chip: str, arch: int, changes: Mapping[str, float]) -> int:
    cycles = issues(run(listing([_CLOCK, *lines, _CLOCK], arch), chip, changes=changes))
    return cycles[len(lines) + 1] - cycles[0]


def _to_the_last(row: Measurement, arch: int, changes: Mapping[str, float]) -> float:
    if "cold constants" in row.setup:
        changes = {"constant_miss": load_parameters(row.chip)["constant_miss"], **changes}
    lines = _lines(row)
    memory, reach = _Words(row.setup).memory()
    cycles = issues(run(listing(lines, arch), row.chip, memory=memory, changes={**reach, **changes}))
    elapsed = cycles[len(lines) - 1] - cycles[0]
    return elapsed - len(lines) + 1 if row.metric == "bubbles" else elapsed


def _least_stall(row: Measurement, arch: int, changes: Mapping[str, float]) -> float:
    """The smallest stall with which the last but one makes the last wait for longer than the stall."""
    for stall in range(1, _LONGEST_STALL + 1):
        lines = _lines(row, stall=stall)
        cycles = issues(run(listing(lines, arch), row.chip, changes=changes))
        if cycles[len(lines) - 1] - cycles[len(lines) - 2] > stall:
            return stall
    raise CuasmrlError(f"{row.id}: no stall makes the last instruction wait.")


def _rounds(row: Measurement, arch: int, changes: Mapping[str, float]) -> float:
    words, lines = _Words(row.setup), _lines(row)
    warps = words.number("warps")
    memory, reach = words.memory()
    changes = {**reach, **changes}
    cycles = round_cycles(lines, row.chip, arch, warps, memory, changes)
    match row.metric:
        case "cycles per round":
            return cycles
        case "cycles per instruction":
            return cycles / len(lines)
        case "bubbles per instruction":
            return cycles / len(lines) - 1
        case "cycles beyond one pass":
            return cycles - round_cycles(lines, row.chip, arch, warps, SHARED, changes)
        case "lanes per cycle":
            return 32 * warps * len(lines) / cycles
        case "bytes per cycle":
            return 128 * warps * len(lines) / cycles
    raise CuasmrlError(f"{row.id}: the bench does not know the metric {row.metric!r}.")


def _load_issues(
    row: Measurement, arch: int, cores: int, warp: int, changes: Mapping[str, float]
) -> list[int]:
    """When one of several warps, each on its own sub-core, issues 24 loads that hit."""
    result = run(listing([row.what] * 24, arch), row.chip, warps=cores, changes=changes)
    cycles = issues(result, warp)
    return [cycle - cycles[0] for cycle in cycles[:24]]
