"""What a policy sees of a move: an instruction dragged to a position, with all that this changes."""

from __future__ import annotations

import numpy as np

from cuasmrl.agents.policy.observation.facts import Facts, Float, Int, Kind
from cuasmrl.agents.policy.observation.rows import edge_slack, squeezed
from cuasmrl.agents.policy.observation.timeline import Double, Timeline, foresee
from cuasmrl.compiled import compiled, inlined
from cuasmrl.schedule.cells import Int32
from cuasmrl.schedule.drags import dragged
from cuasmrl.schedule.reach import Neighbours, limits
from cuasmrl.schedule.retiming import Arrays, earliest_times

KINDS = len(Kind)
_ENDS = ("origin", "destination")
COLUMNS = (
    "up", "positions", "alone", "come along", "cannot be timed", "stalls", "foreseen cycles",
    "foreseen share", "is faster", "is slower", "cycles of the move", "cycles by stalls",
    "positions from the original, before", "positions from the original, behind",
    *(f"passes {kind.name.lower()}" for kind in Kind),
    "waits passed", "lags passed",
    *(f"{what}, {end}" for end in _ENDS for what in (
        "distance kept before", "distance kept behind", "results early", "needed late",
        "pipe before", "pipe behind", "alike before", "alike behind", "follows its original",
        "is followed by its original", "gap in front", "lag of the next", "wait of the next",
    )),
    "waits shorter", "waits longer", "shortest wait", "longest wait", "tensor shift", "shared load shift",
    "load shift", "sync shift", "lost reuse",
)  # fmt: skip
WIDTH = len(COLUMNS)
_PASSES = COLUMNS.index("passes tensor")
_END = COLUMNS.index("distance kept before, origin")
_PER_END = 13
_AFTER = COLUMNS.index("waits shorter")
_NO_ROOM = 2000.0


@compiled
def pairs_of(
    cells: Int32, facts: Facts, neighbours: Neighbours, bounds: Arrays, timeline: Timeline, executions: float,
    total: float, instructions: Int, targets: Int,
) -> Float:  # fmt: skip
    """A row of `COLUMNS` for each pair of an instruction and a position, both counted from the first of the
    block.

    `executions` of the block and `total` cycles of all warps say what a cycle of it is worth. A move that is
    not legal has a row of zeros.
    """
    n, count = len(timeline.order), len(instructions)
    rows = np.zeros((count, WIDTH), np.float32)
    window, clock, issued = np.empty(n, np.int64), np.empty(n + 1, np.int64), np.empty(n)
    before, behind = np.empty(n, np.int64), np.empty(n, np.int64)
    cycle_before, cycle_behind = np.empty(n, np.int64), np.empty(n, np.int64)
    _places(timeline.order, timeline.clock, before, cycle_before)
    lost_now = _lost_reuse(facts, timeline.order)
    for k in range(count):
        i, to, row = instructions[k], targets[k], rows[k]
        here = before[i]
        if to == here or not dragged(cells, neighbours, i, to, window):
            continue
        low, high = limits(cells, neighbours, i)
        row[0] = 1.0 if to < here else -1.0
        row[1] = squeezed(abs(to - here))
        row[2] = low <= to <= high
        is_timed = earliest_times(
            window, clock, bounds.rows, bounds.starts, bounds.distances, bounds.least_length
        )
        if not is_timed:
            row[4] = 1.0
            continue
        end = foresee(timeline, facts, window, clock, issued)
        _places(window, clock, behind, cycle_behind)
        # Those that come along keep their order: on the way up they are in front of it, down behind it.
        row[3] = squeezed(abs(to - behind[i]))
        change = end - timeline.length[0]
        row[5] = squeezed(clock[n] - timeline.clock[n])
        row[6] = squeezed(change)
        row[7] = squeezed(1e4 * change * executions / total)
        row[8] = change < -0.5
        row[9] = change > 0.5
        row[10] = squeezed(issued[i] - timeline.issued[i])
        row[11] = squeezed(cycle_behind[i] - cycle_before[i])
        row[12] = squeezed(here - i)
        row[13] = squeezed(behind[i] - i)
        _show_passed(facts, timeline, here, to, row)
        _show_end(facts, bounds, timeline, timeline.order, timeline.clock, cycle_before, timeline.issued,
                  timeline.length[0], i, here, row[_END : _END + _PER_END])  # fmt: skip
        _show_end(facts, bounds, timeline, window, clock, cycle_behind, issued, end, i, behind[i],
                  row[_END + _PER_END : _AFTER])  # fmt: skip
        _show_others(facts, timeline, issued, end, i, row)
        row[_AFTER + 8] = (_lost_reuse(facts, window) - lost_now) / 4
    return rows


@compiled
def _places(order: Int, clock: Int, position: Int, cycle: Int) -> None:
    for p in range(len(order)):
        position[order[p]] = p
        cycle[order[p]] = clock[p]


