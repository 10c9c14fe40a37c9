"""Events of a trace of which iterations are taken out: the phases of mbarriers are joined over the gap.

Copies run ahead of those who wait for them. So in front of the gap there are phases that nobody waits for
any more, and behind it waits for phases of which the copies are gone. There are as many of both, and the
first wait behind the gap stands for the first that is gone.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
import numpy.typing as npt

from cuasmrl.gpu.emulator import Trace
from cuasmrl.gpu.emulator.events import COLUMNS, Event
from cuasmrl.gpu.timing.event_work import phases_of

Columns = dict[str, npt.NDArray[Any]]


def cut_events(trace: Trace, kept: npt.NDArray[np.bool_], positions: npt.NDArray[np.int64]) -> Columns | None:
    """The events that stay; None if phases cannot be joined.

    `kept` and `positions` say of each visit of each path whether it stays, and where.
    """
    visit = trace.path_start[trace.path_of_warp[trace.event_warp]] + trace.event_position
    stays = kept[visit]
    joined = _joined(trace, stays)
    if joined is None:
        return None
    columns = {f"event_{name}": getattr(trace, f"event_{name}")[stays] for name in COLUMNS}
    columns["event_position"] = positions[visit][stays].astype(np.int32)
    barrier, phase = trace.event_barrier.copy(), trace.event_phase.copy()
    for events, (to_barrier, to_phase) in joined:
        barrier[events], phase[events] = to_barrier, to_phase
    return columns | {"event_barrier": barrier[stays], "event_phase": phase[stays]}


def _joined(trace: Trace, stays: npt.NDArray[np.bool_]) -> list[tuple[list[int], tuple[int, int]]] | None:
    """Events whose phase becomes another one, by its barrier and number."""
    numbers = phases_of(trace)
    if stays.all() or not (numbers >= 0).any():
        return []
    block = trace.event_warp // trace.header.warps_per_block
    of_phase: dict[tuple[int, int], list[int]] = defaultdict(list)
    for event in np.flatnonzero(numbers >= 0):
        of_phase[int(block[event]), int(numbers[event])].append(int(event))
    found = []
    gaps: dict[tuple[Any, ...], tuple[list[list[int]], list[list[int]]]] = defaultdict(lambda: ([], []))
    for (where, _), events in of_phase.items():
        tells = [e for e in events if trace.event_kind[e] != Event.WAIT]
        waits = [e for e in events if trace.event_kind[e] == Event.WAIT]
        told, waited = [e for e in tells if stays[e]], [e for e in waits if stays[e]]
        if len(told) == len(tells) and len(waited) == len(waits):
            continue
        key = where, *sorted({int(trace.event_instruction[e]) for e in waits})
        if told and not waited and waits:
            gaps[key][0].append(events)
        elif waited and len(told) < len(tells):
            gaps[key][1].append(events)
        elif told and len(told) < len(tells) and waits:
            return None
    for ahead, behind in gaps.values():
        if len(ahead) != len(behind):
            return None
        for front, back in zip(_in_order(trace, ahead), _in_order(trace, behind), strict=True):
            found.append((back, (int(trace.event_barrier[front[0]]), int(trace.event_phase[front[0]]))))
    return found


def _in_order(trace: Trace, phases: list[list[int]]) -> list[list[int]]:
    """By when the first warp waits for them."""

    def first(events: list[int]) -> int:
        return min(int(trace.event_position[e]) for e in events if trace.event_kind[e] == Event.WAIT)

    return sorted(phases, key=first)
