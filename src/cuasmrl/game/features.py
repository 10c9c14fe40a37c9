"""What AssemblyGame-v1 shows of every instruction: what it is, where it stands, what the machine did there.

Nothing depends on the size of a kernel or on names of registers, so one policy can play any kernel.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from cuasmrl.binary.sass import BARRIERS, MAX_STALL, Order, Pipe
from cuasmrl.binary.sass.control import NO_BARRIER
from cuasmrl.binary.sass.opcodes import Space
from cuasmrl.compiled import compiled, inlined
from cuasmrl.game.jumps import JUMPS, Bool
from cuasmrl.game.scope import Scope
from cuasmrl.gpu.profile import Profile
from cuasmrl.gpu.timing import Reason
from cuasmrl.schedule import Board, loop_depths
from cuasmrl.schedule.cells import HOLDS, STALL, Cell, Int32
from cuasmrl.schedule.scoreboards import awaited_boards

Float: TypeAlias = npt.NDArray[np.float32]
Double: TypeAlias = npt.NDArray[np.float64]
Int: TypeAlias = npt.NDArray[np.int64]

_PIPES = tuple(Pipe)
_MEMORY = (
    (Space.SHARED, "reads"),
    (Space.SHARED, "writes"),
    (Space.GLOBAL, "reads"),
    (Space.GLOBAL, "writes"),
)
_WAITS = (
    ("stall", (Reason.STALL,)),
    ("branch", (Reason.BRANCH,)),
    ("fetch", (Reason.FETCH,)),
    ("short scoreboard", (Reason.SHORT_SCOREBOARD,)),
    ("long scoreboard", (Reason.LONG_SCOREBOARD, Reason.L2_SHARE, Reason.DRAM)),
    ("copy", (Reason.COPY, Reason.TMA)),
    ("barrier", (Reason.BARRIER, Reason.MBARRIER)),
    ("tensor result", (Reason.TENSOR_RESULT,)),
    ("constant", (Reason.CONSTANT,)),
    ("tensor busy", (Reason.TENSOR_BUSY,)),
    ("unit busy", (Reason.UNIT_BUSY,)),
    ("memory queue", (Reason.MEMORY_QUEUE,)),
    ("register port", (Reason.REGISTER_PORT,)),
    ("not selected", (Reason.NOT_SELECTED,)),
)
"""Columns of v1, and the reasons that each shows.

Spelled out, as columns are part of the version: what the model learns to tell apart later goes where it
counted before, or, as engines that copy and mbarriers, whose kernels v1 could not play, to what is most like
it. A reason that stands nowhere has no column; `TENSOR_ENGINE` waits for a new version of the observation.
"""
_ANNOUNCED = (
    Reason.SHORT_SCOREBOARD, Reason.LONG_SCOREBOARD, Reason.L2_SHARE, Reason.DRAM,
    Reason.COPY, Reason.TMA, Reason.MBARRIER,
)  # fmt: skip
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
    *(f"waited: {name}" for name, _ in _WAITS),
)  # fmt: skip
COLUMNS = (*STATIC, *DYNAMIC)
# For compiled code: where columns begin that are filled in together.
_DYNAMIC = len(STATIC)
_STALL, _POSITION, _ANCHORS, _SLACK, _JUMPS, _SHARE = (
    COLUMNS.index(name)
    for name in ("stall", "position in block", "anchor above", "slack", "jumps", "share of time")
)
_WAITED = _SHARE + 2
_SHOWN = len(_WAITS)
_KINDS = len(JUMPS)
# By reason. Compiled code is handed these: what it took from here by itself would stay on disk as it is, also
# when reasons get other numbers.
_COLUMN_OF = np.full(len(Reason), len(_WAITS), np.int64)
for _number, (_, _reasons) in enumerate(_WAITS):
    _COLUMN_OF[list(_reasons)] = _number
_IS_ANNOUNCED = np.zeros(len(Reason), np.bool_)
_IS_ANNOUNCED[list(_ANNOUNCED)] = True


class Features:
    """Makes the rows of a game's scope, in the present order of its instructions."""

    def __init__(self, board: Board, scope: Scope, profile: Profile, anchors: Bool) -> None:
        self.board = board
        self.scope = scope
        counted = [sum(1 << k for k in awaited_boards(i, 0)) for i in board.code]
        self._facts = Facts(
            _static(board, scope, profile), np.array(counted, np.int64), anchors, _log(np.arange(_FAR + 1)),
            _COLUMN_OF, _IS_ANNOUNCED,
        )  # fmt: skip
        self._consumers = {block.number: _consumers(board, block.start, block.end) for block in scope.blocks}

    def fill(
        self, profile: Profile, total: float, low: Int, high: Int, legal: Bool, last: int, rows: Float
    ) -> None:
        """Make all rows of the scope, which are zero; `total` are the cycles of the profile, `low` and `high`
        the reaches of the rows, `legal` their jumps, `last` is the instruction moved last."""
        at = 0
        for block in self.scope.blocks:
            here = slice(at, at + len(block))
            _fill(
                self.board.cells, block.start, self._facts, *self._consumers[block.number], profile.waits,
                profile.executions, total, last, low[here], high[here], legal[here], rows[here],
            )  # fmt: skip
            at += len(block)


