"""The numbers of a chip in the form that compiled code reads."""

from typing import NamedTuple

from cuasmrl.gpu.timing.async_records import NUMBERS, Engine, Meet, Phase, Side
from cuasmrl.gpu.timing.memory_system import Share
from cuasmrl.gpu.timing.parameters import Parameters
from cuasmrl.gpu.timing.records import SIXTEENTH, SUB_CORES, Core, Seat, Sm, Squad, Warp

L1_WAYS = 4
TAG_WORDS = 4
_LINE_BYTES = 128
_SMALLEST_CACHE = 16 << 10


class Layout(NamedTuple):
    """Where the records of the state begin."""

    cores: int
    core_width: int
    lines: int
    """Of a sub-core: when its lines of instructions arrive."""
    l0_lines: int
    """Places of the L0 instruction cache, as far as the kernel can fill them."""
    seats: int
    warps: int
    warps_end: int
    tags: int
    """Four words per way of the L1 cache: line, sectors, last use, and one to spare."""
    nexts: int
    """When a warp of each sub-core may issue at the earliest."""
    ready: int
    """When each warp may issue, those of a sub-core side by side."""
    gates: int
    """As `ready`: the field that lets the next instruction of each warp in; -1 if more has to be asked."""
    slots: int
    """Warps of a sub-core."""
    squads: int
    """A record for each warp, that of the first for its warpgroup; none in a kernel without products."""
    engine: int
    """The copying engine; this and what follows has no room in a kernel without such events."""
    sides: int
    """What each warp has under way beside it."""
    meets: int
    """Barriers of each seat by their numbers."""
    phases: int
    """Phases of mbarriers of each seat."""
    ends: int
    """When each block was done."""
    size: int


class Needs(NamedTuple):
    """What a kernel makes use of: the state holds nothing else, as every replay begins with a copy of it."""

    lines: int
    """Of instructions."""
    constants: int
    """Lines of constants."""
    l1: bool
    products: bool
    """Of warpgroups."""


class Machine(NamedTuple):
    """The numbers of a chip that the replay needs, whole cycles unless said otherwise."""

    queue_entries: int
    accept_delay: int
    agu_interval: int
    sm_accept_interval: int
    conflict_step: int
    shared_bytes: int
    return_bytes: int
    copy_fills_shared: int
    copy_bytes: int
    port_backlog: int
    tag_lines: int
    tag_extra: int
    """In sixteenths."""
    l1_sets: int
    l2_latency: int
    l2_far_latency: int
    l2_jitter: int
    dram_latency: int
    share: Share
    bar_latency: int
    bar_gap: int
    branch_taken: int
    stop_hold: int
    constant_miss: int
    fetch_latency: int
    fetch_gap: int
    prefetch_lines: int
    l0_lines: int
    block_start: int
    warp_start: int
    warp_choice: int


def machine_of(parameters: Parameters, shared_bytes: int, share: Share) -> Machine:
    """The numbers of the replay; what blocks do not take of the SM's memory is L1 cache."""
    cycles = parameters.cycles
    cache = max(parameters["l1_bytes"] - shared_bytes, _SMALLEST_CACHE)
    return Machine(
        queue_entries=cycles("queue_entries"),
        accept_delay=cycles("accept_delay"),
        agu_interval=cycles("agu_interval"),
        sm_accept_interval=cycles("sm_accept_interval"),
        conflict_step=cycles("conflict_step"),
        shared_bytes=cycles("shared_bytes"),
        return_bytes=cycles("return_bytes"),
        copy_fills_shared=cycles("copy_fills_shared"),
        copy_bytes=cycles("copy_bytes"),
        port_backlog=cycles("port_backlog"),
        tag_lines=cycles("tag_lines"),
        tag_extra=round(SIXTEENTH * parameters["tag_extra"]),
        l1_sets=int(cache) // (L1_WAYS * _LINE_BYTES),
        l2_latency=cycles("l2_latency"),
        l2_far_latency=cycles("l2_far_latency"),
        l2_jitter=cycles("l2_jitter"),
        dram_latency=cycles("dram_latency"),
        share=share,
        bar_latency=cycles("bar_latency"),
        bar_gap=cycles("bar_gap"),
        branch_taken=cycles("branch_taken"),
        stop_hold=cycles("stop_hold"),
        constant_miss=cycles("constant_miss"),
        fetch_latency=cycles("fetch_latency"),
        fetch_gap=cycles("fetch_gap"),
        prefetch_lines=cycles("prefetch_lines"),
        l0_lines=cycles("l0_bytes") // _LINE_BYTES,
        block_start=cycles("block_start"),
        warp_start=cycles("warp_start"),
        warp_choice=cycles("warp_choice"),
    )


def layout_of(
    machine: Machine, needs: Needs, resident: int, per_block: int, blocks: int, phases: int | None = None
) -> Layout:
    """The state of an SM with so many resident blocks, for so many blocks in all.

    `phases` are those of mbarriers of a block; None if nothing runs beside the warps.
    """
    cores = int(Sm.WIDTH)
    l0_lines = min(machine.l0_lines, needs.lines + machine.prefetch_lines + 1)
    lines = Core.CONSTANTS + needs.constants
    core_width = lines + 2 * l0_lines
    seats = cores + SUB_CORES * core_width
    warps = seats + resident * Seat.WIDTH
    tags = warps + resident * per_block * Warp.WIDTH
    nexts = tags + (machine.l1_sets * L1_WAYS * TAG_WORDS if needs.l1 else 0)
    ready = nexts + SUB_CORES
    slots = -(-resident * per_block // SUB_CORES)
    gates = ready + SUB_CORES * slots
    squads = gates + SUB_CORES * slots
    engine = squads + (resident * per_block * Squad.WIDTH if needs.products else 0)
    beside = phases is not None
    sides = engine + (Engine.WIDTH if beside else 0)
    meets = sides + (resident * per_block * Side.WIDTH if beside else 0)
    first_phase = meets + (resident * NUMBERS * Meet.WIDTH if beside else 0)
    ends = first_phase + resident * (phases or 0) * Phase.WIDTH
    return Layout(
        cores, core_width, lines, l0_lines, seats, warps, tags, tags, nexts, ready, gates, slots, squads,
        engine, sides, meets, first_phase, ends, ends + blocks,
    )  # fmt: skip
