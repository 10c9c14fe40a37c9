"""A trace laid out for replay: for every warp its blocks, for every visit of a block its accesses."""

from __future__ import annotations

import numpy as np

from cuasmrl.binary.sass import Listing
from cuasmrl.errors import CuasmrlError
from cuasmrl.gpu.emulator import Trace
from cuasmrl.gpu.emulator.trace import SECTOR_BYTES, code_digest
from cuasmrl.gpu.timing.code import Int, traced_slots
from cuasmrl.gpu.timing.records import Access, Job, Row
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
    records, record_of = _records(trace)
    accesses = np.full(int(visit_slots[-1]), -1, np.int64)
    visit = starts[trace.access_warp] + trace.access_position
    block_starts = int(Job.HEAD)
    path_starts = block_starts + len(blocks)
    visits = path_starts + len(starts)
    first_access = visits + 2 * len(path)
    first_record = first_access + len(accesses)
    accesses[visit_slots[visit] + slot_of[trace.access_instruction]] = first_record + record_of
    head = [trace.header.warps_per_block, len(trace.blocks), block_starts, path_starts, first_access]
    return np.concatenate([
        np.array(head, np.int64),
        np.array([block.start * Row.WIDTH for block in blocks], np.int64),
        visits + 2 * starts,
        np.stack([path, visit_slots[:-1]], axis=1).reshape(-1),
        accesses,
        records,
    ])  # fmt: skip


def _records(trace: Trace) -> tuple[Int, Int]:
    """All accesses one behind the other, and where each begins."""
    first, counts = trace.pattern_start[:-1], np.diff(trace.pattern_start)
    sizes = counts[trace.access_pattern]
    starts = _starts(sizes + Access.FIRST_SECTOR)
    ends = _starts(sizes)
    within = np.arange(ends[-1]) - np.repeat(ends[:-1], sizes)
    offsets = trace.pattern_sectors[np.repeat(first[trace.access_pattern], sizes) + within]
    sectors = np.repeat(trace.access_base // SECTOR_BYTES, sizes) + offsets
    begins = np.ones(len(sectors), bool)
    begins[1:] = (np.diff(sectors // _GROUP_SECTORS) != 0) | (within[1:] == 0)
    owner = np.repeat(np.arange(len(sizes)), sizes)
    records = np.zeros(int(starts[-1]), np.int64)
    records[starts[:-1] + Access.LINES] = trace.access_lines
    records[starts[:-1] + Access.PASSES] = trace.access_passes
    records[starts[:-1] + Access.SECTORS] = sizes
    records[starts[:-1] + Access.GROUPS] = np.bincount(owner[begins], minlength=len(sizes))
    records[np.repeat(starts[:-1], sizes) + Access.FIRST_SECTOR + within] = sectors
    return records, starts[:-1]


def _starts(counts: Int) -> Int:
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
