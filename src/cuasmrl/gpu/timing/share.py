"""What one SM has to do of a launch: the blocks that come to it, and their trace.

Of a large launch a few blocks stand for all. Where not all have the same to do, as in a triangular problem,
those of one SM would not do: on hardware an SM gets the next block whenever it is free, whichever that is.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from cuasmrl.binary.sass import Listing
from cuasmrl.gpu.emulator import Emulator, Trace
from cuasmrl.gpu.emulator.footprint import footprint_of, sampled_blocks
from cuasmrl.gpu.launches.launch import Launch
from cuasmrl.gpu.timing.code import Int
from cuasmrl.gpu.timing.model import occupancy
from cuasmrl.schedule import control_flow

_WAVES = 2
_MOST_SAMPLED, _FEWEST_SAMPLED = 24, 3
"""Blocks of a wave, and of the grid, from which their footprint is estimated."""
_SAMPLED_ACCESSES = 500_000
"""Of each of the two, if that leaves enough blocks: an access takes 300 bytes while it is traced."""
_EVEN = 0.05
"""Blocks whose work differs by this share of the mean at most are alike."""
_FEWEST_SPREAD = 12
_IRRATIONAL = (0.618034, 0.414214)
"""Of the golden section, and the root of 2: multiples of them lie evenly between whole numbers."""


def traced_blocks(launch: Launch, emulator: Emulator) -> list[int]:
    """Blocks that come to the first SM: one in as many as there are SMs, as many as two waves hold.

    Of more than that, some are taken from everywhere.
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
    size = sample_size(trace)
    wave = emulator.chip.sm_count * resident_blocks(launch, emulator)
    in_wave, in_grid = sampled_blocks(launch.blocks, wave, size)
    sample = emulator.trace(launch, blocks=sorted({*in_wave, *in_grid}))
    footprint = footprint_of(sample, emulator.listing, in_wave, in_grid, wave, emulator.extents(launch))
    is_part = len(trace.blocks) * emulator.chip.sm_count < launch.blocks
    if is_part and _is_uneven(work_of(sample, emulator.listing)):
        spread = emulator.trace(launch, blocks=spread_blocks(launch.grid, max(size, _FEWEST_SPREAD)))
        blocks = typical_blocks(spread.blocks, work_of(spread, emulator.listing), len(trace.blocks))
        trace = emulator.trace(launch, blocks=blocks)
    return replace(trace, header=replace(trace.header, footprint=footprint))


def work_of(trace: Trace, listing: Listing) -> Int:
    """Instructions that the warps of each traced block execute."""
    sizes = np.array([block.end - block.start for block in control_flow(listing)], np.int64)
    before = np.concatenate([[0], np.cumsum(sizes[trace.path_blocks])])
    of_path = before[trace.path_start[1:]] - before[trace.path_start[:-1]]
    return np.asarray(of_path[trace.path_of_warp].reshape(len(trace.blocks), -1).sum(axis=1))


def _is_uneven(work: Int) -> bool:
    return bool(np.ptp(work) > _EVEN * work.mean())


def spread_blocks(grid: tuple[int, int, int], count: int) -> list[int]:
    """Blocks from everywhere in a grid, whatever the pattern in which their work repeats.

    What a block has to do often depends on one of its coordinates, so each coordinate is spread evenly. In a
    grid of one dimension the pattern is in the number itself: there each part of the grid gives a block, but
    not always the one in the same place.
    """
    is_line = max(grid) == grid[0] * grid[1] * grid[2]
    found = set()
    for k in range(count):
        x, y, z = ((k + 0.5) * step % 1 for step in (1 / count, *_IRRATIONAL))
        place = [x, y, z] if not is_line else [(k + y) / count] * 3
        at = [int(share * extent) for share, extent in zip(place, grid, strict=True)]
        found.add(at[0] + grid[0] * (at[1] + grid[1] * at[2]))
    return sorted(found)


def typical_blocks(blocks: Int, work: Int, count: int) -> list[int]:
    """So many of the blocks that have as much to do as all of them, on average."""
    groups = np.array_split(np.argsort(work, kind="stable"), min(count, len(blocks)))
    nearest = (group[np.argmin(abs(work[group] - work[group].mean()))] for group in groups)
    return sorted(int(blocks[k]) for k in nearest)


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
