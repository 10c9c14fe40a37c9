"""Public figures of whole kernels: `figures.csv`, a row each, in our words.

| column | holds |
| --- | --- |
| id | a letter for the source, a number |
| group | memory, gemm, attention, arithmetic or launch |
| series | rows that are one problem in several sizes or configs; their order is compared by itself |
| chip | by its short name |
| clock, clock_low, clock_high | MHz of the SMs: stated, or the usual one and what it may have been |
| kernel, config, sizes | what is run; configs with a bar between them are those that a tuner chose from |
| l2, clocked | the condition, see `launch_time.Condition` |
| value, unit | as published: GB/s, TFLOP/s or us |
| certainty | high: kernel, config, clock and card are stated; medium: one is inferred; low: more, or a plot |
| source, note | where it stands; what was inferred, and from what |
"""

from __future__ import annotations

import csv
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from io import StringIO

from cuasmrl.bench.kernels.launch_time import Condition
from cuasmrl.bench.kernels.subjects import Subject, subject_of
from cuasmrl.errors import CuasmrlError
from cuasmrl.gpu.chips import CHIPS
from cuasmrl.gpu.timing import load_parameters

UNITS = ("GB/s", "TFLOP/s", "us")
CERTAINTIES = ("high", "medium", "low")


@dataclass(frozen=True)
class Figure:
    """One published figure."""

    id: str
    group: str
    series: str
    chip: str
    clock: float
    clock_low: float
    clock_high: float
    kernel: str
    configs: tuple[str, ...]
    """The config, or those that a tuner chose from."""
    sizes: dict[str, int]
    condition: Condition
    value: float
    unit: str
    certainty: str
    source: str
    note: str

    def subjects(self) -> list[Subject]:
        arch = CHIPS[self.chip].arch
        return [subject_of(self.kernel, config, self.sizes, arch) for config in self.configs]

    @property
    def left_out(self) -> str:
        """Why the model has nothing to say of it; empty if it has."""
        if self.chip not in CHIPS:
            return f"no chip {self.chip}"
        try:
            load_parameters(self.chip)
        except CuasmrlError:
            return f"no timing data of {self.chip}"
        return ""

    def microseconds(self, subject: Subject) -> float:
        """The published time."""
        return convert(self.value, self.unit, subject)

    def in_unit(self, microseconds: float, subject: Subject) -> float:
        """A time in the unit of the figure."""
        return convert(microseconds, self.unit, subject)


def convert(value: float, unit: str, subject: Subject) -> float:
    """From microseconds to a rate or back, which is the same sum."""
    match unit:
        case "us":
            return value
        case "GB/s":
            return subject.moved_bytes / value * 1e-3
        case "TFLOP/s":
            return subject.operations / value * 1e-6
    raise CuasmrlError(f"There is no unit {unit!r}; figures are in {', '.join(UNITS)}.")


@lru_cache
def figures() -> tuple[Figure, ...]:
    """All of them, in the order of the file."""
    text = (resources.files("cuasmrl.bench.kernels") / "figures.csv").read_text("utf-8")
    return tuple(_figure(row) for row in csv.DictReader(StringIO(text)))


def _figure(row: dict[str, str]) -> Figure:
    try:
        return Figure(
            id=row["id"],
            group=row["group"],
            series=row["series"],
            chip=row["chip"],
            clock=float(row["clock"]),
            clock_low=float(row["clock_low"]),
            clock_high=float(row["clock_high"]),
            kernel=row["kernel"],
            configs=tuple(config.strip() for config in row["config"].split("|")),
            sizes={name: int(size) for name, size in (pair.split("=") for pair in row["sizes"].split())},
            condition=Condition(row["l2"], row["clocked"]),
            value=float(row["value"]),
            unit=row["unit"],
            certainty=row["certainty"],
            source=row["source"],
            note=row["note"],
        )
    except (KeyError, ValueError) as error:
        raise CuasmrlError(f"figures.csv: row {row.get('id')} cannot be read: {error}.") from error


def chosen(only: Iterable[str], chips: Iterable[str]) -> list[Figure]:
    """Figures with one of these ids, or whose group, series or kernel begins so, on these chips."""
    words, wanted = tuple(only), set(chips)
    unknown = wanted - {figure.chip for figure in figures()}
    if unknown:
        known = ", ".join(sorted({figure.chip for figure in figures()}))
        raise CuasmrlError(f"There are no figures of {', '.join(sorted(unknown))}; choose one of {known}.")
    found = [
        figure
        for figure in figures()
        if (not wanted or figure.chip in wanted)
        and (not words or figure.id in words or any(name.startswith(words) for name in _names(figure)))
    ]
    if not found:
        raise CuasmrlError(f"No figure is called {', '.join(words)}; see docs/whole-kernels.md.")
    return found


def _names(figure: Figure) -> tuple[str, ...]:
    return figure.group, figure.series, figure.kernel
