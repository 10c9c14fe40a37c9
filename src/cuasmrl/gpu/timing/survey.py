"""Records of the walk along a warp's path that `critical_path` makes, and what it brings home."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

import numpy as np

from cuasmrl.binary.sass import Listing, Order, distances
from cuasmrl.compiled import compiled
from cuasmrl.gpu.timing.code import Int
from cuasmrl.gpu.timing.dataflow import Dataflow, dataflow_of, no_writers
from cuasmrl.gpu.timing.demand import BEHIND
from cuasmrl.gpu.timing.machine import Machine
from cuasmrl.gpu.timing.model import Model
from cuasmrl.gpu.timing.records import BOARDS, FAR, IN_FLIGHT, SUB_CORES, Job, Row
from cuasmrl.schedule import Schedule, control_flow


class Use(IntEnum):
    """What a warp takes of the SM: cycles, unless said otherwise."""

    ISSUE = 0
    FMA = 1
    """Of the full FP32 pipe, by instructions that can use no other."""
    FMA_PAIR = 2
    """Of the full and the lite FP32 pipe together, where there are two."""
    INT = 3
    HALF = 4
    FP64 = 5
    XU = 6
    UNIFORM = 7
    BRANCH = 8
    TENSOR = 9
    """Sixteenths of a cycle."""
    TENSOR_FEED = 10
    """Between products of one warp, where a sub-core never has two warps."""
    MEMORY = 11
    """Instructions."""
    EVEN_PORT = 12
    ODD_PORT = 13
    ENGINE = 14
    """Sixteenths of a cycle that products of the warpgroup take, a part for each of its warps."""
    BEHIND_QUEUE = 15
    """Five in the order of `Demand`."""
    WIDTH = 20


PACED = int(Use.MEMORY)
"""Uses before this one are issued at the pace of a unit."""


class Taken(IntEnum):
    """What is written down for each use."""

    TOTAL = 0
    LARGEST = 1
    """Of a single instruction."""
    FIRST = 2
    """When the warp can come to the first."""
    AWAITED = 3
    """The part of the total that has surely had its turn when the last awaited result is there."""
    LATENCY = 4
    """The shortest of an awaited result; FAR if there is none."""
    REGION_TOTAL = 5
    REGION_LARGEST = 6
    REGION_FIRST = 7
    WIDTH = 8


class Move(IntEnum):
    """What a legal schedule leaves of an instruction's place."""

    FENCE = 0
    """Does a region begin here? At the start of a block, and before and behind a pinned instruction."""
    STALL = 1
    """The least stall count."""


class Code(NamedTuple):
    """The original listing on a chip."""

    rows: Int
    flow: Dataflow
    moves: Int
    """A `Move` per instruction."""
    far: int
    """Latency of what is surely not in L1."""
    lone: int
    """Has every sub-core one warp only at any time?"""
    paired: int
    """Are there two FP32 pipes?"""


class Survey(NamedTuple):
    """What the walks found."""

    taken: Int
    """By traced warp, use and `Taken`."""
    length: Int
    """Cycles from the start of each warp to its end, at least."""
    l2_visits: Int
    """Visits of each warp's path before the last awaited result that surely came from L2."""
    l2_loads: Int
    """Further such loads, by the place of their access in the work."""


class World(NamedTuple):
    """All that the walks share."""

    code: Code
    work: Int
    machine: Machine
    sectors: Int
    survey: Survey


class Past(IntEnum):
    """The last execution of an instruction."""

    ISSUED = 0
    DONE = 1
    CLOCK = 2
    """When it was issued by the stall counts of the original alone."""
    NUMBER = 3
    VISIT = 4
    ACCESS = 5
    """Place of its access in the work; -1 for none."""
    MISSES = 6
    """Does its data come from L2 under any schedule?"""
    IS_AWAITED = 7
    AMOUNTS = 8
    """Five in the order of `Demand`."""
    WIDTH = 13


class Now(IntEnum):
    """Where a walk is."""

    ENTRY = 0
    """When the region's first instruction can issue."""
    PASSED = 1
    """Stall counts of the region so far."""
    NEXT = 2
    """When an instruction behind all those so far can issue."""
    LATEST = 3
    """When the last of those so far can issue."""
    SYNCED = 4
    """When memory accesses behind the last synchronisation can issue."""
    ACCESSED = 5
    """When the last memory access so far can issue."""
    COPIES = 6
    """When the copies so far can have arrived."""
    COPY_VISIT = 7
    GROUPS = 8
    NUMBER = 9
    CLOCK = 10
    VISIT = 11
    WAITED = 12
    """By scoreboard, the number of the last instruction that waited for it."""
    GATES = 12 + BOARDS
    """By `Demand`, the last visit with an awaited result; -1 for none."""
    WIDTH = 12 + BOARDS + BEHIND


_NOW_WIDTH, _PAST_WIDTH = int(Now.WIDTH), int(Past.WIDTH)


class Walker(NamedTuple):
    now: Int
    past: Int
    """A `Past` per instruction."""
    writers: Int
    taken: Int
    """By use and `Taken`."""
    groups: Int
    """Groups of copies: when they can have arrived, and the visit of the last copy."""
    visits: Int
    """By visit: what was taken behind the queue before it, and in it by awaited loads."""


def code_of(model: Model) -> Code:
    """The listing of a model as the walk reads it."""
    listing, machine = model.listing, model.machine
    warps = model.resident * int(model.work[Job.WARPS_PER_BLOCK])
    return Code(
        rows=model.table(Schedule.original(listing)).reshape(-1, Row.WIDTH),
        flow=dataflow_of(listing),
        moves=_moves(listing),
        far=min(machine.l2_latency, machine.l2_far_latency, machine.dram_latency),
        lone=int(warps <= SUB_CORES),
        paired=int(model.parameters["fma_units"] > 1),
    )


def _moves(listing: Listing) -> Int:
    table = distances(listing.kernel.arch)
    moves = np.zeros((len(listing.instructions), len(Move)), np.int64)
    for block in control_flow(listing):
        moves[block.start, Move.FENCE] = 1
    for i in listing.instructions:
        if i.order is Order.PINNED:
            moves[i.index : i.index + 2, Move.FENCE] = 1
        known = table.minimum_stall(i)
        moves[i.index, Move.STALL] = max(1, i.control.stall if known is None else min(known, i.control.stall))
    return moves


def empty_survey(warps: int, work: int) -> Survey:
    taken = np.zeros((warps, Use.WIDTH, Taken.WIDTH), np.int64)
    taken[:, :, [Taken.FIRST, Taken.LATENCY]] = FAR
    return Survey(taken, np.zeros(warps, np.int64), np.zeros(warps, np.int64), np.zeros(work, np.int64))


@compiled
def new_walker(survey: Survey, instructions: int, visits: int, warp: int) -> Walker:
    now = np.zeros(_NOW_WIDTH, np.int64)
    now[Now.COPY_VISIT] = -1
    now[Now.WAITED :] = -1
    return Walker(
        now,
        np.zeros((instructions, _PAST_WIDTH), np.int64),
        no_writers(),
        survey.taken[warp],
        np.zeros((IN_FLIGHT, 2), np.int64),
        np.zeros((visits, 2, BEHIND), np.int64),
    )
