"""When a warp issues the instructions of a block, read off a profile; and when it would, in another order.

Of the present schedule a profile says how long warps waited where. So it is known when results came that
somebody waited for, how soon units took the next instruction, and what else held the warp up. With these
numbers one pass over any other order of the block says roughly when everything would issue: no chip file is
read, and what other warps do is taken to stay as it is.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from cuasmrl.agents.policy.observation.facts import Facts, Int, Kind
from cuasmrl.binary.sass import BARRIERS
from cuasmrl.compiled import compiled, inlined
from cuasmrl.gpu.timing import Reason
from cuasmrl.schedule.cells import STALL, Cell, Int32
from cuasmrl.schedule.retiming import Arrays, earliest_times

Double: TypeAlias = npt.NDArray[np.float64]

_PIPES = 16
_HELD = 8
"""Instructions that are remembered as raising one scoreboard."""
NEVER = -1e18
_UNKNOWN = 1e9
_FELT = 0.9
"""Cycles of waiting that say something about what was waited for: means over warps hide who waited."""


_RESULT, _PRODUCT, _UNIT, _STALL, _OTHER = range(5)
SORT_OF = np.full(len(Reason), _OTHER, np.int64)
"""By reason. Handed to compiled code, which stays on disk as it is when reasons get other numbers."""
SORT_OF[[Reason.SHORT_SCOREBOARD, Reason.LONG_SCOREBOARD, Reason.L2_SHARE, Reason.DRAM]] = _RESULT
SORT_OF[Reason.TENSOR_RESULT] = _PRODUCT
SORT_OF[[Reason.TENSOR_BUSY, Reason.UNIT_BUSY]] = _UNIT
SORT_OF[Reason.STALL] = _STALL


class Timeline(NamedTuple):
    """Of one block; by instruction, counted from its first, unless said otherwise. Cycles of one warp."""

    order: Int
    """By position."""
    clock: Int
    """By position: the smallest issue times as stall counts alone say, then the block's end."""
    issued: Double
    length: Double
    """One number: cycles of the block."""
    lag: Double
    """Held up for reasons that no order of this block changes."""
    edges: Int
    """Who raises what is awaited, and whether an iteration before; by who waits."""
    edge_starts: Int
    delay: Double
    """Of each edge: cycles until the one who waits may issue."""
    paces: Double
    """By pipe: cycles between two of its instructions; 0 if nobody waited for the pipe."""


@compiled
def timeline_of(
    cells: Int32, facts: Facts, bounds: Arrays, waits: Double, executions: Double, sorts: Int
) -> Timeline:
    """Of the present order, as if it had been retimed. `waits` and `executions` are of the block, `sorts`
    are `SORT_OF`."""
    n = len(facts.kinds)
    order = np.empty(n, np.int64)
    for p in range(n):
        order[p] = cells[Cell.ORDER, facts.start + p] - facts.start
    clock = np.zeros(n + 1, np.int64)
    observed = np.empty(n)
    ready = np.empty(n)
    lag = np.zeros(n)
    by_result, by_product, by_unit = np.zeros(n), np.zeros(n), np.zeros(n)
    cycles = np.zeros(_OTHER + 1)
    t = 0.0
    for p in range(n):
        i = order[p]
        times = max(1.0, executions[p])
        cycles[:] = 0
        others = 0.0
        for reason in range(waits.shape[1]):
            cycles[sorts[reason]] += waits[p, reason]
            others += waits[p, reason]
        by_result[i] = cycles[_RESULT] / times
        by_product[i] = cycles[_PRODUCT] / times
        by_unit[i] = cycles[_UNIT] / times
        others = (others - cycles[_STALL]) / times
        lag[i] = max(0.0, others - by_result[i] - by_product[i] - by_unit[i])
        ready[i] = t + by_result[i] + by_product[i] + by_unit[i]
        observed[i] = ready[i] + lag[i]
        t = observed[i] + (cells[Cell.BITS, facts.start + i] & STALL)
    edges, starts = _edges(cells, facts, order)
    delay = _delays(facts, edges, starts, observed, ready, t, by_result, by_product)
    paces = _paces(facts, order, observed, ready, by_unit)
    for p in range(n):
        clock[p + 1] = clock[p] + (cells[Cell.BITS, facts.start + order[p]] & STALL)
    found = Timeline(order, clock, observed.copy(), np.full(1, t), lag, edges, starts, delay, paces)
    _explain(found, facts)
    retimed = np.empty(n + 1, np.int64)
    if earliest_times(order, retimed, bounds.rows, bounds.starts, bounds.distances, bounds.least_length):
        clock[:] = retimed
    # By the rules that other orders are judged by, so that differences come from the order alone.
    found.length[0] = foresee(found, facts, order, clock, observed)
    found.issued[:] = observed
    return found


@compiled
def _explain(timeline: Timeline, facts: Facts) -> None:
    """What the rules of `foresee` do not explain of the times that were observed becomes lag."""
    last = np.full(_PIPES, NEVER)
    t = 0.0
    for p in range(len(timeline.order)):
        i = timeline.order[p]
        t = _ready(timeline, facts, i, t, last, timeline.issued)
        timeline.lag[i] = max(0.0, timeline.issued[i] - t)
        t += timeline.lag[i]
        last[facts.pipes[i]] = t
        t += timeline.clock[p + 1] - timeline.clock[p]


