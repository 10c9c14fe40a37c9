"""How much later each instruction could have issued without holding anybody up, from the log of a replay.

The slack of one execution is the smallest of

* for every instruction of the warp that reads one of its results: the cycles from when the result is there to
  the issue of the reader. The result is there when the log says (`Note.COMPLETE`); for a fixed latency, after
  the mined distance of the two, and where the table is silent never sooner than after 32 cycles;
* for an asynchronous copy: the cycles from its arrival to the issue of the instruction that a DEPBAR held up
  for its group;
* for synchronisation (BAR, DEPBAR, LDGDEPBAR): the cycles from the warp's next issue, which it holds up, to
  the next memory access or synchronisation, which must stay behind it;
* the cycles to the issue of the last instruction in this visit of its block, which it cannot leave.

It is never negative. The order of memory accesses, what a register held before, and which group a copy
belongs to are not looked at: slack says how much time there is, not that a move is legal.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from cuasmrl.binary.sass import Listing
from cuasmrl.compiled import compiled
from cuasmrl.gpu.timing.code import Int
from cuasmrl.gpu.timing.dataflow import Dataflow, Fact, Order, dataflow_of, define, no_writers
from cuasmrl.gpu.timing.model import Result
from cuasmrl.gpu.timing.records import FAR, Note
from cuasmrl.schedule import Schedule, control_flow


class Part(IntEnum):
    """What an instruction has to do with groups of copies."""

    NONE = 0
    COPY = 1
    GROUP = 2
    WAIT = 3
    """A DEPBAR on groups; those that it leaves in flight are added."""


class Readers(NamedTuple):
    """What slack needs to know of a kernel, whatever its schedule."""

    flow: Dataflow
    parts: Int
    """By instruction of the original listing."""
    lasts: Int
    """By position: does a block end here?"""


@dataclass(frozen=True, eq=False)
class Slack:
    """By position of the schedule; zeros where an instruction was not executed."""

    issues: Int
    """Executions in the log; those of a visit that the log cuts off do not count."""
    first: Int
    """Cycle of the first issue; -1 for none."""
    offset: npt.NDArray[np.float64]
    """Mean cycles from the first issue of a visit of its block to its own."""
    least: Int
    mean: npt.NDArray[np.float64]


class _Sum(IntEnum):
    ISSUES = 0
    FIRST = 1
    OFFSET = 2
    SLACK = 3
    LEAST = 4
    WIDTH = 5


def readers_of(listing: Listing) -> Readers:
    parts = np.zeros(len(listing.instructions), np.int64)
    boards = {i.control.write_barrier for i in listing.instructions if i.opcode == "LDGDEPBAR"}
    for i in listing.instructions:
        if i.never_executes:
            continue
        if i.opcode == "LDGSTS":
            parts[i.index] = Part.COPY
        elif i.opcode == "LDGDEPBAR":
            parts[i.index] = Part.GROUP
        elif i.depbar is not None and i.depbar[0] in boards:
            parts[i.index] = Part.WAIT + i.depbar[1]
    lasts = np.zeros(len(parts), np.int64)
    lasts[[block.end - 1 for block in control_flow(listing)]] = 1
    return Readers(dataflow_of(listing), parts, lasts)


def slack_of(schedule: Schedule, result: Result, readers: Readers | None = None) -> Slack:
    """Slack of every instruction of a schedule, from a replay that was logged.

    For many schedules of one kernel, make its `Readers` once.
    """
    readers = readers or readers_of(schedule.listing)
    log = result.log[: np.count_nonzero(result.log[:, Note.CYCLE] >= 0)]
    warp = log[:, Note.BLOCK] * (1 + log[:, Note.WARP].max(initial=0)) + log[:, Note.WARP]
    by_warp = np.argsort(warp, kind="stable")
    sums = np.zeros((len(schedule.order), _Sum.WIDTH), np.int64)
    sums[:, [_Sum.FIRST, _Sum.LEAST]] = FAR
    measure(readers, schedule.indices.astype(np.int64), log[by_warp], warp[by_warp], sums)
    issues = sums[:, _Sum.ISSUES]
    executed = np.maximum(issues, 1)
    return Slack(
        issues=issues,
        first=np.where(issues, sums[:, _Sum.FIRST], -1),
        offset=sums[:, _Sum.OFFSET] / executed,
        least=np.where(issues, sums[:, _Sum.LEAST], 0),
        mean=sums[:, _Sum.SLACK] / executed,
    )


@compiled
def measure(readers: Readers, order: Int, log: Int, warp: Int, sums: Int) -> None:
    """Go through the log warp by warp; `warp` names the warp of each row."""
    slack = np.full(len(log), FAR, np.int64)
    copies = np.zeros((len(log), 2), np.int64)
    latest = np.zeros(len(order), np.int64)
    begin = 0
    while begin < len(log):
        end = begin
        while end < len(log) and warp[end] == warp[begin]:
            end += 1
        follow(readers, order, log[begin:end], slack[begin:end], latest, copies)
        settle(readers.lasts, log[begin:end], slack[begin:end], sums)
        begin = end


@compiled
def follow(readers: Readers, order: Int, log: Int, slack: Int, latest: Int, copies: Int) -> None:
    """The issues of one warp: whose results each of them reads."""
    flow, writers = readers.flow, no_writers()
    sent = closed = groups = awaited = 0
    sync = -1
    for row in range(len(log)):
        i = order[log[row, Note.POSITION]]
        if sync >= 0 and flow.facts[i, Fact.ORDER] != Order.FREE:
            slack[sync] = log[row, Note.CYCLE] - log[sync + 1, Note.CYCLE]
            sync = -1
        if awaited:
            # What this one was held up for.
            while closed < sent and copies[closed, 1] < awaited:
                slack_until(slack, log, copies[closed, 0], row, 0)
                closed += 1
            awaited = 0
        read(flow, log, slack, latest, writers, row, i)
        part = readers.parts[i]
        if part == Part.COPY:
            copies[sent, 0], copies[sent, 1] = row, groups
            sent += 1
        elif part == Part.GROUP:
            groups += 1
        elif part >= Part.WAIT:
            awaited = max(0, groups - (part - Part.WAIT))
        if flow.facts[i, Fact.ORDER] == Order.SYNC:
            sync = row
        latest[i] = row
        define(flow, writers, i)


@compiled
def read(flow: Dataflow, log: Int, slack: Int, latest: Int, writers: Int, row: int, i: int) -> None:
    """An instruction reads results."""
    for u in range(flow.facts[i, Fact.USES], flow.facts[i, Fact.USES_END]):
        register = flow.uses[u, 0]
        for k in range(1, writers[register, 0] + 1):
            d = writers[register, k]
            p = flow.defs[d, 2]
            # The matrix has no needs for producers of variable latency.
            need = flow.needs[flow.defs[d, 1], flow.uses[u, 1]]
            slack_until(slack, log, latest[p], row, need)


@compiled
def slack_until(slack: Int, log: Int, first: int, second: int, need: int) -> None:
    """The second issue uses the result of the first."""
    there = max(log[first, Note.COMPLETE], log[first, Note.CYCLE] + need)
    slack[first] = min(slack[first], max(0, log[second, Note.CYCLE] - there))


@compiled
def settle(lasts: Int, log: Int, slack: Int, sums: Int) -> None:
    """Add the issues of one warp up, visit by visit of a block; one that is cut off is left out."""
    begin = 0
    for row in range(len(log)):
        if lasts[log[row, Note.POSITION]]:
            for k in range(begin, row + 1):
                position, cycle = log[k, Note.POSITION], log[k, Note.CYCLE]
                left = min(slack[k], log[row, Note.CYCLE] - cycle)
                sums[position, _Sum.ISSUES] += 1
                sums[position, _Sum.FIRST] = min(sums[position, _Sum.FIRST], cycle)
                sums[position, _Sum.OFFSET] += cycle - log[begin, Note.CYCLE]
                sums[position, _Sum.SLACK] += left
                sums[position, _Sum.LEAST] = min(sums[position, _Sum.LEAST], left)
            begin = row + 1
