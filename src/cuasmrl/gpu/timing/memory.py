"""The memory pipe: queue of a sub-core, address generation, the SM's arbiter, shared memory, L1 and L2.

Everything is reserved when an instruction is issued. On an idle machine a load completes exactly after the
published latency of its kind; queues and ports only add to it.
"""

import numpy as np

from cuasmrl.compiled import inlined
from cuasmrl.gpu.timing.code import Int
from cuasmrl.gpu.timing.machine import L1_WAYS, TAG_WORDS, Layout, Machine
from cuasmrl.gpu.timing.records import (
    ACCEPT_RING,
    OWN_SECTOR,
    PARTS,
    PORT_RING,
    PORT_SPAN,
    SIXTEENTH,
    Access,
    Cause,
    Core,
    Job,
    Row,
    Sm,
    Warp,
)

_SECTOR_BYTES = 32
_DRAWS = 1009
_FAR_SHIFT = 40
"""Bits of a random number that neither the draw of DRAM nor the jitter depends on."""
_TURN_SHIFT = 44
"""No line of a traced address has as many bits."""
_WARP_WORD_BYTES = 128


@inlined
def scatter(seed: int, a: int, b: int) -> int:
    """63 bits that look random, the same for the same three numbers (the mixer of splitmix64)."""
    x = np.uint64(seed) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(a) * np.uint64(0xBF58476D1CE4E5B9)
    x = x + np.uint64(b) * np.uint64(0x94D049BB133111EB)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.int64((x ^ (x >> np.uint64(31))) >> np.uint64(1))  # type: ignore[return-value]


@inlined
def accept(machine: Machine, state: Int, c: int, now: int, turns: int) -> int:
    """When the SM takes over an instruction that is issued now and comes in so many turns.

    It takes a place of the queue until then. Nothing is taken over while the data port is too far behind.
    """
    at = max(now + machine.accept_delay, state[c + Core.ACCEPTED] + machine.agu_interval)
    at = max(at, state[Sm.PORT_END] - machine.port_backlog)
    near = machine.sm_accept_interval - 1
    other = at - near
    while other <= at + near + turns - 1:
        if state[Sm.ACCEPTS + (other & (ACCEPT_RING - 1))] == other:
            at = other + near + 1
        other += 1
    for taken in range(at, at + turns):
        state[Sm.ACCEPTS + (taken & (ACCEPT_RING - 1))] = taken
    state[c + Core.ACCEPTED] = at
    place = state[c + Core.QUEUED]
    state[c + Core.QUEUE + place] = at
    place = place + 1 if place + 1 < machine.queue_entries else 0
    state[c + Core.QUEUED] = place
    state[c + Core.QUEUE_FREE] = state[c + Core.QUEUE + place]
    return at


