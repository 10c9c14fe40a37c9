"""A shorter trace that stands for a long one: of every loop only the first and the last iterations.

Timing a whole kernel for every move of a game is waste: the iterations in the middle of a loop are alike. The
excerpt is for comparing schedules while searching; what is claimed in the end comes from the whole trace.
"""

from __future__ import annotations

from dataclasses import replace
from math import ceil

import numpy as np
import numpy.typing as npt

from cuasmrl.gpu.emulator import Trace
from cuasmrl.gpu.timing.excerpt_events import cut_events

_LONGEST_LOOP = 24
"""Blocks in an iteration of a loop that is recognised."""
Kept = npt.NDArray[np.bool_]
Path = npt.NDArray[np.int32]


def excerpt(trace: Trace, iterations: int) -> Trace:
    """The trace with at most so many iterations of each innermost loop.

    The warps of a block meet at barriers, so they must lose the same iterations: where their loops differ,
    nothing is taken out. Neither is where the phases of mbarriers do not fit together any more.
    """
    count = len(trace.path_start) - 1
    paths = [trace.path_blocks[trace.path_start[k] : trace.path_start[k + 1]] for k in range(count)]
    cuttable = _paths_with_the_same_loops(trace, paths, iterations)
    kept = [
        kept_visits(path, iterations) if k in cuttable else np.ones(len(path), bool)
        for k, path in enumerate(paths)
    ]
    starts = np.concatenate([[0], np.cumsum([k.sum() for k in kept])]).astype(np.int64)
    all_kept = np.concatenate([np.zeros(0, bool), *kept])
    # Where each visit of each path stands after the cut.
    positions = np.concatenate([np.zeros(0, np.int64), *(np.cumsum(k) - 1 for k in kept)])
    visit = trace.path_start[trace.path_of_warp[trace.access_warp]] + trace.access_position
    stays = all_kept[visit]
    events = cut_events(trace, all_kept, positions)
    if events is None:
        return trace
    return replace(
        trace,
        **events,  # type: ignore[arg-type]
        path_start=starts,
        path_blocks=trace.path_blocks[all_kept],
        access_warp=trace.access_warp[stays],
        access_position=positions[visit][stays].astype(np.int32),
        access_instruction=trace.access_instruction[stays],
        access_lanes=trace.access_lanes[stays],
        access_lines=trace.access_lines[stays],
        access_passes=trace.access_passes[stays],
        access_base=trace.access_base[stays],
        access_pattern=trace.access_pattern[stays],
    )


def enough_iterations(
    trace: Trace, lengths: npt.NDArray[np.int64], share: float, least: int, most: int
) -> int:
    """The fewest iterations with which loops still make up this share of what a warp executes.

    `lengths` are the instructions of each block.
    """
    count = len(trace.path_start) - 1
    paths = [trace.path_blocks[trace.path_start[k] : trace.path_start[k + 1]] for k in range(count)]

    def executed(iterations: int) -> int:
        return sum(int(lengths[path[kept_visits(path, iterations)]].sum()) for path in paths)

    few, more = executed(least), executed(2 * least)
    in_a_turn = (more - few) / least
    if not in_a_turn:
        return least
    outside = few - least * in_a_turn
    return min(most, max(least, ceil(share / (1 - share) * outside / in_a_turn)))


def kept_visits(path: Path, iterations: int) -> Kept:
    """Which visits of a path stay if loops keep `iterations` iterations, half of them at their end."""
    kept = np.ones(len(path), bool)
    at = 0
    while at < len(path):
        length, count = _loop_at(path, at)
        if count > iterations:
            first = at + iterations // 2 * length
            kept[first : first + (count - iterations) * length] = False
        at += length * count
    return kept


def _loop_at(path: Path, at: int) -> tuple[int, int]:
    """Blocks in an iteration of the longest loop that begins here, and its trip count; (1, 1) for none."""
    best = (1, 1)
    for length in range(1, min(_LONGEST_LOOP, (len(path) - at) // 2) + 1):
        iteration = path[at : at + length]
        count = 1
        while np.array_equal(path[at + count * length : at + (count + 1) * length], iteration):
            count += 1
        if count > 1 and count * length > best[0] * best[1]:
            best = (length, count)
    return best


def _paths_with_the_same_loops(trace: Trace, paths: list[Path], iterations: int) -> set[int]:
    """Paths that only occur in blocks all of whose warps are to lose the same iterations."""
    numbers: dict[tuple[tuple[bytes, int], ...], int] = {}
    loops = np.array([numbers.setdefault(_long_loops(path, iterations), len(numbers)) for path in paths])
    by_block = trace.path_of_warp.reshape(-1, trace.header.warps_per_block)
    uniform = (loops[by_block] == loops[by_block[:, :1]]).all(axis=1)
    return set(by_block[uniform].ravel().tolist()) - set(by_block[~uniform].ravel().tolist())


def _long_loops(path: Path, iterations: int) -> tuple[tuple[bytes, int], ...]:
    """The loops of more iterations that a path goes through: the blocks of one, and the trip count."""
    found, at = [], 0
    while at < len(path):
        length, count = _loop_at(path, at)
        if count > iterations:
            found.append((path[at : at + length].tobytes(), count))
        at += length * count
    return tuple(found)