@compiled
def _show_passed(facts: Facts, timeline: Timeline, here: int, to: int, row: Float) -> None:
    """What stands between the two ends, and how long warps are held up there."""
    low, high = min(here, to), max(here, to)
    waits = lags = 0.0
    for p in range(low, high + 1):
        i = timeline.order[p]
        if p != here:
            row[_PASSES + facts.kinds[i]] += 1
        if p > 0:
            previous = timeline.order[p - 1]
            stall = timeline.clock[p] - timeline.clock[p - 1]
            waits += max(0.0, timeline.issued[i] - timeline.issued[previous] - stall - timeline.lag[i])
        lags += timeline.lag[i]
    for k in range(KINDS):
        row[_PASSES + k] = squeezed(row[_PASSES + k])
    row[_PASSES + KINDS] = squeezed(waits)
    row[_PASSES + KINDS + 1] = squeezed(lags)


@compiled
def _show_end(  # noqa: PLR0913, PLR0917
    facts: Facts, bounds: Arrays, timeline: Timeline, order: Int, clock: Int, cycle: Int, issued: Double,
    length: float, i: int, p: int, row: Float,
) -> None:  # fmt: skip
    """How an instruction stands at a position of an order."""
    n = len(order)
    before = behind = 63
    for d in range(bounds.starts[i], bounds.starts[i + 1]):
        before = min(before, cycle[i] - cycle[bounds.distances[d, 0]] - bounds.distances[d, 1])
    for d in range(bounds.later_starts[i], bounds.later_starts[i + 1]):
        behind = min(behind, cycle[bounds.later[d, 0]] - cycle[i] - bounds.later[d, 1])
    row[0], row[1] = squeezed(before), squeezed(behind)
    early = late = _NO_ROOM
    for e in range(timeline.edge_starts[i], timeline.edge_starts[i + 1]):
        early = min(early, edge_slack(timeline, issued, length, e, i))
    for c in range(n):
        for e in range(timeline.edge_starts[c], timeline.edge_starts[c + 1]):
            if timeline.edges[e, 0] == i:
                late = min(late, edge_slack(timeline, issued, length, e, c))
    row[2], row[3] = squeezed(early), squeezed(late)
    pipe, opcode = facts.pipes[i], facts.opcodes[i]
    q = p - 1
    while q >= 0 and facts.pipes[order[q]] != pipe:
        q -= 1
    row[4] = squeezed(clock[p] - clock[q] if q >= 0 else 63)
    q = p + 1
    while q < n and facts.pipes[order[q]] != pipe:
        q += 1
    row[5] = squeezed(clock[q] - clock[p] if q < n else 63)
    row[6] = p > 0 and facts.opcodes[order[p - 1]] == opcode
    row[7] = p + 1 < n and facts.opcodes[order[p + 1]] == opcode
    row[8] = p > 0 and order[p - 1] == i - 1
    row[9] = p + 1 < n and order[p + 1] == i + 1
    row[10] = squeezed(clock[p] - clock[p - 1] if p > 0 else 0)
    if p + 1 < n:
        following = order[p + 1]
        stall = clock[p + 1] - clock[p]
        row[11] = squeezed(timeline.lag[following])
        row[12] = squeezed(issued[following] - issued[i] - stall - timeline.lag[following])


@compiled
def _show_others(
    facts: Facts, timeline: Timeline, issued: Double, end: float, mover: int, row: Float
) -> None:
    """What becomes of the waits of all others, and when the instructions of some kinds issue."""
    n = len(issued)
    shorter = longer = least = most = 0.0
    shifts, counts = np.zeros(KINDS), np.zeros(KINDS)
    for i in range(n):
        kind = facts.kinds[i]
        shifts[kind] += issued[i] - timeline.issued[i]
        counts[kind] += 1
        tightest_now = tightest_then = _NO_ROOM
        for e in range(timeline.edge_starts[i], timeline.edge_starts[i + 1]):
            now = edge_slack(timeline, timeline.issued, timeline.length[0], e, i)
            then = edge_slack(timeline, issued, end, e, i)
            tightest_now, tightest_then = min(tightest_now, now), min(tightest_then, then)
        if i != mover and tightest_now != tightest_then:
            # Beyond 20 cycles of room nothing is felt.
            change = min(20.0, tightest_then) - min(20.0, tightest_now)
            shorter += max(0.0, change)
            longer += max(0.0, -change)
            least, most = min(least, change), max(most, change)
    row[_AFTER], row[_AFTER + 1] = squeezed(shorter), squeezed(longer)
    row[_AFTER + 2], row[_AFTER + 3] = squeezed(most), squeezed(least)
    row[_AFTER + 4] = squeezed(shifts[Kind.TENSOR] / max(1.0, counts[Kind.TENSOR]))
    row[_AFTER + 5] = squeezed(shifts[Kind.SHARED_LOAD] / max(1.0, counts[Kind.SHARED_LOAD]))
    loads = shifts[Kind.GLOBAL_LOAD] + shifts[Kind.COPY]
    row[_AFTER + 6] = squeezed(loads / max(1.0, counts[Kind.GLOBAL_LOAD] + counts[Kind.COPY]))
    row[_AFTER + 7] = squeezed(shifts[Kind.SYNC] / max(1.0, counts[Kind.SYNC]))


@inlined
def _lost_reuse(facts: Facts, order: Int) -> int:
    """Operand-cache flags that are not valid, as another instruction follows than in the original."""
    lost = 0
    for p in range(len(order)):
        i = order[p]
        if facts.has_reuse[i] and (p + 1 == len(order) or order[p + 1] != i + 1):
            lost += 1
    return lost
