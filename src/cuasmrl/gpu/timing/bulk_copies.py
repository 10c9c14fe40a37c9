"""Copies by the tensor memory accelerator: an engine of the SM that takes one order after the other.

An order costs it time by bytes and by lines. Sectors go to L2 a few at a time, spread over that time, and
take the SM's share like those of loads; bytes take turns of the data port where shared memory is read or
written.

In compiled functions `e` is a `Happening`.
"""

from cuasmrl.compiled import compiled, inlined
from cuasmrl.gpu.timing.async_records import CHUNK, GROUPS_OF_STORES, Engine, Happening, Side
from cuasmrl.gpu.timing.code import Int
from cuasmrl.gpu.timing.machine import Layout, Machine
from cuasmrl.gpu.timing.memory import beyond_l1, scatter, take_port
from cuasmrl.gpu.timing.records import SIXTEENTH, Access, Cause, Job, Row, Sm, Warp

KILOBYTE = 1024
_STALL_OF_A_WAIT = 4
"""As of every DEPBAR: one that stalls less holds nobody up."""


@inlined
def cost(code: Int, work: Int, p: int, e: int) -> int:
    """What an order takes of the engine, in sixteenths."""
    access = work[e + Happening.ACCESS]
    by_lines = work[access + Access.LINES] * code[p + Row.TURNS] if access >= 0 else 0
    by_bytes: int = code[p + Row.INTERVAL] * work[e + Happening.BYTES] // KILOBYTE
    return max(by_bytes, by_lines)


@compiled
def copy(
    code: Int, work: Int, machine: Machine, layout: Layout, state: Int, p: int, w: int, e: int, accepted: int,
    inwards: bool,
) -> tuple[int, int]:  # fmt: skip
    """Carry out an order: when it is done, and when it has read shared memory. Says in the SM's cause why."""
    busy = cost(code, work, p, e)
    start = max((accepted + code[p + Row.RAW]) * SIXTEENTH, state[layout.engine + Engine.FREE])
    state[layout.engine + Engine.FREE] = start + busy
    access, size = work[e + Happening.ACCESS], work[e + Happening.BYTES]
    sectors = fresh = 0
    if access >= 0:
        sectors, fresh = work[access + Access.SECTORS], work[access + Access.FRESH]
    turns = size // machine.shared_bytes
    parts = max(1, (sectors + CHUNK - 1) // CHUNK)
    who = code[p + Row.ORIGINAL] << 6 | state[w + Warp.NUMBER]
    random = scatter(state[Sm.SEED], state[w + Warp.BLOCK] << 32 | state[w + Warp.VISIT] - Job.HEAD, who)
    state[Sm.CAUSE] = Cause.LATENCY
    done = read = (start + busy) // SIXTEENTH
    for k in range(parts):
        at = (start + busy * (k + 1) // parts) // SIXTEENTH
        share = turns * (k + 1) // parts - turns * k // parts
        if not inwards and share:
            at = take_port(state, at, share) + share
            read = max(read, at)
        there = at
        missing = sectors * (k + 1) // parts - sectors * k // parts
        first = fresh * (k + 1) // parts - fresh * k // parts
        if missing or first:
            there = beyond_l1(machine, state, w, 0, inwards, missing, first, at, random)
        if inwards and share and machine.copy_fills_shared:
            there = take_port(state, there - share, share) + share
        done = max(done, there)
    if state[Sm.CAUSE] == Cause.LATENCY:
        state[Sm.CAUSE] = Cause.TMA
    return done, read


@inlined
def keep_store(state: Int, s: int, done: int, read: int) -> None:
    """A store belongs to the next group of its warp."""
    state[s + Side.READ] = max(state[s + Side.READ], read)
    state[s + Side.ARRIVED] = max(state[s + Side.ARRIVED], done)


@inlined
def close_stores(code: Int, state: Int, p: int, s: int) -> int:
    """All stores so far become a group; says when they have read their sources."""
    if code[p + Row.CLOSES]:
        number = state[s + Side.GROUPS]
        state[s + Side.GROUP_READ + number % GROUPS_OF_STORES] = state[s + Side.READ]
        state[s + Side.GROUP_ARRIVED + number % GROUPS_OF_STORES] = state[s + Side.ARRIVED]
        state[s + Side.GROUPS] = number + 1
    read: int = state[s + Side.READ]
    return read


@inlined
def await_stores(code: Int, state: Int, p: int, w: int, s: int) -> None:
    """All but the last groups of stores: that they have read their sources, or that they have arrived."""
    closed = state[s + Side.GROUPS] - code[p + Row.DEPBAR_COUNT]
    if closed > 0 and code[p + Row.STALL] >= _STALL_OF_A_WAIT:
        ring = s + (Side.GROUP_ARRIVED if code[p + Row.CLOSES] else Side.GROUP_READ)
        state[w + Warp.COPIES_END] = state[ring + (closed - 1) % GROUPS_OF_STORES]
        state[w + Warp.COPIES_END_CAUSE] = Cause.TMA
