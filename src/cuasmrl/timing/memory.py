"""The memory pipe: queue of a sub-core, address generation, the SM's arbiter, shared memory, L1 and L2.

Everything is reserved when an instruction is issued. On an idle machine a load completes exactly after the
published latency of its kind; queues and ports only add to it.
"""

import numpy as np

from cuasmrl.timing.code import Int
from cuasmrl.timing.columns import Core, Row, Sm, Way
from cuasmrl.timing.compiled import compiled
from cuasmrl.timing.machine import Machine
from cuasmrl.timing.work import Work

_SECTOR_BYTES = 32
_WARP_WORD_BYTES = 128


@compiled
def scatter(seed: int, a: int, b: int) -> int:
    """63 bits that look random, the same for the same three numbers (the mixer of splitmix64)."""
    x = np.uint64(seed) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(a) * np.uint64(0xBF58476D1CE4E5B9)
    x = x + np.uint64(b) * np.uint64(0x94D049BB133111EB)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.int64((x ^ (x >> np.uint64(31))) >> np.uint64(1))  # type: ignore[return-value]


@compiled
def accept(machine: Machine, core: Int, sm: Int, now: int) -> int:
    """When the SM takes over an instruction that is issued now; takes a place of the queue until then."""
    at = max(now + machine.accept_delay, core[Core.ACCEPTED] + machine.agu_interval)
    at = max(at, sm[Sm.ACCEPTED] + machine.sm_accept_interval)
    core[Core.ACCEPTED] = at
    sm[Sm.ACCEPTED] = at
    core[Core.QUEUE + core[Core.QUEUED] % machine.queue_entries] = at
    core[Core.QUEUED] += 1
    return at


@compiled
def shared(machine: Machine, row: Int, passes: int, accepted: int, core: Int, sm: Int) -> int:
    """Cycles that an access to shared memory takes beyond its latency."""
    start = max(accepted, sm[Sm.SHARED_FREE])
    sm[Sm.SHARED_FREE] = start + passes * _WARP_WORD_BYTES // machine.shared_bytes
    back = start
    if row[Row.IS_LOAD]:
        back = max(start, core[Core.RETURN_FREE])
        core[Core.RETURN_FREE] = back + row[Row.WORDS] * _WARP_WORD_BYTES // machine.return_bytes
    return back - accepted + machine.conflict_step * max(0, passes - row[Row.LEAST_PASSES])


@compiled
def global_access(
    machine: Machine, row: Int, work: Work, access: int, accepted: int, sm: Int, tags: Int,
    stamps: Int, random: int,
) -> int:  # fmt: skip
    """Cycles that an access to global or local memory takes beyond an L1 hit."""
    start = max(accepted, sm[Sm.TAG_FREE])
    sm[Sm.TAG_FREE] = start + (work.lines[access] + machine.tag_lines - 1) // machine.tag_lines
    missing = work.sectors_start[access + 1] - work.sectors_start[access]
    if row[Row.IS_LOAD] and row[Row.WAY] == Way.GLOBAL:
        missing = l1_misses(tags, stamps, work, access, sm)
    extra = start - accepted
    if missing:
        leave = max(start, sm[Sm.L2_FREE])
        sm[Sm.L2_FREE] = leave + (missing * _SECTOR_BYTES + machine.l2_bytes - 1) // machine.l2_bytes
        if row[Row.IS_LOAD]:
            far = machine.l2_latency
            if random % 1009 * 1000 < machine.dram_per_mille * 1009:
                far = machine.dram_latency
            jitter = random // 1009 % machine.l2_jitter if machine.l2_jitter else 0
            extra = max(leave - accepted + far - row[Row.RAW] + jitter, sm[Sm.L2_FREE] - accepted)
    if row[Row.WAY] == Way.COPY and machine.copy_fills_shared:
        sm[Sm.SHARED_FREE] = max(sm[Sm.SHARED_FREE], accepted) + work.passes[access]
    return extra


@compiled
def l1_misses(tags: Int, stamps: Int, work: Work, access: int, sm: Int) -> int:
    """Sectors of an access that are not in L1; brings them in. The line used longest ago leaves its set."""
    sm[Sm.CLOCK] += 1
    missing = 0
    for s in range(work.sectors_start[access], work.sectors_start[access + 1]):
        sector = work.sectors[s]
        line = sector >> 2
        row = line % tags.shape[0]
        way, oldest = -1, 0
        for k in range(tags.shape[1]):
            if tags[row, k, 0] == line:
                way = k
            if stamps[row, k] < stamps[row, oldest]:
                oldest = k
        if way < 0:
            way = oldest
            tags[row, way, 0] = line
            tags[row, way, 1] = 0
        stamps[row, way] = sm[Sm.CLOCK]
        bit = 1 << (sector & 3)
        if not tags[row, way, 1] & bit:
            tags[row, way, 1] |= bit
            missing += 1
    return missing
