"""What a launch takes, in microseconds: the one place where cycles of the model become time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from statistics import fmean

from cuasmrl.bench.microbenchmarks import NOTHING
from cuasmrl.errors import CuasmrlError
from cuasmrl.gpu.timing import L2, Model, load_parameters
from cuasmrl.gpu.traced import TracedKernel

L2_STATES = (L2.WARM, L2.COLD)
CLOCKS = ("device", "graph", "queue", "events")

_OUTSIDE = {
    "device": (),
    "graph": ("launch_time",),
    "queue": ("launch_time",),
    "events": ("launch_time", "event_time"),
}
"""What a clock sees besides the kernel."""
_SEEDS = (0, 1)
"""Of the latency jitter; over a whole kernel it hardly shows."""
_REPLAYED = 40_000_000
"""Warp instructions of an SM that are replayed; beyond, whole waves are extrapolated."""
_FIRST_WAVES, _MORE_WAVES = 2, 2


@dataclass(frozen=True)
class Condition:
    """How a published figure was measured, as far as it changes the time."""

    l2: str
    """`warm`: the same buffers were used just before. `cold`: L2 was flushed, or others came between."""
    clock: str
    """What the time is of. `device`: from the first instruction to the last, as profilers report it. `graph`:
    one of many kernels in a graph. `queue`: one of many launches back to back. `events`: between two events
    around a single launch."""

    def __post_init__(self) -> None:
        if self.l2 not in L2_STATES or self.clock not in CLOCKS:
            raise CuasmrlError(
                f"There is no condition {self.l2!r}, {self.clock!r}; L2 is {' or '.join(L2_STATES)}, "
                f"the clock one of {', '.join(CLOCKS)}."
            )


@dataclass(frozen=True)
class LaunchTime:
    microseconds: float
    cycles: float
    """Modelled, of the SM that has most to do."""
    dram_bytes: float
    """Modelled traffic between L2 and DRAM, of the kernel's own data; of a kernel that runs again and again,
    what it wrote the last time is part of it."""


def launch_time(
    kernel: TracedKernel, clock_mhz: float, condition: Condition, changes: Mapping[str, float] = NOTHING
) -> LaunchTime:
    """The modelled time of a launch at a clock of the SMs, with some numbers of the chip changed."""
    chip = replace(kernel.chip, clock_khz=round(1000 * clock_mhz))
    l2 = L2.COLD if condition.l2 == L2.COLD else L2.AGAIN
    parameters = load_parameters(chip.key).with_values(changes)
    model = Model(kernel.original, kernel.trace, chip, parameters, l2)
    cycles = fmean(sm_cycles(model, kernel, seed) for seed in _SEEDS)
    traffic = model.traffic
    assert traffic is not None
    outside = _OUTSIDE[condition.clock]
    besides = sum(model.parameters[name] for name in outside)
    own = traffic.total if l2 is L2.AGAIN else traffic.read + traffic.written
    return LaunchTime(cycles / clock_mhz + besides, cycles, own)


def sm_cycles(model: Model, kernel: TracedKernel, seed: int) -> float:
    """Cycles of all blocks of the fullest SM; of a long launch the waves in its middle are extrapolated."""
    resident, blocks = model.resident, model.blocks
    # The last wave may have fewer blocks than fit, so it is part of what is replayed.
    first = _FIRST_WAVES * resident + blocks % resident
    both = first + _MORE_WAVES * resident
    schedule = kernel.original
    if blocks <= both:
        return model.simulate(schedule, seed).cycles
    less = model.simulate(schedule, seed, first)
    if less.instructions / first * blocks <= _REPLAYED:
        return model.simulate(schedule, seed).cycles
    more = model.simulate(schedule, seed, both)
    wave = (more.cycles - less.cycles) / _MORE_WAVES
    return more.cycles + wave * (blocks - both) / resident
