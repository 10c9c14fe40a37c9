"""The events of a trace laid out for replay: what happens at each execution, and what phases wait for."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from cuasmrl.binary.sass import Listing
from cuasmrl.gpu.emulator import Trace
from cuasmrl.gpu.emulator.events import Event, copies_in, copies_out
from cuasmrl.gpu.emulator.values import LANES
from cuasmrl.gpu.timing.async_records import Happening, Order
from cuasmrl.gpu.timing.code import Int

_MEETINGS = (Event.MEET, Event.PASS)
_COPIES = (Event.COPY_IN, Event.COPY_OUT)
_OF_PHASES = (Event.ARRIVE, Event.ARRIVE_WITH_COPIES, Event.COPY_IN, Event.COMMIT)


def phases_of(trace: Trace) -> Int:
    """For each event the number of its phase in the block; -1 for none, and for a wait for nothing."""
    kind, phase = trace.event_kind, trace.event_phase
    numbers = np.full(len(kind), -1, np.int64)
    tells = np.isin(kind, _OF_PHASES)
    of_phase = (tells | (kind == Event.WAIT)) & (phase >= 0)
    block = trace.event_warp // trace.header.warps_per_block
    keys = np.stack([block, trace.event_barrier, phase], axis=1)[of_phase].astype(np.int64)
    if not len(keys):
        return numbers
    distinct, which = np.unique(keys, axis=0, return_inverse=True)
    which = which.reshape(-1)
    told = np.bincount(which[tells[of_phase]], minlength=len(distinct)) > 0
    # Numbers begin anew in each block.
    first = np.searchsorted(distinct[:, 0], distinct[:, 0])
    numbers[of_phase] = np.where(told[which], which - first[which], -1)
    return numbers


def phase_events(trace: Trace) -> Int:
    """By block and phase: how many events it has besides waits."""
    numbers, block = phases_of(trace), trace.event_warp // trace.header.warps_per_block
    counted = (numbers >= 0) & np.isin(trace.event_kind, _OF_PHASES)
    table = np.zeros((len(trace.blocks), int(numbers.max(initial=-1)) + 1), np.int64)
    np.add.at(table, (block[counted], numbers[counted]), 1)
    return table


def lay_out_events(trace: Trace, listing: Listing, first: int, access_of: Int) -> tuple[Int, Int]:
    """Records of what happens, which stand from `first` on in the work; and for each event its record.

    `access_of` says where the record of each access is.
    """
    count = len(trace.event_kind)
    if not count:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    place = np.stack([trace.event_warp, trace.event_position, trace.event_instruction], axis=1)
    begins = np.concatenate([[True], (np.diff(place, axis=0) != 0).any(axis=1)])
    group = np.cumsum(begins) - 1
    sizes = np.bincount(group)
    starts = np.concatenate([[0], np.cumsum(1 + sizes * int(Happening.WIDTH))])
    within = np.arange(count) - np.flatnonzero(begins)[group]
    records = np.zeros(int(starts[-1]), np.int64)
    records[starts[:-1]] = sizes
    at = starts[group] + 1 + within * int(Happening.WIDTH)
    access = np.full(count, -1, np.int64)
    access[np.isin(trace.event_kind, _COPIES)] = _accesses_of_copies(trace, listing, access_of)
    fields: dict[Happening, Int | npt.NDArray[np.int32]] = {
        Happening.KIND: trace.event_kind,
        Happening.PHASE: np.where(trace.event_kind == Event.PRODUCT, trace.event_phase, phases_of(trace)),
        Happening.NUMBER: trace.event_barrier,
        Happening.COUNT: np.where(
            np.isin(trace.event_kind, _MEETINGS), -(-trace.event_count // LANES), trace.event_count
        ),
        Happening.BYTES: trace.event_bytes,
        Happening.ACCESS: access,
    }
    for name, values in fields.items():
        records[at + name] = values
    return records, first + starts[:-1][group]


def _accesses_of_copies(trace: Trace, listing: Listing, access_of: Int) -> Int:
    """Every copy has one access, and both tables are in the same order."""
    copies = [i.index for i in listing.instructions if copies_in(i) or copies_out(i)]
    return access_of[np.isin(trace.access_instruction, copies)]


def orders_of(trace: Trace, listing: Listing, access_of: Int) -> Int:
    """An `Order` for each copy and each product by an engine."""
    kind = trace.event_kind
    chosen, copies = np.isin(kind, (*_COPIES, Event.PRODUCT)), np.isin(kind, _COPIES)
    numbers, block = phases_of(trace), trace.event_warp // trace.header.warps_per_block
    phase = np.where(numbers >= 0, block * (numbers.max(initial=0) + 1) + numbers, -1)
    awaited = np.isin(phase, phase[(kind == Event.WAIT) & (numbers >= 0)])
    # Products are awaited with the last commit of their warp for which somebody waits.
    last = np.full(trace.warps, -1)
    commits = np.flatnonzero((kind == Event.COMMIT) & awaited)
    last[trace.event_warp[commits]] = commits
    awaited |= np.arange(len(kind)) < last[trace.event_warp]
    access = np.full(len(kind), -1, np.int64)
    access[copies] = _accesses_of_copies(trace, listing, access_of)
    columns: dict[Order, npt.NDArray[Any]] = {
        Order.BLOCK: block,
        Order.INSTRUCTION: trace.event_instruction,
        Order.BYTES: trace.event_bytes,
        Order.ACCESS: access,
        Order.KIND: kind,
        Order.AWAITED: awaited,
        Order.COLUMNS: trace.event_count,
    }
    table = np.zeros((int(chosen.sum()), Order.WIDTH), np.int64)
    for name, values in columns.items():
        table[:, name] = values[chosen]
    return table
