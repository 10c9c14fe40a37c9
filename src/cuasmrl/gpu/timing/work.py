"""A trace laid out for replay: for every warp its blocks, for every visit of a block its accesses."""

from __future__ import annotations

import numpy as np

from cuasmrl.binary.sass import Listing
from cuasmrl.errors import CuasmrlError
from cuasmrl.gpu.emulator import Trace
from cuasmrl.gpu.emulator.trace import SECTOR_BYTES, code_digest
from cuasmrl.gpu.timing.code import Int, traced_slots
from cuasmrl.gpu.timing.records import Job, Row
from cuasmrl.schedule import control_flow


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
    parts, starts, at = [], [], 0
    for k in range(len(trace.access_warp)):
        sectors = trace.sectors(k) // SECTOR_BYTES
        head = [int(trace.access_lines[k]), int(trace.access_passes[k]), len(sectors)]
        parts.append(np.concatenate([head, sectors]).astype(np.int64))
        starts.append(at)
        at += len(parts[-1])
    return np.concatenate([np.zeros(0, np.int64), *parts]), np.array(starts, np.int64)


def _starts(counts: Int) -> Int:
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
