"""Hazards in time: does a register hold what an instruction means to read when it reads it?

Control bits are a promise; this module looks at what came of it. It follows every warp through the log of a
replay and compares when instructions issued with when the results they read had arrived, when those they
overwrite had, and when the sources they overwrite had been read. It reads the log and changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from cuasmrl.binary.sass import Hazard, Instruction, name_of
from cuasmrl.errors import CuasmrlError
from cuasmrl.gpu.timing.arrivals import arrivals_of
from cuasmrl.gpu.timing.code import Int
from cuasmrl.gpu.timing.endings import RAW, WAR, WAW
from cuasmrl.gpu.timing.model import Model, Result
from cuasmrl.gpu.timing.records import Note
from cuasmrl.gpu.timing.tracking import Meeting, track
from cuasmrl.schedule import Schedule

MOST_ISSUES = 2_000_000
"""Issues that are followed by default; a replay of so many takes a quarter of a gigabyte."""
_HAZARDS = {RAW: Hazard.RAW, WAW: Hazard.WAW, WAR: Hazard.WAR}
_SENTENCES = {
    Hazard.RAW: "{second} reads {register} {when}, {missing} before the result of {first} is there",
    Hazard.WAW: "{second} overwrites {register} {when}, {missing} before the result of {first} is there",
    Hazard.WAR: "{second} overwrites {register} {when}, {missing} before {first} has read it",
}


@dataclass(frozen=True)
class Finding:
    """A pair of instructions that came too close, and the time at which they came closest."""

    hazard: Hazard
    first: Instruction
    """Who writes the register or still has to read it; its index is its place in the schedule."""
    second: Instruction
    """Who reads or overwrites it."""
    register: str
    block: int
    """In the order in which blocks came to the SM."""
    warp: int
    first_cycle: int
    """When the first one issued."""
    cycle: int
    """When the second one touched it: at its issue, or when its own result of variable latency came."""
    arrival: int
    """When it might have."""
    times: int
    """How often the pair came too close, over all warps that were followed."""

    @property
    def missing(self) -> int:
        return self.arrival - self.cycle

    def __str__(self) -> str:
        cycles = "1 cycle" if self.missing == 1 else f"{self.missing} cycles"
        sentence = _SENTENCES[self.hazard].format(
            first=self.first,
            second=self.second,
            register=self.register,
            when=f"in cycle {self.cycle} (block {self.block}, warp {self.warp})",
            missing=cycles,
        )
        times = "once" if self.times == 1 else f"{self.times} times"
        return f"{sentence} in cycle {self.arrival}; it happened {times}."


def sanitize(schedule: Schedule, result: Result) -> tuple[Finding, ...]:
    """All hazards among the issues that the replay of this schedule has logged, in the order of the code."""
    log = result.log[result.log[:, Note.CYCLE] >= 0]
    if not len(log):
        raise CuasmrlError("The replay kept no times; simulate with logged=, or ask hazards_of for all.")
    meetings = track(log, schedule, arrivals_of(schedule.listing))
    found = [_finding(schedule, log, meeting) for meeting in meetings]
    return tuple(sorted(found, key=lambda f: (f.second.index, f.first.index, f.hazard)))


def hazards_of(
    model: Model, schedule: Schedule, seed: int = 0, blocks: int | None = None, most: int = MOST_ISSUES
) -> tuple[Finding, ...]:
    """Replay a schedule, or its first blocks, and sanitize its first issues: all of them, unless too many."""
    table = model.table(schedule)
    issues = model.replay(table, seed, blocks).instructions
    return sanitize(schedule, model.replay(table, seed, blocks, logged=min(issues, most)))


def _finding(schedule: Schedule, log: Int, meeting: Int) -> Finding:
    first, second = log[meeting[Meeting.FIRST]], log[meeting[Meeting.SECOND]]
    count = len(schedule.order)
    return Finding(
        hazard=_HAZARDS[(int(meeting[Meeting.KEY]) - 1) // count**2],
        first=_at(schedule, int(first[Note.POSITION])),
        second=_at(schedule, int(second[Note.POSITION])),
        register=name_of(int(meeting[Meeting.REGISTER])),
        block=int(second[Note.BLOCK]),
        warp=int(second[Note.WARP]),
        first_cycle=int(first[Note.CYCLE]),
        cycle=int(meeting[Meeting.AT]),
        arrival=int(meeting[Meeting.END]),
        times=int(meeting[Meeting.TIMES]),
    )


def _at(schedule: Schedule, position: int) -> Instruction:
    return replace(schedule.listing.instructions[schedule.order[position]], index=position)