@compiled
def foresee(timeline: Timeline, facts: Facts, order: Int, clock: Int, issued: Double) -> float:
    """Fill in when the instructions of an order issue; `clock` are the issue times that its stalls allow.

    The end of the block.
    """
    n = len(order)
    issued[:] = NEVER
    last = np.full(_PIPES, NEVER)
    t = 0.0
    for p in range(n):
        i = order[p]
        t = _ready(timeline, facts, i, t, last, issued) + timeline.lag[i]
        last[facts.pipes[i]] = issued[i] = t
        t += clock[p + 1] - clock[p]
    return t


@inlined
def _ready(timeline: Timeline, facts: Facts, i: int, t: float, last: Double, issued: Double) -> float:
    """When results and units allow an instruction to issue, from time t on."""
    for e in range(timeline.edge_starts[i], timeline.edge_starts[i + 1]):
        s = timeline.edges[e, 0]
        begin = timeline.issued[s] - timeline.length[0] if timeline.edges[e, 1] else issued[s]
        t = max(t, begin + timeline.delay[e])
    pipe = facts.pipes[i]
    if timeline.paces[pipe] > 0:
        t = max(t, last[pipe] + timeline.paces[pipe])
    return t


@compiled
def _edges(cells: Int32, facts: Facts, order: Int) -> tuple[Int, Int]:
    """Who waits for whom, by the scoreboards as they are now and by whose results it reads."""
    n = len(order)
    found = np.empty((n * BARRIERS * 2 + len(facts.results) + n, 3), np.int64)
    count = 0
    held = np.zeros((BARRIERS, _HELD, 2), np.int64)
    holds = np.zeros(BARRIERS, np.int64)
    for turn in range(2):
        if turn == 0 and not facts.repeats:
            continue
        for p in range(n):
            i = order[p]
            bits = cells[Cell.BITS, facts.start + i]
            boards = bits >> 11 & 63 | facts.named[i]
            for k in range(BARRIERS):
                if boards >> k & 1:
                    for h in range(holds[k] if turn else 0):
                        if count < n * BARRIERS * 2:
                            found[count, 0] = held[k, h, 0]
                            found[count, 1] = held[k, h, 1] == 0
                            found[count, 2] = i
                            count += 1
                    holds[k] = 0
            for k in (bits >> 5 & 7, bits >> 8 & 7):
                if k < BARRIERS:
                    if holds[k] == _HELD:
                        held[k, :-1] = held[k, 1:].copy()
                        holds[k] -= 1
                    held[k, holds[k], 0] = i
                    held[k, holds[k], 1] = turn
                    holds[k] += 1
    for e in range(len(facts.results)):
        found[count, 0], found[count, 1] = facts.results[e, 0], facts.results[e, 2]
        found[count, 2] = facts.results[e, 1]
        count += 1
    # By who waits.
    starts = np.zeros(n + 1, np.int64)
    for e in range(count):
        starts[found[e, 2] + 1] += 1
    for i in range(n):
        starts[i + 1] += starts[i]
    at = starts[:-1].copy()
    edges = np.empty((count, 2), np.int64)
    for e in range(count):
        i = found[e, 2]
        edges[at[i], 0], edges[at[i], 1] = found[e, 0], found[e, 1]
        at[i] += 1
    return edges, starts


@compiled
def _delays(
    facts: Facts,
    edges: Int,
    starts: Int,
    observed: Double,
    ready: Double,
    length: float,
    by_result: Double,
    by_product: Double,
) -> Double:
    """Where somebody waited it is known when the result was there; elsewhere it was there in time.

    Who waits for several waits for the last; which one that was is guessed by what others of its opcode took.
    """
    n = len(facts.kinds)
    gaps, delay = np.empty(len(edges)), np.empty(len(edges))
    shortest = np.full(facts.opcodes.max() + 1, _UNKNOWN)
    for i in range(n):
        for e in range(starts[i], starts[i + 1]):
            s = edges[e, 0]
            gaps[e] = max(0.0, ready[i] - observed[s] + (length if edges[e, 1] else 0.0))
            if starts[i + 1] - starts[i] == 1 and by_result[i] > _FELT:
                shortest[facts.opcodes[s]] = min(shortest[facts.opcodes[s]], gaps[e])
    for i in range(n):
        last, latest = -1, -_UNKNOWN
        for e in range(starts[i], starts[i + 1]):
            s = edges[e, 0]
            is_product = facts.kinds[s] == Kind.TENSOR
            known = shortest[facts.opcodes[s]]
            guess = known if known < _UNKNOWN else facts.guessed[s]
            delay[e] = min(gaps[e], 0.0 if is_product else guess)
            waited = by_product[i] if is_product else by_result[i]
            if waited > _FELT and guess - gaps[e] > latest:
                last, latest = e, guess - gaps[e]
        if last >= 0:
            delay[last] = gaps[last]
    return delay


@compiled
def _paces(facts: Facts, order: Int, observed: Double, ready: Double, by_unit: Double) -> Double:
    """Least cycles between two instructions of a pipe; 0 if nobody waited for it."""
    paces, is_felt = np.full(_PIPES, -NEVER), np.zeros(_PIPES)
    last = np.full(_PIPES, NEVER)
    for i in order:
        pipe = facts.pipes[i]
        paces[pipe] = min(paces[pipe], ready[i] - last[pipe])
        is_felt[pipe] += by_unit[i] > _FELT and last[pipe] > NEVER
        last[pipe] = observed[i]
    return np.where(is_felt > 0, paces, 0.0)
