"""Published, modelled and measured figures of the same experiments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from cuasmrl.bench.hardware.clocks import measured, unreadable
from cuasmrl.bench.hardware.session import Session
from cuasmrl.bench.microbenchmarks import experiments, figure, unsettled
from cuasmrl.bench.microbenchmarks.cubins import cubin_of
from cuasmrl.bench.microbenchmarks.experiment import Experiment
from cuasmrl.bench.timing import Measurement, published
from cuasmrl.errors import CuasmrlError
from cuasmrl.gpu.timing import load_parameters

NOTHING: Mapping[str, float] = {}
COPY_BYTES = "copy_bytes"
"""The number that experiments with copies decide about."""


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
class Unsettled:
    """An experiment that decides between settings of a number of the chip."""

    what: str
    predicted: dict[float, float]
    """Modelled cycles by setting; empty on a chip whose file has no choice."""
    measured: float | None
    """The median of the samples."""
    samples: tuple[float, ...] = ()
    reason: str = ""
    """Why nothing was measured."""

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


def unsettled_rows(session: Session, progress: Callable[[], None] = lambda: None) -> list[Unsettled]:
    """Loads of matrices behind and beside asynchronous copies."""
    found = []
    for what, experiment in unsettled.experiments().items():
        try:
            samples = measured(experiment, session)
        except CuasmrlError as error:  # sm_75 has no LDGSTS
            found.append(Unsettled(what, {}, None, reason=str(error)))
        else:
            found.append(Unsettled(what, _predicted(experiment, session.chip.key), median(samples), samples))
        progress()
    return found


def _predicted(experiment: Experiment, chip: str) -> dict[float, float]:
    try:
        number = load_parameters(chip).numbers.get(COPY_BYTES)
    except CuasmrlError:
        return {}
    by_setting = {
        setting: _modelled(experiment, chip, {COPY_BYTES: setting})
        for setting in (number.choices if number is not None else ())
    }
    return {setting: cycles for setting, cycles in by_setting.items() if cycles is not None}
