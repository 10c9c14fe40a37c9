"""What AssemblyGame-v1 shows of every instruction: what it is, where it stands, what the machine did there.

Nothing depends on the size of a kernel or on names of registers, so one policy can play any kernel.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from cuasmrl.binary.sass import BARRIERS, MAX_STALL, Order, Pipe
from cuasmrl.binary.sass.opcodes import Space
from cuasmrl.game.jumps import JUMPS, Bool
from cuasmrl.game.scope import Scope
from cuasmrl.gpu.devices import Profile
from cuasmrl.gpu.timing import REASON_NAMES, Reason
from cuasmrl.schedule import Block, Board
from cuasmrl.schedule.scoreboards import awaited_boards

Float: TypeAlias = npt.NDArray[np.float32]
Int: TypeAlias = npt.NDArray[np.int64]

_PIPES = tuple(Pipe)
_MEMORY = (
    (Space.SHARED, "reads"),
    (Space.SHARED, "writes"),
    (Space.GLOBAL, "reads"),
    (Space.GLOBAL, "writes"),
)
_BEYOND_L1 = (Reason.L2_SHARE, Reason.DRAM)
"""Shown as long scoreboards, which they were before the model knew them apart: the columns are part of v1."""
_REASONS = tuple(reason for reason in Reason if reason not in (Reason.ISSUED, Reason.NO_WARP, *_BEYOND_L1))
_ANNOUNCED = (Reason.SHORT_SCOREBOARD, Reason.LONG_SCOREBOARD, Reason.COPY)
"""Waits that end when a scoreboard falls."""
_DEEPEST = 4
_FAR = 64
"""Positions and cycles beyond this make no difference."""

STATIC = (
    *(f"pipe {pipe}" for pipe in _PIPES), *(f"{what} {space}" for space, what in _MEMORY), "synchronises",
    "fixed", "variable latency", "predicated", "dependences before", "dependences behind", "loop depth",
    "iterations", "weight",
)  # fmt: skip
DYNAMIC = (
    "stall", "yields", "waits", "sets write barrier", "sets read barrier", "reuse", "position in block",
    "room above", "room below", "anchor above", "anchor below", "slack", "moved last", "jumps",
    "share of time", "awaited",
    *(f"waited: {REASON_NAMES[reason]}" for reason in _REASONS),
)  # fmt: skip
COLUMNS = (*STATIC, *DYNAMIC)
_JUMPS = COLUMNS.index("jumps")


class Features:
    """Makes the rows of a game's scope, in the present order of its instructions."""

    def __init__(self, board: Board, scope: Scope, profile: Profile, anchors: Bool) -> None:
        self.board = board
        self.scope = scope
        self.anchors = anchors
        self._static = _static(board, scope, profile)
        self._counted = np.array([sum(1 << k for k in awaited_boards(i, 0)) for i in board.code], np.int64)
        """Scoreboards that DEPBAR names, as wait bits."""
        self._consumers = {block.number: _consumers(board, block.start, block.end) for block in scope.blocks}

    def rows(self, profile: Profile, low: Int, high: Int, jumps: Int, last: int) -> Float:
        """All rows of the scope; `low` and `high` are the reaches of the rows, `jumps` how many are legal,
        `last` is the instruction moved last."""
        parts = []
        total = max(1.0, float(profile.waits.sum() + profile.executions.sum()))
        at = 0
        for block in self.scope.blocks:
            size = len(block)
            parts.append(
                self._block(block.number, profile, total, low[at : at + size], high[at : at + size], last)
            )
            at += size
        found = np.concatenate(parts)
        found[:, _JUMPS] = jumps / len(JUMPS)
        return found

    def _block(self, number: int, profile: Profile, total: float, low: Int, high: Int, last: int) -> Float:
        board, block = self.board, self.board.blocks[number]
        order = np.array(board.order[block.start : block.end], np.int64)
        here = np.arange(block.start, block.end)
        bits = np.array([board.controls[i].bits for i in order], np.int64)
        rows = np.zeros((len(order), len(COLUMNS)), np.float32)
        rows[:, : len(STATIC)] = self._static[order]
        dynamic = rows[:, len(STATIC) :]
        dynamic[:, 0] = (bits & 15) / MAX_STALL
        dynamic[:, 1] = ~bits >> 4 & 1
        dynamic[:, 2] = sum(bits >> 11 + k & 1 for k in range(BARRIERS)) / BARRIERS
        dynamic[:, 3] = (bits >> 5 & 7) != 7
        dynamic[:, 4] = (bits >> 8 & 7) != 7
        dynamic[:, 5] = bits >> 17 != 0
        dynamic[:, 6] = (here - block.start) / len(block)
        dynamic[:, 7] = _log(here - low)
        dynamic[:, 8] = _log(high - here)
        dynamic[:, 9], dynamic[:, 10] = _anchor_distances(self.anchors[order])
        dynamic[:, 11] = _log(self._slack(number, order))
        dynamic[:, 12] = order == last
        waits = profile.waits[here].copy()
        waits[:, Reason.LONG_SCOREBOARD] += waits[:, _BEYOND_L1].sum(axis=1)
        waits[:, _BEYOND_L1] = 0
        dynamic[:, 14] = np.sqrt((waits.sum(axis=1) + profile.executions[here]) / total)
        dynamic[:, 15] = np.sqrt(self._awaited(bits, order, waits[:, _ANNOUNCED].sum(axis=1)) / total)
        dynamic[:, 16:] = np.sqrt(waits[:, _REASONS] / total)
        return rows

    def _awaited(self, bits: Int, order: Int, waits: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Cycles that others waited for the scoreboard which each raised last before them.

        Before the first in a loop that is the last one of the previous iteration.
        """
        found = np.zeros(len(order))
        masks = bits >> 11 | self._counted[order]
        for k in range(BARRIERS):
            raising = np.flatnonzero((bits >> 5 & 7 == k) | (bits >> 8 & 7 == k))
            waiting = np.flatnonzero((masks >> k & 1 == 1) & (waits > 0))
            if len(raising):
                np.add.at(found, raising[np.searchsorted(raising, waiting) - 1], waits[waiting])
        return found.clip(max=float(waits.sum()))

    def _slack(self, number: int, order: Int) -> Int:
        """Cycles by which each could be later, by stall counts, before someone behind it had to move."""
        start = self.board.blocks[number].start
        consumers, needs, starts = self._consumers[number]
        time = np.array([*self.board.time[start : start + len(order)], 1 << 20])
        counts = np.diff(starts)
        found = time[consumers] - np.repeat(time[:-1], counts) - needs
        return np.minimum.reduceat(found, starts[:-1])[order - start].clip(0, _FAR)


def _static(board: Board, scope: Scope, profile: Profile) -> Float:
    rows = np.zeros((len(board.code), len(STATIC)), np.float32)
    most = max(1.0, float(profile.executions.max(initial=0.0)))
    depth = _loop_depths(board.blocks)
    weights = dict(zip(scope.movable, scope.weights, strict=True))
    largest = max(scope.weights)
    for block in scope.blocks:
        graph = board.graphs[block.number]
        iterations = float(profile.executions[block.start : block.end].max(initial=0.0)) / most
        for i in range(block.start, block.end):
            instruction, declaration = board.code[i], board.code[i].declaration
            assert declaration is not None
            rows[i] = [
                *(float(declaration.pipe is pipe) for pipe in _PIPES),
                *(float(getattr(declaration, what) is space) for space, what in _MEMORY),
                instruction.order is Order.SYNC, board.fixed[i], instruction.is_variable,
                instruction.is_conditional, float(_log(graph.before[i])),
                float(_log(graph.behind[i])), depth[block.number] / _DEEPEST, iterations,
                weights.get(i, 0.0) / largest,
            ]  # fmt: skip
    return rows


def _loop_depths(blocks: tuple[Block, ...]) -> list[int]:
    """Jumps backwards that span a block: compilers lay a loop out in one piece."""
    depth = [0] * len(blocks)
    for block in blocks:
        for target in block.successors:
            for number in range(target, block.number + 1):
                depth[number] = min(_DEEPEST, depth[number] + 1)
    return depth


def _consumers(board: Board, start: int, end: int) -> tuple[Int, Int, Int]:
    """Those behind each instruction at a distance, and the distance; one far away for those without any."""
    entries = [[(c - start, need) for c, need in board.bounds.outgoing[i] if need > 0] or [(end - start, 0)]
               for i in range(start, end)]  # fmt: skip
    starts = np.concatenate([[0], np.cumsum([len(e) for e in entries])]).astype(np.int64)
    flat = np.array([pair for e in entries for pair in e], np.int64)
    return flat[:, 0], flat[:, 1], starts


def _anchor_distances(anchored: Bool) -> tuple[Float, Float]:
    here = np.arange(len(anchored))
    above = np.maximum.accumulate(np.where(anchored, here, -_FAR))
    below = np.minimum.accumulate(np.where(anchored, here, len(here) + _FAR)[::-1])[::-1]
    return _log(here - above), _log(below - here)


def _log(count: npt.ArrayLike) -> Float:
    """0 for nothing, 1 for far."""
    return np.asarray(np.log1p(np.minimum(count, _FAR)) / np.log1p(_FAR), np.float32)