class Facts(NamedTuple):
    """Of all instructions, for compiled code."""

    static: Float
    """The first columns."""
    counted: Int
    """Scoreboards that DEPBAR names, as wait bits."""
    anchors: Bool
    logs: Float
    """Small numbers as columns show them."""
    column_of: Int
    """By reason: the column of waits that shows it; one behind the last for none."""
    is_announced: Bool
    """By reason: does such a wait end when a scoreboard falls?"""


@compiled
def sum_up(waits: Double, executions: Double, by_position: Double) -> float:
    """Fill in the cycles that warps waited at each position; all cycles, with those of issues."""
    total = 0.0
    for p in range(len(waits)):
        cycles = 0.0
        for k in range(waits.shape[1]):
            cycles += waits[p, k]
        by_position[p] = cycles
        total += cycles + executions[p]
    return total


@compiled
def _fill(  # noqa: PLR0913, PLR0917 - compiled code takes arrays one by one
    cells: Int32, start: int, facts: Facts, consumers: Int, needs: Int, consumer_starts: Int, waits: Double,
    executions: Double, total: float, last: int, low: Int, high: Int, legal: Bool, rows: Float,
) -> None:  # fmt: skip
    """The rows of one block."""
    n, logs = len(rows), facts.logs
    cycles = np.zeros(_SHOWN + 1)
    for p in range(n):
        i, here = cells[Cell.ORDER, start + p], start + p
        bits, row = cells[Cell.BITS, i], rows[p]
        for column in range(_DYNAMIC):
            row[column] = facts.static[i, column]
        row[_STALL] = (bits & STALL) / MAX_STALL
        row[_STALL + 1] = not bits & HOLDS
        count = 0
        for k in range(BARRIERS):
            count += bits >> 11 + k & 1
        row[_STALL + 2] = count / BARRIERS
        row[_STALL + 3] = (bits >> 5 & 7) != NO_BARRIER
        row[_STALL + 4] = (bits >> 8 & 7) != NO_BARRIER
        row[_STALL + 5] = bits >> 17 != 0
        row[_POSITION] = p / n
        row[_POSITION + 1] = logs[min(here - low[p], _FAR)]
        row[_POSITION + 2] = logs[min(high[p] - here, _FAR)]
        slack = _FAR
        for d in range(consumer_starts[i - start], consumer_starts[i - start + 1]):
            behind = cells[Cell.TIME, start + consumers[d]]
            slack = min(slack, behind - cells[Cell.TIME, i] - needs[d])
        row[_SLACK] = logs[max(0, slack)]
        row[_SLACK + 1] = i == last
        count = 0
        for k in range(_KINDS):
            count += legal[p, k]
        row[_JUMPS] = count / _KINDS
        _show_waits(waits[here], executions[here], total, facts.column_of, cycles, row)
    _show_anchors(cells, start, facts, rows)
    _show_awaited(cells, start, facts, waits, total, rows)


