"""What memory accesses take behind the memory queue: shared memory port, return path, L1 tags, L2."""

from __future__ import annotations

from enum import IntEnum

import numpy as np

from cuasmrl.compiled import compiled
from cuasmrl.gpu.timing.code import Int
from cuasmrl.gpu.timing.machine import Machine
from cuasmrl.gpu.timing.memory import data_turns, tag_turns
from cuasmrl.gpu.timing.records import SIXTEENTH, Access, Cached, Job, Kind, Row, Way

MOST_SECTORS = 32
"""Of one access: every lane another one."""
_WARP_WORD_BYTES = 128
_VISIT_WIDTH = 2


class Demand(IntEnum):
    """Cycles of what stands behind the queue."""

    SHARED = 0
    """The data port of shared memory and L1."""
    RETURN = 1
    """The way back to a sub-core."""
    TAGS = 2
    L2 = 3
    """By copies and stores, in parts of a cycle while all SMs are busy. What loads take depends on L1,
    hence on the order of all warps."""
    DRAM = 4
    """In the same parts."""


BEHIND = len(Demand)


@compiled
def no_sectors(most: int) -> Int:
    """Sectors of global memory that loads touch, in an open hash table: the sector, and how often."""
    size = 64
    while size < 2 * most:
        size *= 2
    sectors = np.zeros((size, 2), np.int64)
    sectors[:, 0] = -1
    return sectors


@compiled
def find(sectors: Int, sector: int) -> int:
    """Where a sector stands, or would."""
    mask = len(sectors) - 1
    at = (sector * 0x9E3779B1 >> 9) & mask
    while sectors[at, 0] not in (-1, sector):
        at = (at + 1) & mask
    return at


@compiled
def is_cached_load(rows: Int, i: int) -> bool:
    """Does it look in L1 for data that only loads bring there?"""
    return rows[i, Row.KIND] == Kind.QUEUED and rows[i, Row.CACHED] == Cached.LOADS


@compiled
def cached_loads(rows: Int, work: Int, warp: int) -> Int:
    """Loads through L1 of a warp, in rows: number of the visit, and place of the access in the work."""
    starts = work[Job.PATH_STARTS] + warp
    start, end = work[starts], work[starts + 1]
    # A list that is never empty, as compiled code cannot tell the type of one that is.
    found = [(0, 0)]
    for visit in range(start, end, _VISIT_WIDTH):
        i = work[work[Job.BLOCK_STARTS] + work[visit]] // Row.WIDTH
        last = False
        while not last:
            if is_cached_load(rows, i) and rows[i, Row.SLOT] >= 0:
                place = work[Job.ACCESSES] + work[visit + 1] + rows[i, Row.SLOT]
                if work[place] >= 0:
                    found.append(((visit - start) // _VISIT_WIDTH, place))
            last = rows[i, Row.LAST] != 0
            i += 1
    return np.array(found, np.int64)[1:]


@compiled
def touch(work: Int, sectors: Int, loads: Int, executions: int) -> None:
    """Count the sectors of loads that are executed so many times."""
    for k in range(len(loads)):
        access = work[loads[k, 1]]
        first = access + Access.FIRST_SECTOR
        for s in range(first, first + work[access + Access.SECTORS]):
            at = find(sectors, work[s])
            sectors[at, 0] = work[s]
            sectors[at, 1] += executions


@compiled
def brings_its_own(work: Int, sectors: Int, access: int) -> int:
    """Does an access touch a sector that no other one does?"""
    first = access + Access.FIRST_SECTOR
    for s in range(first, first + work[access + Access.SECTORS]):
        if sectors[find(sectors, work[s]), 1] == 1:
            return 1
    return 0


@compiled
def demand_of(rows: Int, work: Int, machine: Machine, sectors: Int, place: int, i: int, amounts: Int) -> int:
    """Write down what an instruction takes; says if its data comes from L2 under any schedule.

    `place` is where the work has its access, -1 for an instruction without addresses. As in `memory.py`.
    """
    amounts[:] = 0
    way, load = rows[i, Row.WAY], rows[i, Row.IS_LOAD]
    access = work[place] if place >= 0 else -1
    if way == Way.SHARED and (access >= 0 or place < 0):
        passes = max(1, work[access + Access.PASSES]) if access >= 0 else rows[i, Row.LEAST_PASSES]
        amounts[Demand.SHARED] = passes * _WARP_WORD_BYTES // machine.shared_bytes
        if load:
            amounts[Demand.RETURN] = rows[i, Row.WORDS] * _WARP_WORD_BYTES // machine.return_bytes
        return 0
    if access < 0:
        return 0
    amounts[Demand.TAGS] = tag_turns(work, machine, access) // SIXTEENTH
    # What a copy writes comes behind loads that were issued later, so nobody has to wait for it.
    amounts[Demand.SHARED] = data_turns(rows.reshape(-1), work, machine, i * Row.WIDTH, access)
    if rows[i, Row.CACHED] == Cached.KEEPS:
        return 0
    rates = machine.share.full
    amounts[Demand.DRAM] = work[access + Access.FRESH] * (rates.dram_read if load else rates.dram_written)
    if is_cached_load(rows, i):
        return brings_its_own(work, sectors, access)
    amounts[Demand.L2] = work[access + Access.SECTORS] * (rates.l2_read if load else rates.l2_written)
    return 1 if load and work[access + Access.SECTORS] else 0
