"""Experiments of `microbenchmarks` on a GPU: read from the clocks that the kernels store themselves.

Some figures of the model are read off its record of issues, which a GPU does not have; those are left out
with the reason.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from statistics import median
from typing import Any

import numpy as np
import numpy.typing as npt

from cuasmrl.bench.hardware.session import Session
from cuasmrl.bench.microbenchmarks.cubins import cubin_of
from cuasmrl.bench.microbenchmarks.experiment import Experiment
from cuasmrl.bench.microbenchmarks.inputs import inputs_of
from cuasmrl.gpu.chips import WARP_THREADS
from cuasmrl.gpu.launches.launch import Launch

WARM_UPS, SAMPLES = 2, 7
_CLOCK_CYCLES = 2
"""Between two reads of the clock with nothing between them: Abdelkhalik et al. take it off."""
_WRAP = 1 << 32
_WITHOUT_CLOCKS = ("data", "data sums")
_READINGS = ("all warps", "first warp", "lanes", "bytes", "turns", "whole cycles")
_BEYOND = "beyond "


@dataclass(frozen=True)
class Clocks:
    """When each warp read the clock before and after, in cycles since the first warp's first."""

    starts: tuple[int, ...]
    stops: tuple[int, ...]

    @property
    def all_warps(self) -> int:
        return max(self.stops) - min(self.starts)

    @property
    def first_warp(self) -> int:
        return self.stops[0] - self.starts[0]


def unreadable(experiment: Experiment) -> str:
    """Why a GPU cannot give the figure of an experiment; empty if it can."""
    if experiment.patch:
        return "its words are changed, and nothing stores the clock any more"
    if experiment.inputs in _WITHOUT_CLOCKS:
        return "it is read off the model's record of issues"
    if experiment.blocks > 1:
        return "clocks of several SMs cannot be compared"
    if experiment.reading not in _READINGS and not experiment.reading.startswith(_BEYOND):
        return f"{experiment.reading!r} is not read from two clocks"
    return ""


def measured(experiment: Experiment, session: Session) -> tuple[float, ...]:
    """The figure of an experiment, a sample for each launch after the first ones."""
    cubin = cubin_of(experiment.source, session.gpu.arch)
    arguments = inputs_of(experiment.inputs).arguments
    launch = Launch((experiment.blocks, 1, 1), (experiment.threads, 1, 1), 0, arguments)
    number = max(n for n, argument in enumerate(arguments) if isinstance(argument, np.ndarray))
    runs = session.run(cubin, experiment.kernel, launch, WARM_UPS + SAMPLES)[WARM_UPS:]
    clocks = [clocks_of(run[number], experiment.threads) for run in runs]
    if experiment.reading.startswith(_BEYOND):
        inputs = experiment.reading.removeprefix(_BEYOND)
        without = median(measured(replace(experiment, inputs=inputs, reading="first warp"), session))
        return tuple(one.first_warp / experiment.per - without for one in clocks)
    return tuple(read(experiment, one) for one in clocks)


def clocks_of(stored: npt.NDArray[Any], threads: int) -> Clocks:
    """Of the first lane of every warp; the clock has 32 bits and may have wrapped."""
    lanes = range(0, threads, WARP_THREADS)
    pairs = [(int(stored[2 * lane]), int(stored[2 * lane + 1])) for lane in lanes]
    first = pairs[0][0]
    return Clocks(tuple(_since(first, a) for a, _ in pairs), tuple(_since(first, b) for _, b in pairs))


def _since(first: int, time: int) -> int:
    """Cycles from one time to another, which may be somewhat earlier."""
    return (time - first + _WRAP // 2) % _WRAP - _WRAP // 2


def read(experiment: Experiment, clocks: Clocks) -> float:
    """As `microbenchmarks.readings` reads the model."""
    threads, per = experiment.threads, experiment.per
    match experiment.reading:
        case "all warps":
            return clocks.all_warps / per
        case "lanes":
            return threads * per / clocks.all_warps
        case "bytes":
            return 4 * threads * per / clocks.all_warps
        case "turns":
            return clocks.all_warps / (len(clocks.starts) * per)
        case "whole cycles":
            return round((clocks.first_warp - _CLOCK_CYCLES) / per)
    return clocks.first_warp / per