@inlined
def _show_waits(
    waits: Double, executions: float, total: float, column_of: Int, cycles: Double, row: Float
) -> None:
    """Cycles by column, and those of all reasons with the executions."""
    spent = executions
    cycles[:] = 0
    for reason in range(len(waits)):
        spent += waits[reason]
        cycles[column_of[reason]] += waits[reason]
    row[_SHARE] = np.sqrt(spent / total)
    for k in range(_SHOWN):
        # Most are zero, and roots are slow.
        if cycles[k]:
            row[_WAITED + k] = np.sqrt(cycles[k] / total)


@compiled
def _show_anchors(cells: Int32, start: int, facts: Facts, rows: Float) -> None:
    """How far the next anchors are."""
    n = len(rows)
    distance = _FAR
    for p in range(n):
        distance = 0 if facts.anchors[cells[Cell.ORDER, start + p]] else min(distance + 1, _FAR)
        rows[p, _ANCHORS] = facts.logs[distance]
    distance = _FAR
    for p in range(n - 1, -1, -1):
        distance = 0 if facts.anchors[cells[Cell.ORDER, start + p]] else min(distance + 1, _FAR)
        rows[p, _ANCHORS + 1] = facts.logs[distance]


@compiled
def _show_awaited(cells: Int32, start: int, facts: Facts, waits: Double, total: float, rows: Float) -> None:
    """Cycles that others waited for the scoreboard which each raised last before them.

    Before the first in a loop that is the last one of the previous iteration.
    """
    n = len(rows)
    waited, found = np.zeros(n), np.zeros(n)
    most = 0.0
    last = np.full(8, -1, np.int64)
    for p in range(n):
        for reason in range(waits.shape[1]):
            if facts.is_announced[reason]:
                waited[p] += waits[start + p, reason]
        most += waited[p]
        bits = cells[Cell.BITS, cells[Cell.ORDER, start + p]]
        last[bits >> 5 & 7] = last[bits >> 8 & 7] = p
    for p in range(n):
        i = cells[Cell.ORDER, start + p]
        bits = cells[Cell.BITS, i]
        if waited[p] > 0:
            boards = bits >> 11 | facts.counted[i]
            for k in range(BARRIERS):
                if boards >> k & 1 and last[k] >= 0:
                    found[last[k]] += waited[p]
        last[bits >> 5 & 7] = last[bits >> 8 & 7] = p
    for p in range(n):
        rows[p, _SHARE + 1] = np.sqrt(min(found[p], most) / total)


def _static(board: Board, scope: Scope, profile: Profile) -> Float:
    rows = np.zeros((len(board.code), len(STATIC)), np.float32)
    most = max(1.0, float(profile.executions.max(initial=0.0)))
    depth = [min(_DEEPEST, depth) for depth in loop_depths(board.blocks)]
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


def _consumers(board: Board, start: int, end: int) -> tuple[Int, Int, Int]:
    """Those behind each instruction at a distance, and the distance."""
    entries = [[(c - start, need) for c, need in board.bounds.outgoing[i] if need > 0]
               for i in range(start, end)]  # fmt: skip
    starts = np.concatenate([[0], np.cumsum([len(e) for e in entries])]).astype(np.int64)
    flat = np.array([pair for e in entries for pair in e], np.int64).reshape(-1, 2)
    return flat[:, 0].copy(), flat[:, 1].copy(), starts


def _log(count: npt.ArrayLike) -> Float:
    """0 for nothing, 1 for far."""
    return np.asarray(np.log1p(np.minimum(count, _FAR)) / np.log1p(_FAR), np.float32)
