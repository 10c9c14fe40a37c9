"""What a policy sees of each instruction of a block, where it stands now."""

from __future__ import annotations

import numpy as np

from cuasmrl.agents.policy.observation.facts import STATIC, Facts, Float, Int
from cuasmrl.agents.policy.observation.timeline import Double, Timeline
from cuasmrl.binary.sass import BARRIERS, MAX_STALL
from cuasmrl.binary.sass.control import NO_BARRIER
from cuasmrl.compiled import compiled, inlined
from cuasmrl.gpu.timing import Reason
from cuasmrl.schedule.cells import HOLDS, STALL, Cell, Int32
from cuasmrl.schedule.reach import Neighbours, limits
from cuasmrl.schedule.retiming import Arrays

_GROUPS = (
    ("short scoreboard", (Reason.SHORT_SCOREBOARD,)),
    ("long scoreboard", (Reason.LONG_SCOREBOARD, Reason.L2_SHARE, Reason.DRAM)),
    ("copy", (Reason.COPY, Reason.TMA)),
    ("barrier", (Reason.BARRIER, Reason.MBARRIER)),
    ("product", (Reason.TENSOR_RESULT,)),
    ("unit", (Reason.TENSOR_BUSY, Reason.UNIT_BUSY)),
    ("queue", (Reason.MEMORY_QUEUE,)),
    ("not selected", (Reason.NOT_SELECTED,)),
    ("front end", (Reason.FETCH, Reason.BRANCH, Reason.CONSTANT, Reason.REGISTER_PORT)),
)
_STALLED = len(_GROUPS)
"""The number of what belongs to none of them: tensor engines; stall counts, which a schedule shows anyway.

Weights know no other columns, so what the model learns to tell apart later joins a group that is like it.
"""
GROUP_OF = np.full(len(Reason), _STALLED, np.int64)
for _number, (_, _reasons) in enumerate(_GROUPS):
    GROUP_OF[list(_reasons)] = _number
_GROUP_NAMES = tuple(name for name, _ in _GROUPS)

DYNAMIC = (
    "stall", "yields", "waits", "sets write barrier", "sets read barrier", "reuse", "position",
    "positions above", "positions below", "room above", "room below", "cycles to the next",
    *(f"waited: {name}" for name in _GROUP_NAMES), "share of time", "awaited", "distance kept before",
    "distance kept behind", "results early", "needed late", "slack of the path",
    "block: share of time", "block: instructions", "block: cycles",
    *(f"block: {name}" for name in _GROUP_NAMES),
)  # fmt: skip
COLUMNS = (*STATIC, *DYNAMIC)
_FIRST = len(STATIC)
_WAITED = COLUMNS.index("waited: short scoreboard")
_SHARE = COLUMNS.index("share of time")
_BLOCK = COLUMNS.index("block: share of time")
_FAR = 1e6


@inlined
def squeezed(value: float) -> float:
    """A number of cycles or positions of either sign, large ones closer to each other."""
    size: float = np.log1p(abs(value)) / 4
    return size if value >= 0 else -size


@compiled
def rows_of(
    cells: Int32, facts: Facts, neighbours: Neighbours, bounds: Arrays, timeline: Timeline, waits: Double,
    executions: Double, total: float, groups: Int,
) -> Float:  # fmt: skip
    """A row of `COLUMNS` for each instruction of the block, in the order of the original."""
    n = len(facts.kinds)
    rows = np.zeros((n, _BLOCK + 3 + _STALLED), np.float32)
    sums = np.zeros(_STALLED + 1)
    spent_in_block = 0.0
    for p in range(n):
        i = timeline.order[p]
        row = rows[i]
        row[:_FIRST] = facts.rows[i]
        bits = cells[Cell.BITS, facts.start + i]
        count = 0
        for k in range(BARRIERS):
            count += bits >> 11 + k & 1
        low, high = limits(cells, neighbours, i)
        row[_FIRST] = (bits & STALL) / MAX_STALL
        row[_FIRST + 1] = not bits & HOLDS
        row[_FIRST + 2] = count / BARRIERS
        row[_FIRST + 3] = (bits >> 5 & 7) != NO_BARRIER
        row[_FIRST + 4] = (bits >> 8 & 7) != NO_BARRIER
        row[_FIRST + 5] = bits >> 17 != 0
        row[_FIRST + 6] = p / n
        row[_FIRST + 7] = squeezed(p)
        row[_FIRST + 8] = squeezed(n - 1 - p)
        row[_FIRST + 9] = squeezed(p - low)
        row[_FIRST + 10] = squeezed(high - p)
        row[_FIRST + 11] = (timeline.clock[p + 1] - timeline.clock[p]) / MAX_STALL
        spent = executions[p]
        for reason in range(waits.shape[1]):
            cycles = waits[p, reason]
            spent += cycles
            sums[groups[reason]] += cycles
            if groups[reason] < _STALLED:
                row[_WAITED + groups[reason]] += cycles
        for g in range(_STALLED):
            row[_WAITED + g] = squeezed(row[_WAITED + g] / max(1.0, executions[p]))
        row[_SHARE] = np.sqrt(spent / total)
        spent_in_block += spent
    for i in range(n):
        rows[i, _BLOCK] = np.sqrt(spent_in_block / total)
        rows[i, _BLOCK + 1] = squeezed(n)
        rows[i, _BLOCK + 2] = squeezed(timeline.length[0])
        for g in range(_STALLED):
            rows[i, _BLOCK + 3 + g] = np.sqrt(sums[g] / max(1.0, spent_in_block))
    _show_distances(bounds, timeline, rows)
    _show_results(timeline, rows)
    _show_path(bounds, timeline, rows)
    return rows


