"""A trace laid out for replay: for every warp its blocks, for every visit of a block its accesses."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from cuasmrl.emulator import Trace
from cuasmrl.emulator.trace import code_digest
from cuasmrl.errors import CuasmrlError
from cuasmrl.sass import Listing
from cuasmrl.schedule import control_flow
from cuasmrl.timing.code import traced_slots

Int = npt.NDArray[np.int64]


class Work(NamedTuple):
    warps_per_block: int
    blocks: int
    path_start: Int
    """Per warp, into `path`; one element more than there are warps."""
    path: Int
    visit_slots: Int
    """Per element of `path`: where its accesses begin in `accesses`."""
    accesses: Int
    """Per visit and memory instruction of the block: number of the access, or -1 if no lane was active."""
    lines: Int
    passes: Int
    sectors_start: Int
    """Per access, into `sectors`."""
    sectors: Int
    """Addresses in units of sectors."""


def lay_out(trace: Trace, listing: Listing) -> Work:
    """The work of all traced warps; `listing` is the code that was traced."""
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
    path_start = np.concatenate([[0], np.cumsum([len(p) for p in paths])]).astype(np.int64)
    path = np.concatenate([np.zeros(0, np.int64), *paths])
    visit_slots = np.concatenate([[0], np.cumsum(slots[path])]).astype(np.int64)
    accesses = np.full(int(visit_slots[-1]), -1, np.int64)
    visit = path_start[trace.access_warp] + trace.access_position
    accesses[visit_slots[visit] + slot_of[trace.access_instruction]] = np.arange(len(visit))
    counts = np.diff(trace.pattern_start)[trace.access_pattern] if len(visit) else np.zeros(0, np.int64)
    start = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    sectors = [trace.sectors(k) // 32 for k in range(len(visit))]
    return Work(
        trace.header.warps_per_block,
        len(trace.blocks),
        path_start,
        path,
        visit_slots[:-1],
        accesses,
        trace.access_lines.astype(np.int64),
        trace.access_passes.astype(np.int64),
        start,
        np.concatenate([np.zeros(0, np.int64), *sectors]),
    )
