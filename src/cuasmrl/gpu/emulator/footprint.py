"""What a launch touches in global memory: distinct bytes of a block, of a wave, of the whole grid.

The blocks of one SM say nothing of what the other SMs ask L2 for. A sample of blocks does: how much two of
them share tells how much all of them touch together.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from random import Random

import numpy as np
import numpy.typing as npt

from cuasmrl.binary.sass import Listing, Space
from cuasmrl.gpu.emulator.events import copies_in, copies_out
from cuasmrl.gpu.emulator.trace import SECTOR_BYTES, Footprint, Touched, Trace

_STEPS = 60
"""Halvings of an interval; more than a double has digits."""
_GLOBAL = (Space.GLOBAL, Space.GENERIC)
Sectors = npt.NDArray[np.int64]


def sampled_blocks(blocks: int, wave: int, count: int, seed: int = 0) -> tuple[list[int], list[int]]:
    """Blocks drawn from a wave in the middle of the grid, and from the whole grid.

    A grid of few blocks is taken whole. Where one wave holds the grid, both are the same.
    """
    rng = Random(seed)

    def drawn(population: range) -> list[int]:
        return sorted(rng.sample(population, min(count, len(population))))

    if blocks <= wave:
        same = drawn(range(blocks))
        return same, same
    first = (blocks // wave // 2) * wave
    return drawn(range(first, min(first + wave, blocks))), drawn(range(blocks))


def footprint_of(
    trace: Trace,
    listing: Listing,
    in_wave: Sequence[int],
    in_grid: Sequence[int],
    wave: int,
    extents: Sequence[tuple[int, int]],
) -> Footprint:
    """From a trace of sampled blocks; `wave` blocks run at the same time.

    No more is touched of a buffer than it has: `extents` are the addresses of its first byte and behind its
    last. In a grid of many blocks a few that share nothing say little.
    """
    grid = trace.header.grid[0] * trace.header.grid[1] * trace.header.grid[2]
    together = min(wave, grid)
    rooms = _rooms(extents)

    def touched(instructions: frozenset[int]) -> Touched:
        groups = _groups(trace, instructions, rooms)

        def distinct_of(blocks: Sequence[int], all_of: int) -> float:
            found: defaultdict[int, float] = defaultdict(float)
            for one in groups:
                found[one.room] += one.distinct(blocks, all_of)
            return sum(min(size, rooms.bytes_of(room)) for room, size in found.items())

        return Touched(
            block=sum(one.block(in_grid) for one in groups),
            wave=distinct_of(in_wave, together),
            grid=distinct_of(in_grid, grid),
        )

    return Footprint(touched(readers(listing)), touched(writers(listing)), together)


def distinct(each: float, union: float, sampled: int, blocks: int) -> float:
    """Distinct bytes of `blocks` blocks that touch `each`, of which `sampled` touch `union` together.

    As in capture and recapture: blocks draw what they touch from a whole T, so `sampled` of them touch
    T (1 - (1 - each / T) ^ sampled) of it. Blocks that share nothing go on sharing nothing.
    """
    if sampled >= blocks or not each:
        return union

    def touched_by(count: int, whole: float) -> float:
        return whole * (1 - (1 - min(1.0, each / whole)) ** count)

    low, high = union, each * blocks
    if touched_by(sampled, high) <= union:
        return high
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if touched_by(sampled, middle) < union:
            low = middle
        else:
            high = middle
    return touched_by(blocks, high)


@dataclass(frozen=True, eq=False)
class _Rooms:
    """The buffers of a launch, in sectors."""

    first: Sectors
    last: Sectors

    def of(self, sectors: Sectors) -> Sectors:
        """The number of the buffer that holds a sector; -1 for one of which nothing is known."""
        if not len(self.first):
            return np.full(len(sectors), -1)
        room = np.searchsorted(self.first, sectors, "right") - 1
        return np.where(sectors <= self.last[room], room, -1)

    def bytes_of(self, room: int) -> float:
        return SECTOR_BYTES * float(self.last[room] - self.first[room] + 1) if room >= 0 else math.inf


def _rooms(extents: Sequence[tuple[int, int]]) -> _Rooms:
    bounds = sorted((start // SECTOR_BYTES, (end - 1) // SECTOR_BYTES) for start, end in extents)
    return _Rooms(
        np.array([first for first, _ in bounds], np.int64), np.array([last for _, last in bounds], np.int64)
    )


@dataclass(frozen=True, eq=False)
class _Group:
    """What one instruction was the first of its block to touch of one buffer, by block.

    Instructions are kept apart because what they share differs: every block reads the same weights, and each
    its own row.
    """

    room: int
    sectors: dict[int, Sectors]

    def block(self, blocks: Sequence[int]) -> float:
        return SECTOR_BYTES * sum(len(found) for found in self._of(blocks)) / max(1, len(blocks))

    def distinct(self, blocks: Sequence[int], all_of: int) -> float:
        found = list(self._of(blocks))
        union = SECTOR_BYTES * len(np.unique(np.concatenate([np.zeros(0, np.int64), *found])))
        return distinct(self.block(blocks), union, len(blocks), all_of)

    def _of(self, blocks: Sequence[int]) -> Iterable[Sectors]:
        return (self.sectors[block] for block in blocks if block in self.sectors)


def touches(trace: Trace, accesses: Sectors) -> tuple[Sectors, Sectors]:
    """All sectors that accesses touch, in their order: number of the access, and of the sector."""
    patterns = trace.access_pattern[accesses]
    counts = np.diff(trace.pattern_start)[patterns]
    of_access = np.repeat(accesses, counts)
    within = np.arange(len(of_access)) - np.repeat(np.cumsum(counts) - counts, counts)
    offsets = trace.pattern_sectors[np.repeat(trace.pattern_start[patterns], counts) + within]
    return of_access, trace.access_base[of_access] // SECTOR_BYTES + offsets


def first_touches(trace: Trace, instructions: frozenset[int]) -> tuple[Sectors, Sectors]:
    """Of these instructions, the touches of a sector that are the first in their block."""
    chosen = np.isin(trace.access_instruction, sorted(instructions)) & (trace.access_base >= 0)
    of_access, sector = touches(trace, np.flatnonzero(chosen))
    block = trace.access_warp[of_access] // trace.header.warps_per_block
    order = np.lexsort((of_access, sector, block))
    is_first = np.ones(len(order), bool)
    is_first[1:] = (np.diff(block[order]) != 0) | (np.diff(sector[order]) != 0)
    first = np.sort(order[is_first])
    return of_access[first], sector[first]


def readers(listing: Listing) -> frozenset[int]:
    """Instructions that read global memory, atomics and bulk copies among them."""
    return frozenset(
        i.index
        for i in listing.instructions
        if i.declaration and (i.declaration.reads in _GLOBAL or copies_in(i) or i.opcode == "UTMAREDG")
    )


def writers(listing: Listing) -> frozenset[int]:
    """Instructions that write global memory, atomics and bulk copies among them."""
    return frozenset(
        i.index
        for i in listing.instructions
        if i.declaration and (i.declaration.writes in _GLOBAL or copies_out(i))
    )


def _groups(trace: Trace, instructions: frozenset[int], rooms: _Rooms) -> list[_Group]:
    access, sector = first_touches(trace, instructions)
    instruction, room = trace.access_instruction[access], rooms.of(sector)
    block = trace.access_warp[access] // trace.header.warps_per_block
    order = np.lexsort((block, room, instruction))
    keys = np.stack((instruction, room, block))[:, order]
    starts = np.flatnonzero(np.any(np.diff(keys, axis=1, prepend=-2), axis=0))
    found: defaultdict[tuple[int, int], dict[int, Sectors]] = defaultdict(dict)
    for (number, buffer, k), sectors in zip(
        keys[:, starts].T.tolist(), np.split(sector[order], starts)[1:], strict=True
    ):
        found[number, buffer][int(trace.blocks[k])] = sectors
    return [_Group(buffer, by_block) for (_, buffer), by_block in found.items()]