@inlined
def take_port(state: Int, at: int, turns: int) -> int:
    """Take the first free turns of the data port; says when they would have begun if they stood together."""
    place = Sm.PORT + 2 * (at // PORT_SPAN & (PORT_RING - 1))
    free = at % PORT_SPAN + turns <= PORT_SPAN and state[place] == at // PORT_SPAN
    wanted = ((1 << turns) - 1) << at % PORT_SPAN
    if free and not state[place + 1] & wanted:
        state[place + 1] |= wanted
        return at
    left = turns
    while left:
        span = at // PORT_SPAN
        place = Sm.PORT + 2 * (span & (PORT_RING - 1))
        if state[place] != span:
            state[place] = span
            state[place + 1] = 0
        taken, cycle = state[place + 1], at % PORT_SPAN
        while left and cycle < PORT_SPAN:
            if not taken >> cycle & 1:
                taken |= 1 << cycle
                left -= 1
            cycle += 1
        state[place + 1] = taken
        at = span * PORT_SPAN + cycle
    return at - turns


@inlined
def shared(code: Int, machine: Machine, state: Int, p: int, c: int, passes: int, accepted: int) -> int:
    """Cycles that an access to shared memory takes beyond its latency."""
    turns = passes * _WARP_WORD_BYTES // machine.shared_bytes
    start = take_port(state, accepted, turns)
    state[Sm.PORT_END] = max(state[Sm.PORT_END], start + turns)
    back = start
    if code[p + Row.IS_LOAD]:
        back = max(start, state[c + Core.RETURN_FREE])
        state[c + Core.RETURN_FREE] = back + code[p + Row.WORDS] * _WARP_WORD_BYTES // machine.return_bytes
    return back - accepted + machine.conflict_step * max(0, passes - code[p + Row.LEAST_PASSES])


@inlined
def tag_turns(work: Int, machine: Machine, access: int) -> int:
    """Turns of the tags, in sixteenths: one for each group of four lines.

    Lines that lie far apart share turns, but not perfectly: RRZE gpu-benches has one turn for four of them,
    and a little more than one beside.
    """
    shared = work[access + Access.LINES] * SIXTEENTH // machine.tag_lines + machine.tag_extra
    return max(SIXTEENTH, min(work[access + Access.GROUPS] * SIXTEENTH, shared))


@inlined
def data_turns(code: Int, work: Int, machine: Machine, p: int, access: int) -> int:
    """Turns of the data port for an access to global or local memory: as many as its banks need.

    L1 and shared memory are one array with one data port, so both have the same banks.
    """
    if code[p + Row.BANKS]:
        return work[access + Access.PASSES] * _WARP_WORD_BYTES // machine.shared_bytes
    if code[p + Row.CACHED]:
        return (work[access + Access.SECTORS] * _SECTOR_BYTES - 1) // machine.shared_bytes + 1
    return 0


@inlined
def copy_turns(work: Int, machine: Machine, access: int) -> int:
    """Turns in which a copy comes into the SM."""
    if machine.sm_accept_interval == 0:
        return 1
    return max(1, work[access + Access.SECTORS] * _SECTOR_BYTES // machine.copy_bytes)


@inlined
def fill(work: Int, machine: Machine, state: Int, access: int, complete: int) -> int:
    """When a copy is complete that would be if the data port were free to write what it brings."""
    if not machine.copy_fills_shared:
        return complete
    turns = work[access + Access.PASSES] * _WARP_WORD_BYTES // min(machine.copy_bytes, machine.shared_bytes)
    return take_port(state, complete - turns, turns) + turns


@inlined
def global_access(
    code: Int, work: Int, machine: Machine, layout: Layout, state: Int, p: int, w: int, access: int,
    accepted: int, random: int,
) -> int:  # fmt: skip
    """Cycles that an access to global or local memory takes beyond an L1 hit."""
    load = code[p + Row.IS_LOAD]
    start = max(accepted, state[Sm.TAG_FREE] // SIXTEENTH)
    turns = data_turns(code, work, machine, p, access)
    if turns:
        start = take_port(state, start, turns)
        state[Sm.PORT_END] = max(state[Sm.PORT_END], start + turns)
    state[Sm.TAG_FREE] = max(state[Sm.TAG_FREE], start * SIXTEENTH) + tag_turns(work, machine, access)
    missing = work[access + Access.SECTORS]
    if code[p + Row.CACHED]:
        missing = l1_misses(work, machine, layout, state, access, state[w + Warp.BLOCK] // work[Job.BLOCKS])
        if not load:
            missing = 0
    extra = start - accepted
    fresh = work[access + Access.FRESH]
    if missing or fresh:
        there = beyond_l1(machine, state, w, code[p + Row.RAW], load, missing, fresh, start, random)
        if load and missing:
            extra = max(extra, there - accepted)
    return extra


@inlined
def wait_for_share(state: Int, due: int, slack: int, at: int, cost: int) -> int:
    """How long a request waits for the SM's share of L2 or DRAM, in parts of a cycle; takes the share.

    SMs are not in step: while some ask for nothing, others get more than their share. So an SM that is behind
    its share by little, as after the loads of one block, waits for little of that; one that is far behind, as
    when bandwidth limits the kernel, for all of it but the slack.
    """
    behind = max(0, state[due] - at)
    state[due] = max(state[due], at) + cost
    return behind - slack * behind // (slack + behind) if behind else 0


@inlined
def beyond_l1(
    machine: Machine, state: Int, w: int, hit: int, load: int, missing: int, fresh: int, start: int,
    random: int,
) -> int:  # fmt: skip
    """When sectors that are not in L1 come in; `hit` is the latency of those that are, `start` when L1 knows.

    What DRAM moves does not depend on the order of accesses: the first touches of a block, each with the
    share that L2 does not have, also where another warp has brought them into L1 already.
    """
    rates = machine.share.tail if state[w + Warp.BLOCK] >= machine.share.tail_block else machine.share.full
    leave = max(start * PARTS, state[Sm.L2_FREE])
    cost = missing * (rates.l2_read if load else rates.l2_written)
    leave += wait_for_share(state, Sm.L2_DUE, machine.share.l2_slack, leave, cost)
    state[Sm.L2_FREE] = leave + missing * machine.share.port_sector
    arrived = state[Sm.L2_FREE]
    latency = machine.l2_latency
    if leave - start * PARTS > latency * PARTS:
        state[Sm.CAUSE] = Cause.L2_SHARE
    if fresh:
        cost = fresh * (rates.dram_read if load else rates.dram_written)
        wait = wait_for_share(state, Sm.DRAM_DUE, machine.share.dram_slack, leave, cost)
        if random % _DRAWS * 1000 < machine.share.dram_per_mille * _DRAWS:
            latency = machine.dram_latency
            leave += wait
            arrived += wait
            state[Sm.CAUSE] = Cause.DRAM
        elif (random >> _FAR_SHIFT) % 1000 < machine.share.far_per_mille:
            latency = machine.l2_far_latency
    jitter = random // _DRAWS % machine.l2_jitter if machine.l2_jitter else 0
    return max(leave // PARTS + latency + jitter - hit, (arrived + PARTS - 1) // PARTS)


@inlined
def way_of(machine: Machine, layout: Layout, state: Int, line: int) -> int:
    """Where a line is in L1, or comes to."""
    # Lines a power of two apart go to different sets: RRZE gpu-benches has tiles of 32 rows in L1.
    folded = line ^ (line >> 7) ^ (line >> 14)
    first = layout.tags + folded % machine.l1_sets * L1_WAYS * TAG_WORDS
    way, oldest = -1, first
    for k in range(first, first + L1_WAYS * TAG_WORDS, TAG_WORDS):
        if state[k] == line:
            way = k
        if state[k + 2] < state[oldest + 2]:
            oldest = k
    if way < 0:
        way = oldest
        state[way] = line
        state[way + 1] = 0
    state[way + 2] = state[Sm.CLOCK]
    return way


@inlined
def l1_misses(work: Int, machine: Machine, layout: Layout, state: Int, access: int, turn: int) -> int:
    """Sectors of an access that are not in L1; brings them in. The line used longest ago leaves its set.

    A block that goes the way of a traced one for the second time has lines of its own.
    """
    state[Sm.CLOCK] += 1
    missing, line, way = 0, -1, layout.tags
    for s in range(work[access + Access.SECTORS]):
        sector = work[access + Access.FIRST_SECTOR + s]
        before, line = line, sector >> 2
        if sector & OWN_SECTOR:
            line += turn << _TURN_SHIFT
        if line != before:
            way = way_of(machine, layout, state, line)
        bit = 1 << (sector & 3)
        if not state[way + 1] & bit:
            state[way + 1] |= bit
            missing += 1
    return missing
