"""A trace laid out for replay: for every warp its blocks, for every visit of a block its accesses."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from cuasmrl.binary.sass import Listing
from cuasmrl.errors import CuasmrlError
from cuasmrl.gpu.emulator import Trace
from cuasmrl.gpu.emulator.footprint import first_touches, readers, touches, writers
from cuasmrl.gpu.emulator.trace import code_digest
from cuasmrl.gpu.timing.code import Int, traced_slots
from cuasmrl.gpu.timing.event_work import lay_out_events, orders_of, phase_events
from cuasmrl.gpu.timing.records import OWN_SECTOR, Access, Job, Row
from cuasmrl.schedule import control_flow

_GROUP_SECTORS = 16
"""Sectors of four lines, which lie side by side in the tags."""


def lay_out(trace: Trace, listing: Listing) -> Int:
    """The work of all traced warps as one array that begins with a `Job`; `listing` is the traced code."""
    if code_digest(listing.kernel.words) != trace.header.code:
        raise CuasmrlError(
            f"The trace of {trace.header.kernel} was recorded from other code than this schedule's; "
            "record it again."
        )
    blocks = control_flow(listing)
    numbers = traced_slots(listing, blocks)
    slot_of = np.full(len(listing.instructions), -1, np.int64)
    slot_of[list(numbers)] = list(numbers.values())
    slots = np.array([np.count_nonzero(slot_of[b.start : b.end] >= 0) for b in blocks], np.int64)
    paths = [trace.path(w).astype(np.int64) for w in range(trace.warps)]
    starts = _starts(np.array([len(p) for p in paths], np.int64))
    path = np.concatenate([np.zeros(0, np.int64), *paths])
    visit_slots = _starts(slots[path])
    records, record_of = _records(trace, listing)
    accesses = np.full(int(visit_slots[-1]), -1, np.int64)
    visit = starts[trace.access_warp] + trace.access_position
    block_starts = int(Job.HEAD)
    path_starts = block_starts + len(blocks)
    visits = path_starts + len(starts)
    first_access = visits + 2 * len(path)
    first_record = first_access + len(accesses)
    accesses[visit_slots[visit] + slot_of[trace.access_instruction]] = first_record + record_of
    events, event_of = lay_out_events(trace, listing, first_record + len(records), first_record + record_of)
    visit = starts[trace.event_warp] + trace.event_position
    accesses[visit_slots[visit] + slot_of[trace.event_instruction]] = event_of
    phases = phase_events(trace)
    phase_table = first_record + len(records) + len(events)
    head = [trace.header.warps_per_block, len(trace.blocks), block_starts, path_starts, first_access,
            phases.shape[1], phase_table, phase_table + phases.size]  # fmt: skip
    return np.concatenate([
        np.array(head, np.int64),
        np.array([block.start * Row.WIDTH for block in blocks], np.int64),
        visits + 2 * starts,
        np.stack([path, visit_slots[:-1]], axis=1).reshape(-1),
        accesses,
        records,
        events,
        phases.reshape(-1),
        orders_of(trace, listing, first_record + record_of).reshape(-1),
    ])  # fmt: skip


def _records(trace: Trace, listing: Listing) -> tuple[Int, Int]:
    """All accesses one behind the other, and where each begins.

    A line that only one of the traced blocks touches is marked as its own: when a later block goes the same
    way, it stands for another line.
    """
    counts = np.where(trace.access_base >= 0, np.diff(trace.pattern_start)[trace.access_pattern], 0)
    starts = _starts(counts + Access.FIRST_SECTOR)
    records = np.zeros(int(starts[-1]), np.int64)
    heads = starts[:-1]
    records[heads + Access.LINES] = trace.access_lines
    records[heads + Access.PASSES] = trace.access_passes
    records[heads + Access.SECTORS] = counts
    of_access, sector = touches(trace, np.flatnonzero(counts))
    begins = np.ones(len(sector), bool)
    begins[1:] = (np.diff(sector // _GROUP_SECTORS) != 0) | (np.diff(of_access) != 0)
    records[heads + Access.GROUPS] = np.bincount(of_access[begins], minlength=len(heads))
    block = trace.access_warp[of_access].astype(np.int64) // trace.header.warps_per_block
    is_sector = np.ones(len(records), bool)
    is_sector[heads[:, None] + np.arange(Access.FIRST_SECTOR)] = False
    records[is_sector] = sector | np.where(_is_own(block, sector >> 2), OWN_SECTOR, 0)
    for instructions in (readers(listing), writers(listing) - readers(listing)):
        np.add.at(records, heads[first_touches(trace, instructions)[0]] + Access.FRESH, 1)
    if trace.header.footprint is None:
        records[heads + Access.FRESH] = counts
    return records, heads


def _is_own(block: Int, line: Int) -> npt.NDArray[np.bool_]:
    """For each touch of a line by a block: is that the only block that touches it?"""
    lines, which = np.unique(line, return_inverse=True)
    low, high = np.full(len(lines), len(block), np.int64), np.full(len(lines), -1, np.int64)
    np.minimum.at(low, which, block)
    np.maximum.at(high, which, block)
    return np.asarray((low == high)[which])


def _starts(counts: Int) -> Int:
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
