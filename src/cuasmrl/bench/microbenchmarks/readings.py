"""How a figure is read from a run: as its publication did."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from cuasmrl.bench.microbenchmarks.experiment import Experiment
from cuasmrl.bench.microbenchmarks.patches import watched
from cuasmrl.bench.microbenchmarks.timeline import NOTHING, Timeline, run
from cuasmrl.errors import CuasmrlError
from cuasmrl.gpu.chips import chip as chip_named

_FIRST_LOAD = 2
"""What Huerta et al. call the cycle of the first load."""
_CLOCK_CYCLES = 2
"""Between two reads of the clock with nothing between them: Abdelkhalik et al. take it off."""

_RAMP = 16
"""Instructions until a stream is steady."""


def figure(experiment: Experiment, chip: str, changes: Mapping[str, float] = NOTHING) -> float:
    """Run an experiment on a chip, some of whose numbers may be changed, and read its figure off."""
    timeline = run(experiment, chip_named(chip), changes)
    per = experiment.per
    match experiment.reading.split():
        case ["all", "warps"]:
            return _all_warps(timeline) / per
        case ["first", "warp"]:
            return _first_warp(timeline) / per
        case ["lanes"]:
            return experiment.threads * per / _all_warps(timeline)
        case ["bytes"]:
            return 4 * experiment.threads * per / _all_warps(timeline)
        case ["bytes", "of", "the", "chip"]:
            return 4 * experiment.blocks * experiment.threads * per / _all_warps(timeline)
        case ["turns"]:
            return _all_warps(timeline) / (timeline.warps * per)
        case ["whole", "cycles"]:
            return round((_first_warp(timeline) - _CLOCK_CYCLES) / per)
        case ["beyond", "kernel", kernel]:
            without = figure(replace(experiment, kernel=kernel, reading="first warp", per=1), chip, changes)
            return (_first_warp(timeline) - without) / per
        case ["beyond", *inputs]:
            without = figure(
                replace(experiment, inputs=" ".join(inputs), reading="first warp"), chip, changes
            )
            return _first_warp(timeline) / per - without
        case ["load", number, "on", warp]:
            return _loads(timeline, int(warp))[int(number) - 1] + _FIRST_LOAD
        case ["steady", "loads"]:
            cycles = _loads(timeline, 0)
            return (cycles[-1] - cycles[8]) / (len(cycles) - 9)
        case ["behind", opcode]:
            return _behind(timeline, opcode)
        case ["bubbles"]:
            cycles = _between_clocks(timeline)
            return cycles[-1] - cycles[0] - len(cycles) + 1
        case ["steady", "bubbles"]:
            cycles = _between_clocks(timeline)[_RAMP:]
            return (cycles[-1] - cycles[0]) / (len(cycles) - 1) - 1
        case ["gap"]:
            cycles = _between_clocks(timeline)
            return cycles[2] - cycles[1]
    raise CuasmrlError(f"{experiment.row}: the bench does not know the reading {experiment.reading!r}.")


def _all_warps(timeline: Timeline) -> int:
    """From the last clock but one of any warp to the last one: what is done twice counts the second time."""
    clocks = [timeline.clocks(warp) for warp in range(timeline.warps)]
    return max(times[-1] for times in clocks) - min(times[-2] for times in clocks)


def _first_warp(timeline: Timeline) -> int:
    """From the first clock of warp 0 to its last one."""
    times = timeline.clocks(0)
    return times[-1] - times[0]


def _loads(timeline: Timeline, warp: int) -> list[int]:
    """When a warp issues the loads behind the barrier, the first at 0."""
    code = timeline.listing.instructions
    barrier = watched(timeline.listing, "BAR")
    cycles = [
        c for c, position in timeline.issues(warp) if code[position].opcode == "LDG" and position > barrier
    ]
    return [cycle - cycles[0] for cycle in cycles]


def _between_clocks(timeline: Timeline) -> list[int]:
    """When warp 0 issues its two clocks and all that stands between them."""
    first, last = timeline.clocks(0)
    return [cycle for cycle, _ in timeline.issues(0) if first <= cycle <= last]


def _behind(timeline: Timeline, opcode: str) -> int:
    """From the watched instruction to the next one."""
    position = watched(timeline.listing, opcode)
    cycles = {p: cycle for cycle, p in timeline.issues(0)}
    return cycles[position + 1] - cycles[position]
