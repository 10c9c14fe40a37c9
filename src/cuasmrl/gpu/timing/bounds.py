"""Modelled cycles that no schedule of a kernel goes below, resource by resource, without a replay.

A bound is the work of the SM's blocks for one resource, behind the earliest cycle in which a warp can come to
it; or the way of the warps through their paths. All are true at once, so the largest is the bound.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cuasmrl.gpu.timing.bulk_demand import Bulk, bulk_of
from cuasmrl.gpu.timing.code import Int
from cuasmrl.gpu.timing.critical_path import walk
from cuasmrl.gpu.timing.demand import MOST_SECTORS, Demand, cached_loads, no_sectors, touch
from cuasmrl.gpu.timing.model import Model
from cuasmrl.gpu.timing.records import FAR, PARTS, SIXTEENTH, SLOTS, SUB_CORES, WARPS_OF_GROUP, Access, Job
from cuasmrl.gpu.timing.survey import Taken, Use, World, code_of, empty_survey

_UNITS = {Use.FMA: "FP32 unit", Use.FMA_PAIR: "FP32 units together", Use.INT: "integer unit",
          Use.HALF: "half precision unit", Use.FP64: "FP64 unit", Use.XU: "special function unit",
          Use.UNIFORM: "uniform datapath", Use.BRANCH: "branch unit",
          Use.TENSOR_FEED: "tensor core, operands of one warp"}  # fmt: skip
_PORTS = {Use.EVEN_PORT: "register port, even", Use.ODD_PORT: "register port, odd"}
_DEMANDS = {Demand.SHARED: "shared memory and L1 port", Demand.RETURN: "return path to a sub-core",
            Demand.TAGS: "L1 tags"}  # fmt: skip
_PORT_SLIP = 4 + 2 * 2 * SLOTS
"""An instruction issues when the one two before it can read within so many cycles, as in `registers.py`."""


@dataclass(frozen=True)
class Bound:
    """What one resource needs at least, in modelled cycles."""

    resource: str
    busy: float
    """Work for it; that of the busiest sub-core where every sub-core has its own."""
    cycles: int
    """No legal schedule takes fewer cycles in all."""


@dataclass(frozen=True, eq=False)
class _Share:
    """What all blocks of the SM take."""

    resident: int
    taken: Int
    """By block, warp, use and `Taken`."""
    length: Int
    """By block: the way of its slowest warp."""
    cores: Int
    """By block and warp: its sub-core; -1 where that depends on which block ends first."""
    fetched: int
    """Sectors that loads need from L2 before the last awaited one of them is there."""
    touched: int
    """Sectors that loads need from L2 in all."""

    def busiest(self, use: int, column: Taken = Taken.TOTAL) -> int:
        """At least so much comes to some sub-core."""
        amounts = self.taken[:, :, use, column]
        known = [int(amounts[self.cores == core].sum()) for core in range(SUB_CORES)]
        return max(*known, -(-int(amounts.sum()) // SUB_CORES))

    def total(self, use: int, column: Taken = Taken.TOTAL) -> int:
        return int(self.taken[:, :, use, column].sum())

    def first(self, use: int) -> int:
        return int(self.taken[:, :, use, Taken.FIRST].min())

    def largest(self, use: int) -> int:
        return int(self.taken[:, :, use, Taken.LARGEST].max())

    def ended(self, use: int) -> int:
        """What blocks took that had ended before the last one began, besides what is awaited."""
        total, awaited = (self.taken[:, :, use, c].sum(axis=1) for c in (Taken.TOTAL, Taken.AWAITED))
        if not awaited.all():
            return 0
        return int(np.sort(total - awaited)[: max(0, len(total) - self.resident)].sum())

    def behind(self, use: int, work: int, last: int) -> int:
        """Cycles in all if so much work is done from the first on, but for that of the last instruction."""
        return max(0, self.first(use) + work - last + 1) if work else 0


def bounds_of(model: Model) -> tuple[Bound, ...]:
    """The bounds of a kernel on a chip, the largest first; for any legal schedule and any seed."""
    share = _share(model)
    way = _way(model, share)
    found = [Bound("dependences of a warp", way, way), *_issue(model, share), *_queues(model, share)]
    found += [_port(share, demand, name) for demand, name in _DEMANDS.items()]
    bulk = bulk_of(model)[np.arange(model.blocks) % int(model.work[Job.BLOCKS])]
    found += _beyond_l1(model, share, bulk)
    engine = int(bulk[:, Bulk.ENGINE].sum())
    awaited = int(bulk[:, Bulk.AWAITED].sum()) // SIXTEENTH
    found.append(Bound("TMA engine", engine / SIXTEENTH, awaited + 1 if awaited else 0))
    tensor = int(bulk[:, Bulk.TENSOR].sum())
    awaited = int(bulk[:, Bulk.TENSOR_AWAITED].sum()) // SIXTEENTH
    found.append(Bound("tensor engine", tensor / SIXTEENTH, awaited + 1 if awaited else 0))
    return tuple(sorted((bound for bound in found if bound.busy), key=lambda bound: -bound.cycles))


def _share(model: Model) -> _Share:
    work, blocks = model.work, np.arange(model.blocks)
    per_block, traced = int(work[Job.WARPS_PER_BLOCK]), int(work[Job.BLOCKS])
    executions = np.bincount(blocks % traced, minlength=traced).repeat(per_block)
    code, survey = code_of(model), empty_survey(len(executions), len(work))
    loads = [cached_loads(code.rows, work, warp) for warp in range(len(executions))]
    most = sum(int(work[work[places] + Access.SECTORS].sum()) for _, places in (one.T for one in loads))
    world = World(code, work, model.machine, no_sectors(most), survey)
    for warp in np.flatnonzero(executions):
        touch(work, world.sectors, loads[warp], int(executions[warp]))
    fetched = no_sectors(most)
    for warp in np.flatnonzero(executions):
        walk(world, int(warp))
        visits, places = loads[warp].T
        is_awaited = (visits < survey.l2_visits[warp]) | (survey.l2_loads[places] > 0)
        touch(work, fetched, loads[warp][is_awaited], 1)
    # A block that starts later takes the seat of one that has ended.
    is_known = (blocks < model.resident) | (per_block % SUB_CORES == 0)
    cores = (blocks[:, None] * per_block + np.arange(per_block)) % SUB_CORES
    return _Share(
        resident=model.resident,
        taken=survey.taken.reshape(traced, per_block, Use.WIDTH, Taken.WIDTH)[blocks % traced],
        length=survey.length.reshape(traced, per_block)[blocks % traced].max(axis=1),
        cores=np.where(is_known[:, None], cores, -1),
        fetched=int((fetched[:, 0] >= 0).sum()),
        touched=int((world.sectors[:, 0] >= 0).sum()),
    )


def _way(model: Model, share: _Share) -> int:
    """A seat takes its blocks one after the other, and some seat gets its full share of them."""
    lengths = np.sort(share.length)
    blocks, seats = len(lengths), share.resident
    waves = -(-blocks // seats)
    # The next block starts that much behind the end of the one before.
    gap = model.machine.block_start - 1
    shortest = int(lengths[:waves].sum()) + (waves - 1) * gap
    average = -(-(int(lengths.sum()) + (blocks - seats) * gap) // seats)
    return max(int(lengths[-1]), shortest, average)


def _issue(model: Model, share: _Share) -> list[Bound]:
    """What is waited for at issue: in every sub-core by itself, but for a pipe that is the SM's only one."""
    slots = share.busiest(Use.ISSUE)
    found = [Bound("issue slots", slots, slots)]
    for use, name in _UNITS.items():
        is_only = use == Use.FP64 and model.parameters["fp64_units"] == 1
        busy = share.total(use) if is_only else share.busiest(use)
        busy = -(-busy // 2) if use == Use.FMA_PAIR else busy
        found.append(Bound(name, busy, share.behind(use, busy, share.largest(use))))
    for use, name in _PORTS.items():
        reads = share.busiest(use)
        found.append(Bound(name, reads, share.behind(use, reads, _PORT_SLIP)))
    products = share.busiest(Use.TENSOR)
    starts = (products - share.largest(Use.TENSOR)) // SIXTEENTH
    ahead = model.parameters.cycles("tensor_ahead")
    cycles = max(0, share.first(Use.TENSOR) + starts + 1 - ahead) if products else 0
    return [*found, Bound("tensor core", products / SIXTEENTH, cycles), _engine(share)]


def _engine(share: _Share) -> Bound:
    """Products of warpgroups come one after the other, and those that are awaited are done before the end.

    Each of a warpgroup's warps has a part of every product at the same time; groups that nobody awaits may
    still be under way when the kernel ends.
    """
    parts = WARPS_OF_GROUP * SIXTEENTH
    awaited = share.total(Use.ENGINE, Taken.AWAITED) // parts
    return Bound(
        "tensor engine",
        share.total(Use.ENGINE) / parts,
        share.first(Use.ENGINE) + awaited + 1 if awaited else 0,
    )


def _queues(model: Model, share: _Share) -> list[Bound]:
    """Instructions that do not fit into the queue wait at issue until enough others have been accepted."""
    machine = model.machine
    found = []
    for name, count, queues, interval in (
        ("memory queue, address generation", share.busiest(Use.MEMORY), 1, machine.agu_interval),
        ("memory arbiter", share.total(Use.MEMORY), SUB_CORES, machine.sm_accept_interval),
    ):
        ahead = count - queues * machine.queue_entries - 1
        start = share.first(Use.MEMORY) + machine.accept_delay
        cycles = start + ahead * interval + 1 if ahead >= 0 else 0
        found.append(Bound(name, count * interval, cycles))
    return found


def _port(share: _Share, demand: Demand, name: str) -> Bound:
    """What is waited for only through results: all that came before the last awaited one."""
    use, largest = Use.BEHIND_QUEUE + demand, share.largest(Use.BEHIND_QUEUE + demand)
    if demand is Demand.RETURN:
        busy, work = float(share.busiest(use)), share.busiest(use, Taken.AWAITED)
    else:
        busy, work = float(share.total(use)), share.total(use, Taken.AWAITED) + share.ended(use)
    latency = int(share.taken[:, :, use, Taken.LATENCY].min())
    return Bound(name, busy, share.behind(use, work, largest - latency) if latency < FAR else 0)


def _beyond_l1(model: Model, share: _Share, bulk: Int) -> list[Bound]:
    """L2 and DRAM: what is awaited, and what has to be through before the kernel ends."""
    rates, tail_block = model.machine.share, model.machine.share.tail_block

    def total(use: int, ease: float, copied: Bulk) -> int:
        """Parts of a cycle in all; in the tail a sector costs less."""
        by_block = share.taken[:, :, use, Taken.TOTAL].sum(axis=1) + bulk[:, copied]
        return int(by_block[:tail_block].sum() + ease * by_block[tail_block:].sum())

    full, tail = rates.full, rates.tail
    use = Use.BEHIND_QUEUE + Demand.L2
    ease = min(tail.l2_read / full.l2_read, tail.l2_written / full.l2_written)
    sector = min(full.l2_read, tail.l2_read)
    taken = total(use, ease, Bulk.L2) + share.touched * sector
    awaited = (
        int(min(1, ease) * (share.total(use, Taken.AWAITED) + share.ended(use))) + share.fetched * sector
    )
    largest = max(share.largest(use), MOST_SECTORS * sector)
    latency = int(share.taken[:, :, use, Taken.LATENCY].min())
    # An SM may be ahead of its share by so much.
    ahead = -(-(largest + rates.l2_slack) // PARTS)
    behind = share.behind(use, awaited // PARTS, ahead - latency) if latency < FAR else 0
    first = 0 if bulk.any() else share.first(use)
    through = first + taken // PARTS if taken else 0
    found = [Bound("L2 bandwidth", taken / PARTS, max(behind, through))]
    use = Use.BEHIND_QUEUE + Demand.DRAM
    moved = total(
        use, rates.tail.dram_read / rates.full.dram_read if rates.full.dram_read else ease, Bulk.DRAM
    )
    first = 0 if bulk.any() else share.first(use)
    return [*found, Bound("DRAM bandwidth", moved / PARTS, first + moved // PARTS if moved else 0)]