@compiled
def _show_distances(bounds: Arrays, timeline: Timeline, rows: Float) -> None:
    """How far stall counts keep each from what it depends on, and from what depends on it."""
    n = len(timeline.order)
    at = np.empty(n, np.int64)
    for p in range(n):
        at[timeline.order[p]] = timeline.clock[p]
    for i in range(n):
        before = behind = 63
        for d in range(bounds.starts[i], bounds.starts[i + 1]):
            before = min(before, at[i] - at[bounds.distances[d, 0]] - bounds.distances[d, 1])
        for d in range(bounds.later_starts[i], bounds.later_starts[i + 1]):
            behind = min(behind, at[bounds.later[d, 0]] - at[i] - bounds.later[d, 1])
        rows[i, _SHARE + 2] = squeezed(max(0, before))
        rows[i, _SHARE + 3] = squeezed(max(0, behind))


@compiled
def _show_results(timeline: Timeline, rows: Float) -> None:
    """How long results are there before somebody waits for them, and how long others waited for each."""
    n = len(timeline.order)
    early, late, awaited = np.full(n, 2000.0), np.full(n, 2000.0), np.zeros(n)
    for i in range(n):
        for e in range(timeline.edge_starts[i], timeline.edge_starts[i + 1]):
            s = timeline.edges[e, 0]
            slack = edge_slack(timeline, timeline.issued, timeline.length[0], e, i)
            early[i] = min(early[i], slack)
            late[s] = min(late[s], slack)
            if slack < 1:
                awaited[s] += timeline.delay[e]
    for i in range(n):
        rows[i, _SHARE + 1] = squeezed(awaited[i])
        rows[i, _SHARE + 4] = squeezed(early[i])
        rows[i, _SHARE + 5] = squeezed(late[i])


@inlined
def edge_slack(timeline: Timeline, issued: Double, length: float, e: int, i: int) -> float:
    """Cycles between the end of what an instruction waits for and its issue; below 0 it would wait longer."""
    begin = issued[timeline.edges[e, 0]] - (length if timeline.edges[e, 1] else 0.0)
    slack: float = issued[i] - timeline.lag[i] - begin - timeline.delay[e]
    return slack


@compiled
def _show_path(bounds: Arrays, timeline: Timeline, rows: Float) -> None:
    """Cycles by which the longest chain of dependences through an instruction is shorter than the block."""
    n = len(timeline.order)
    head, tail = np.zeros(n), np.zeros(n)
    for p in range(n):
        i = timeline.order[p]
        for d in range(bounds.starts[i], bounds.starts[i + 1]):
            head[i] = max(head[i], head[bounds.distances[d, 0]] + bounds.distances[d, 1])
        for e in range(timeline.edge_starts[i], timeline.edge_starts[i + 1]):
            if not timeline.edges[e, 1]:
                head[i] = max(head[i], head[timeline.edges[e, 0]] + timeline.delay[e])
    for p in range(n - 1, -1, -1):
        i = timeline.order[p]
        for d in range(bounds.starts[i], bounds.starts[i + 1]):
            earlier = bounds.distances[d, 0]
            tail[earlier] = max(tail[earlier], tail[i] + bounds.distances[d, 1])
        for e in range(timeline.edge_starts[i], timeline.edge_starts[i + 1]):
            if not timeline.edges[e, 1]:
                s = timeline.edges[e, 0]
                tail[s] = max(tail[s], tail[i] + timeline.delay[e])
    for i in range(n):
        rows[i, _SHARE + 6] = squeezed(max(0.0, timeline.length[0] - head[i] - tail[i]))
