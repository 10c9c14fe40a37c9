"""What each issue of a log waited for last, read off the times at which results arrived.

A log says when an instruction was issued, when its result was there and when its sources were free. With the
control bits that names the stall count, scoreboard, group of copies or tensor product that let the next
instruction go. Units, fetches and the turns of other warps leave no times behind: they are what remains
between that moment and the issue.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from cuasmrl.binary.sass import Instruction, Pipe
from cuasmrl.gpu.timing import Reason
from cuasmrl.gpu.timing.code import Int
from cuasmrl.gpu.timing.records import Cause, Note
from cuasmrl.schedule import Schedule

_SCOREBOARDS = {
    Cause.SHORT: Reason.SHORT_SCOREBOARD,
    Cause.LATENCY: Reason.LONG_SCOREBOARD,
    Cause.L2_SHARE: Reason.L2_SHARE,
    Cause.DRAM: Reason.DRAM,
    Cause.PRODUCT: Reason.TENSOR_ENGINE,
    Cause.MBARRIER: Reason.MBARRIER,
    Cause.TMA: Reason.TMA,
}
_COPIES = {Cause.L2_SHARE: Reason.L2_SHARE, Cause.DRAM: Reason.DRAM}
"""Else they are waited for as copies."""


@dataclass(frozen=True, slots=True)
class Hold:
    """The last thing that held up an issue."""

    reason: Reason
    by: int
    """Position of the instruction it waited for: the predecessor for its stall count, or a producer."""
    until: int
    """The cycle from which on this did not hold it any more."""


@dataclass(slots=True)
class _Warp:
    """What a warp has under way: when it will be there, and which position issued it."""

    position: int = -1
    cycle: int = -1
    boards: dict[int, list[Hold]] = field(default_factory=lambda: defaultdict(list))
    groups: list[Hold] = field(default_factory=list)
    results: dict[int, Hold] = field(default_factory=dict)


def holds_of(log: Int, schedule: Schedule) -> list[Hold | None]:
    """For each issue of a log what it waited for; None if it followed at once, or nothing is known."""
    code = schedule.arranged().instructions
    waits = [i.control.waits for i in code]
    warps: dict[tuple[int, int], _Warp] = defaultdict(_Warp)
    found: list[Hold | None] = []
    for cycle, block, number, position, complete, freed, cause in issues(log).tolist():
        warp = warps[block, number]
        cleared = [hold for board in waits[position] for hold in warp.boards.pop(board, ())]
        hold = None
        if 0 <= warp.cycle < cycle - 1:
            hold = _last(_candidates(warp, code, position, cleared), warp.cycle + 1, cycle)
            if code[warp.position].opcode == "BAR" and (hold is None or hold.until < cycle):
                # When a barrier opened is not in the log; nothing else explains the rest.
                hold = Hold(Reason.BARRIER, warp.position, cycle)
            if code[warp.position].groups_left is not None and (hold is None or hold.until < cycle):
                # Neither is when the products of other warps were issued.
                hold = Hold(Reason.TENSOR_ENGINE, warp.position, cycle)
        found.append(hold)
        _issue(warp, code[position], position, cycle, complete, freed, cause)
    return found


def issues(log: Int) -> Int:
    """The rows of a log that were written; it may have room for more."""
    return log[log[:, Note.CYCLE] >= 0]


def _last(candidates: Iterator[Hold], start: int, issue: int) -> Hold | None:
    """The one that ended last. What ends after the issue did not hold it: its scoreboard was not yet seen."""
    last = None
    for hold in candidates:
        if start < hold.until <= issue and (last is None or hold.until > last.until):
            last = hold
    return last


def _candidates(
    warp: _Warp, code: tuple[Instruction, ...], position: int, cleared: list[Hold]
) -> Iterator[Hold]:
    """Everything the log knows that the next instruction of a warp has to wait for."""
    before = code[warp.position]
    yield Hold(Reason.STALL, warp.position, warp.cycle + before.control.stall)
    yield from cleared
    if before.depbar is not None:
        arrived = len(warp.groups) - before.depbar[1]
        if arrived > 0:
            yield warp.groups[arrived - 1]
    for use in code[position].uses:
        if use.register in warp.results:
            yield warp.results[use.register]


def _issue(
    warp: _Warp, i: Instruction, position: int, cycle: int, complete: int, freed: int, cause: int
) -> None:
    warp.position, warp.cycle = position, cycle
    if i.control.write_barrier is not None:
        warp.boards[i.control.write_barrier].append(Hold(_SCOREBOARDS[Cause(cause)], position, complete))
    if i.control.read_barrier is not None:
        warp.boards[i.control.read_barrier].append(Hold(Reason.SHORT_SCOREBOARD, position, freed))
    if i.opcode == "LDGDEPBAR":
        warp.groups.append(Hold(_COPIES.get(Cause(cause), Reason.COPY), position, complete))
    is_product = i.declaration is not None and i.declaration.pipe is Pipe.TENSOR
    for written in i.defs:
        if is_product:
            warp.results[written.register] = Hold(Reason.TENSOR_RESULT, position, complete)
        else:
            warp.results.pop(written.register, None)
