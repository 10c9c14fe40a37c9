"""The events of a trace laid out for replay: what happens at each execution, and what phases wait for."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from cuasmrl.binary.sass import Listing
from cuasmrl.gpu.emulator import Trace
from cuasmrl.gpu.emulator.events import Event, copies_in, copies_out
from cuasmrl.gpu.emulator.values import LANES
from cuasmrl.gpu.timing.async_records import BulkCopy, Happening
from cuasmrl.gpu.timing.code import Int

_COPIES = (Event.COPY_IN, Event.COPY_OUT)
_OF_PHASES = (Event.ARRIVE, Event.ARRIVE_WITH_COPIES, Event.COPY_IN)


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
        Happening.PHASE: phases_of(trace),
        Happening.NUMBER: trace.event_barrier,
        Happening.WARPS: -(-trace.event_count // LANES),
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


def copies_of(trace: Trace, listing: Listing, access_of: Int) -> Int:
    """A `BulkCopy` for each copy by an engine."""
    chosen = np.isin(trace.event_kind, _COPIES)
    numbers, block = phases_of(trace), trace.event_warp // trace.header.warps_per_block
    phase = np.where(numbers >= 0, block * (numbers.max(initial=0) + 1) + numbers, -1)
    awaited = np.isin(phase, phase[(trace.event_kind == Event.WAIT) & (numbers >= 0)])
    table = np.zeros((int(chosen.sum()), BulkCopy.WIDTH), np.int64)
    table[:, BulkCopy.BLOCK] = block[chosen]
    table[:, BulkCopy.INSTRUCTION] = trace.event_instruction[chosen]
    table[:, BulkCopy.BYTES] = trace.event_bytes[chosen]
    table[:, BulkCopy.ACCESS] = _accesses_of_copies(trace, listing, access_of)
    table[:, BulkCopy.INWARDS] = trace.event_kind[chosen] == Event.COPY_IN
    table[:, BulkCopy.AWAITED] = awaited[chosen]
    return table
