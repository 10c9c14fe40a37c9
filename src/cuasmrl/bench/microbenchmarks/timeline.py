"""Run a kernel: execute it for its trace, and time the trace.

The emulator has no clock, no products of single bits or sparse matrices, and no half-precision exponentials,
and it takes its time for products. What they compute is only stored and decides nothing, so it executes a
twin of the code: zero for the clock, nothing for the others. Paths and addresses are those of the code
itself, which is then timed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from types import MappingProxyType

import numpy as np

from cuasmrl.bench.microbenchmarks.cubins import cubin_of, listings_of
from cuasmrl.bench.microbenchmarks.experiment import Experiment, Launched
from cuasmrl.bench.microbenchmarks.inputs import inputs_of
from cuasmrl.bench.microbenchmarks.patches import patched
from cuasmrl.binary.sass import Instruction, Listing, Pipe
from cuasmrl.binary.sass.instruction import parse_instruction
from cuasmrl.gpu.chips import Chip
from cuasmrl.gpu.emulator import Emulator, Trace
from cuasmrl.gpu.launches.launch import Launch
from cuasmrl.gpu.timing import Model, load_parameters
from cuasmrl.gpu.timing.code import Int
from cuasmrl.gpu.timing.records import Note
from cuasmrl.schedule import Schedule, control_flow

_CLOCK = "SR_CLOCKLO"
NOTHING: Mapping[str, float] = MappingProxyType({})
IDLE = {"l2_jitter": 0.0}
"""Nobody else uses L2."""


@dataclass(frozen=True, eq=False)
class Timeline:
    """When each warp issued what."""

    listing: Listing
    warps: int
    log: Int

    def issues(self, warp: int) -> list[tuple[int, int]]:
        """Cycle and position of every issue of a warp."""
        mine = self.log[self.log[:, Note.WARP] == warp]
        return [(int(row[Note.CYCLE]), int(row[Note.POSITION])) for row in mine]

    def clocks(self, warp: int) -> list[int]:
        """Cycles in which a warp reads the clock."""
        mine = self._clocks[self._clocks[:, Note.WARP] == warp]
        return [int(cycle) for cycle in mine[:, Note.CYCLE]]

    @cached_property
    def _clocks(self) -> Int:
        reads = [i.index for i in self.listing.instructions if _CLOCK in i.text]
        return self.log[np.isin(self.log[:, Note.POSITION], reads)]


def run(experiment: Experiment, chip: Chip, changes: Mapping[str, float] = NOTHING) -> Timeline:
    """Time an experiment on a chip, as its file describes it but for what the inputs and `changes` say."""
    launched = experiment.launched
    listing, trace = listing_of(launched, chip.arch), _trace(launched, chip.arch)
    schedule = Schedule.original(listing)
    changes = {**IDLE, **inputs_of(experiment.inputs).changes, **changes}
    model = Model(schedule, trace, chip, load_parameters(chip.key).with_values(changes))
    log = model.simulate(schedule, logged=_instructions(listing, trace)).log
    return Timeline(listing, trace.warps, log)


@lru_cache
def listing_of(launched: Launched, arch: int) -> Listing:
    """The code of a kernel, changed as the experiment says."""
    listing = listings_of(launched.source, arch)[launched.kernel]
    return patched(cubin_of(launched.source, arch), listing, launched.patch) if launched.patch else listing


@lru_cache
def _trace(launched: Launched, arch: int) -> Trace:
    listing = listing_of(launched, arch)
    emulator = Emulator(cubin_of(launched.source, arch), launched.kernel, listing=_twin(listing))
    arguments = inputs_of(launched.inputs).arguments
    launch = Launch((launched.blocks, 1, 1), (launched.threads, 1, 1), 0, arguments)
    # The first SM has one block of a grid that gives one to each.
    return emulator.trace(launch, blocks=[0])


def _twin(listing: Listing) -> Listing:
    return Listing(listing.kernel, tuple(_emulated(i, listing) for i in listing.instructions))


def _emulated(i: Instruction, listing: Listing) -> Instruction:
    if _CLOCK in i.text:
        text = i.text.replace(_CLOCK, "SRZ")
    elif _is_product(i) or (i.opcode == "MUFU" and "F16" in i.modifiers):
        text = "NOP"
    else:
        return i
    return parse_instruction(i.index, i.word, text, listing.kernel.arch, listing.kernel.registers, {})


def _is_product(i: Instruction) -> bool:
    return i.declaration is not None and i.declaration.pipe is Pipe.TENSOR


def _instructions(listing: Listing, trace: Trace) -> int:
    """How many a trace stands for, in all warps."""
    sizes = np.array([block.end - block.start for block in control_flow(listing)])
    return int(sum(sizes[trace.path(w)].sum() for w in range(trace.warps)))
