"""Modelled and published time of each figure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from time import process_time
from typing import Any

from cuasmrl.bench.kept import Kept
from cuasmrl.bench.kernels.figures import Figure
from cuasmrl.bench.kernels.launch_time import LaunchTime, launch_time
from cuasmrl.bench.kernels.subjects import Subject
from cuasmrl.bench.microbenchmarks import NOTHING, missing_compiler
from cuasmrl.errors import CuasmrlError
from cuasmrl.gpu.chips import chip as chip_named
from cuasmrl.workloads.tracing import trace_workload


@dataclass(frozen=True)
class Comparison:
    """A figure and what the model says."""

    id: str
    group: str
    series: str
    chip: str
    kernel: str
    config: str
    """Of a tuner's choices the one that is fastest in the model."""
    sizes: dict[str, int]
    unit: str
    published: float
    published_us: float
    certainty: str
    source: str
    left_out: str
    """Why there is no modelled figure; empty if there is one."""
    modelled: float | None = None
    """In the unit of the published figure."""
    modelled_us: float | None = None
    slowest_us: float | None = None
    fastest_us: float | None = None
    """Modelled at the lowest and the highest clock that the card may have had."""
    cycles: float | None = None
    moved_bytes: int = 0
    """What has to be read and written once."""
    dram_bytes: float | None = None
    """Modelled traffic; None where the model does not say."""
    seconds: float = 0.0
    """Of processor time that the row took."""

    @property
    def ratio(self) -> float | None:
        """Modelled time over published time: below 1 the model is too fast."""
        return None if self.modelled_us is None else self.modelled_us / self.published_us

    @property
    def deviation(self) -> float | None:
        """The ratio or its inverse, whichever is larger."""
        ratio = self.ratio
        return None if ratio is None else max(ratio, 1 / ratio)

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "ratio": self.ratio, "deviation": self.deviation}


def compare(
    figures: Sequence[Figure],
    progress: Callable[[int, int], None],
    keep: Path | None = None,
    changes: Mapping[str, float] = NOTHING,
) -> list[Comparison]:
    """Every figure beside the model; with a file, what is in it is not run again.

    `changes` are numbers of the chips that are different in this run.
    """
    if keep and changes:
        raise CuasmrlError("rows with changed numbers are not kept; leave out --keep or --set")
    run = {figure.id: figure for figure in figures if not _reason(figure)}

    def make(left: list[str]) -> Iterator[Comparison]:
        return (_compared(run[key], changes) for key in left)

    # What is left out is not kept: the next time it may be there.
    made = Kept(Comparison, keep).complete(list(run), lambda row: row.id, make, progress)
    by_id = {row.id: row for row in made}
    return [by_id.get(figure.id) or _empty(figure, _reason(figure)) for figure in figures]


def _reason(figure: Figure) -> str:
    """Why a figure is left out; empty if it is not."""
    if figure.left_out:
        return figure.left_out
    needs_compiler = any(subject.workload.language == "cuda" for subject in figure.subjects())
    return "no CUDA compiler" if needs_compiler and missing_compiler() else ""


def _empty(figure: Figure, left_out: str = "") -> Comparison:
    return Comparison(
        figure.id, figure.group, figure.series, figure.chip, figure.kernel, " | ".join(figure.configs),
        figure.sizes, figure.unit, figure.value, 0.0, figure.certainty, figure.source, left_out,
    )  # fmt: skip


def _compared(figure: Figure, changes: Mapping[str, float]) -> Comparison:
    start = process_time()
    tried = [(subject, _modelled(figure, subject, changes)) for subject in figure.subjects()]
    subject, (nominal, slow, fast) = min(tried, key=lambda pair: pair[1][0].microseconds)
    return replace(
        _empty(figure),
        config=subject.config.name,
        published_us=figure.microseconds(subject),
        modelled=figure.in_unit(nominal.microseconds, subject),
        modelled_us=nominal.microseconds,
        slowest_us=slow.microseconds,
        fastest_us=fast.microseconds,
        cycles=nominal.cycles,
        moved_bytes=subject.moved_bytes,
        dram_bytes=nominal.dram_bytes,
        seconds=process_time() - start,
    )


def _modelled(
    figure: Figure, subject: Subject, changes: Mapping[str, float]
) -> tuple[LaunchTime, LaunchTime, LaunchTime]:
    """At the clock of the figure, the lowest and the highest that it may have been."""
    try:
        kernel = trace_workload(subject.workload, subject.config, chip_named(figure.chip), subject.sizes)
        nominal = launch_time(kernel, figure.clock, figure.condition, changes)
        others = (
            nominal if clock == figure.clock else launch_time(kernel, clock, figure.condition, changes)
            for clock in (figure.clock_low, figure.clock_high)
        )
        low, high = others
    except CuasmrlError as error:
        raise CuasmrlError(f"{figure.id} ({subject.workload.name} {subject.config.name}): {error}") from error
    return nominal, low, high
