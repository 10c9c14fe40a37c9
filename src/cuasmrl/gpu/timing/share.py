"""What one SM has to do of a launch: the blocks that come to it, and their trace."""

from __future__ import annotations

from dataclasses import replace

from cuasmrl.gpu.emulator import Emulator, Trace
from cuasmrl.gpu.emulator.footprint import footprint_of, sampled_blocks
from cuasmrl.gpu.launches.launch import Launch
from cuasmrl.gpu.timing.model import occupancy

_WAVES = 2
_MOST_SAMPLED, _FEWEST_SAMPLED = 24, 3
"""Blocks of a wave, and of the grid, from which their footprint is estimated."""
_SAMPLED_ACCESSES = 500_000
"""Of each of the two, if that leaves enough blocks: an access takes 300 bytes while it is traced."""


def traced_blocks(launch: Launch, emulator: Emulator) -> list[int]:
    """Blocks that come to the first SM: one in as many as there are SMs, as many as two waves hold.

    Of more than that, some are taken from everywhere: in a triangular problem the first have least to do.
    """
    share = range(0, launch.blocks, emulator.chip.sm_count)
    count = min(len(share), _WAVES * resident_blocks(launch, emulator))
    return [share[k * len(share) // count] for k in range(count)]


def resident_blocks(launch: Launch, emulator: Emulator) -> int:
    """Blocks of a launch that an SM holds at a time."""
    kernel = emulator.kernel
    shared = kernel.shared_bytes + launch.shared_bytes
    return occupancy(emulator.chip, launch.threads, kernel.registers, shared).blocks


def trace_share(launch: Launch, emulator: Emulator) -> Trace:
    """Execute the blocks of the first SM and keep what the model needs; buffers change in place.

    Some more blocks are executed for what the launch touches as a whole.
    """
    trace = emulator.trace(launch, blocks=traced_blocks(launch, emulator))
    return with_footprint(trace, launch, emulator)


def with_footprint(trace: Trace, launch: Launch, emulator: Emulator) -> Trace:
    """The trace with what the whole launch touches, estimated from a sample of its blocks."""
    wave = emulator.chip.sm_count * resident_blocks(launch, emulator)
    in_wave, in_grid = sampled_blocks(launch.blocks, wave, sample_size(trace))
    sample = emulator.trace(launch, blocks=sorted({*in_wave, *in_grid}))
    footprint = footprint_of(sample, emulator.listing, in_wave, in_grid, wave, emulator.extents(launch))
    return replace(trace, header=replace(trace.header, footprint=footprint))


def sample_size(trace: Trace) -> int:
    """How many blocks to sample, by what the traced ones have to do."""
    of_a_block = max(1, len(trace.access_warp) // len(trace.blocks))
    return min(_MOST_SAMPLED, max(_FEWEST_SAMPLED, _SAMPLED_ACCESSES // of_a_block))


def with_whole_footprint(trace: Trace, launch: Launch, emulator: Emulator) -> Trace:
    """A trace of all blocks with what they touch, exactly."""
    wave = emulator.chip.sm_count * resident_blocks(launch, emulator)
    in_wave, _ = sampled_blocks(launch.blocks, wave, wave)
    footprint = footprint_of(
        trace, emulator.listing, in_wave, range(launch.blocks), wave, emulator.extents(launch)
    )
    return replace(trace, header=replace(trace.header, footprint=footprint))
