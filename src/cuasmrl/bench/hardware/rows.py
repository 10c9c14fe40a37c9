"""Published, modelled and measured figures of the same experiments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from cuasmrl.bench.hardware.clocks import measured, unreadable
from cuasmrl.bench.hardware.session import Session
from cuasmrl.bench.microbenchmarks import experiments, figure
from cuasmrl.bench.microbenchmarks.cubins import cubin_of
from cuasmrl.bench.microbenchmarks.experiment import Experiment
from cuasmrl.bench.timing import Measurement, published
from cuasmrl.errors import CuasmrlError
from cuasmrl.gpu.timing import load_parameters

NOTHING: Mapping[str, float] = {}
COPY_BYTES = "copy_bytes"
"""The number that the second experiment decides about, where a chip has it."""
_COPIES = (0, 1, 2, 4, 8)
_THREADS = (32, 128, 256)


@dataclass(frozen=True)
class Row:
    """One experiment."""

    id: str
    group: str
    what: str
    unit: str
    published: float | None
    """On this chip; None where others were measured only."""
    modelled: float | None
    measured: float | None
    """The median of the samples."""
    samples: tuple[float, ...] = ()
    reason: str = ""
    """Why nothing was measured."""

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Behind:
    """How long the last of some warps waits for matrices behind asynchronous copies, in cycles."""

    copies: int
    threads: int
    modelled: float | None
    at_lowest: float | None
    """Modelled with the lowest `copy_bytes` of the chip's range."""
    at_highest: float | None
    measured: float
    samples: tuple[float, ...]

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def rows_of(session: Session, progress: Callable[[], None] = lambda: None) -> list[Row]:
    """Every experiment once: with the published figure of this chip, or without one."""
    found = []
    for measurement, experiment in chosen(session.chip.key):
        found.append(_row(session, measurement, experiment))
        progress()
    return found


def chosen(chip: str) -> list[tuple[Measurement, Experiment]]:
    """Experiments that differ, each with its row for this chip if there is one."""
    by_kind: dict[tuple[Any, ...], tuple[Measurement, Experiment]] = {}
    for row in published():
        experiment = experiments().get(row.id)
        if experiment is None:
            continue
        kind = (experiment.launched, experiment.reading, experiment.per)
        if kind not in by_kind or (row.chip == chip and by_kind[kind][0].chip != chip):
            by_kind[kind] = (row, experiment)
    return list(by_kind.values())


def _row(session: Session, measurement: Measurement, experiment: Experiment) -> Row:
    chip = session.chip.key
    what = f"{experiment.source} {experiment.kernel}, {experiment.threads} threads, {experiment.inputs}"
    value = measurement.value if measurement.chip == chip else None
    missing = _missing(experiment, session.chip.arch)
    reason = missing or unreadable(experiment)
    samples: tuple[float, ...] = ()
    if not reason:
        try:
            samples = measured(experiment, session)
        except CuasmrlError as error:
            reason = str(error)
    return Row(
        measurement.id, measurement.group, what, measurement.unit, value,
        None if experiment.unmet or missing else _modelled(experiment, chip),
        median(samples) if samples else None, samples, reason,
    )  # fmt: skip


def _missing(experiment: Experiment, arch: int) -> str:
    """Why there is no such kernel on an architecture; empty if there is one."""
    try:
        cubin_of(experiment.source, arch).kernel(experiment.kernel)
    except CuasmrlError:
        return f"{experiment.source}.cu has no such kernel for sm_{arch}"
    return ""


def _modelled(experiment: Experiment, chip: str, changes: Mapping[str, float] = NOTHING) -> float | None:
    """None on a chip of which there is no timing data, or whose model refuses the kernel."""
    try:
        return figure(experiment, chip, changes)
    except CuasmrlError:
        return None


def behind(session: Session, progress: Callable[[], None] = lambda: None) -> list[Behind]:
    """LDSM behind none to eight LDGSTS.128 of each warp, by one, four and eight warps."""
    found = []
    for threads in _THREADS:
        for copies in _COPIES:
            experiment = Experiment(
                row=f"behind {copies}", source="copies", kernel=f"behind_x{copies}", blocks=1,
                threads=threads, inputs="data sums clocks", patch="", reading="all warps", per=1.0, unmet="",
            )  # fmt: skip
            samples = measured(experiment, session)
            nominal = _modelled(experiment, session.chip.key)
            low, high = (_modelled(experiment, session.chip.key, c) for c in _extremes(session.chip.key))
            found.append(Behind(copies, threads, nominal, low, high, median(samples), samples))
            progress()
    return found


def behind_count() -> int:
    return len(_THREADS) * len(_COPIES)


def _extremes(chip: str) -> tuple[dict[str, float], dict[str, float]]:
    """The two ends of what `copy_bytes` may be."""
    try:
        number = load_parameters(chip).numbers.get(COPY_BYTES)
    except CuasmrlError:
        number = None
    return ({}, {}) if number is None else ({COPY_BYTES: number.low}, {COPY_BYTES: number.high})
