"""A replay as a Chrome trace, which ui.perfetto.dev and chrome://tracing open.

One microsecond of the trace is one modelled cycle. Each sub-core is a process with a track for each of its
warp slots, on which an instruction lasts from its issue to the next one of the warp, and a track for each
unit, on which it lasts as long as the unit takes nothing else. Results on their way from memory are
asynchronous slices from issue to arrival.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from cuasmrl.binary.cubin import WORD_BYTES
from cuasmrl.binary.sass import Instruction, Pipe
from cuasmrl.explain.waits.holds import Hold, holds_of, issues
from cuasmrl.gpu.timing import REASON_NAMES, Model, Result, Unit
from cuasmrl.gpu.timing.records import SIXTEENTH, SUB_CORES, Job, Kind, Row
from cuasmrl.schedule import Schedule

Event = dict[str, Any]
# Viewers take track 0 for the idle one and a track with the number of its process for the main one.
_FIRST_PROCESS = 1
_SLOT_TRACKS = 100
_UNIT_TRACKS = 1000


@dataclass(frozen=True)
class Timeline:
    events: list[Event]
    issues: int
    """Instructions shown."""
    of: int
    """Instructions issued in the whole replay."""
    cycles: int
    """The last cycle shown, plus one."""

    def text(self, about: Mapping[str, str]) -> str:
        """The JSON of the trace; `about` is what the viewer shows under "trace info"."""
        head = {"time": "1 us is one modelled cycle", "issues": f"{self.issues} of {self.of}", **about}
        document = {"displayTimeUnit": "ns", "otherData": head, "traceEvents": self.events}
        return json.dumps(document, separators=(",", ":"))


@dataclass(frozen=True, slots=True)
class _Issue:
    """A row of the log, with the warp slot and the sub-core it belongs to."""

    cycle: int
    block: int
    warp: int
    position: int
    complete: int
    slot: int

    @property
    def core(self) -> int:
        return self.slot % SUB_CORES

    @property
    def track(self) -> Event:
        return {"pid": _FIRST_PROCESS + self.core, "tid": _SLOT_TRACKS + self.slot}


def timeline(result: Result, schedule: Schedule, model: Model) -> Timeline:
    """All that the log of a replay holds; ask `Model.simulate` for as many issues as should be shown."""
    code = schedule.arranged().instructions
    log = _issues(result, model)
    events = [
        *_warp_events(log, code, holds_of(result.log, schedule)),
        *_memory_events(log, code),
        *_unit_events(log, code, model, schedule),
    ]
    end = 1 + max((issue.cycle for issue in log), default=-1)
    return Timeline([*_names(log, events), *events], len(log), result.instructions, end)


def _issues(result: Result, model: Model) -> list[_Issue]:
    """The log with warp slots: a block takes the seat of the block that ended before it came."""
    per_block = int(model.work[Job.WARPS_PER_BLOCK])
    rows = issues(result.log).tolist()
    last = {block: number for number, (_, block, *_) in enumerate(rows)}
    # Blocks come in the order in which others end; the log knows the order of two that end in one cycle.
    ended = sorted(range(len(result.block_end)), key=lambda b: (result.block_end[b], last.get(b, len(rows))))
    seats = {block: block for block in range(min(model.resident, len(ended)))}
    for ending, coming in zip(ended, range(model.resident, len(ended)), strict=False):
        seats[coming] = seats[ending]
    return [
        _Issue(cycle, block, warp, position, complete, seats[block] * per_block + warp)
        for cycle, block, warp, position, complete, *_ in rows
    ]


def _warp_events(
    log: list[_Issue], code: tuple[Instruction, ...], holds: list[Hold | None]
) -> Iterator[Event]:
    following: dict[tuple[int, int], int] = {}
    after = [-1] * len(log)
    for number in range(len(log) - 1, -1, -1):
        key = log[number].block, log[number].warp
        after[number] = following.get(key, -1)
        following[key] = number
    for issue, after_it in zip(log, after, strict=True):
        i = code[issue.position]
        # The last one of a warp, or of the log, is given the cycle it was issued in.
        until = log[after_it].cycle if after_it >= 0 else issue.cycle + 1
        about: Event = {"sass": i.text, "address": _address(issue.position), "control": str(i.control),
                        "block": issue.block, "warp": issue.warp}  # fmt: skip
        if until > issue.cycle + 1:
            about["next waits for"] = _reason(holds[after_it], issue.cycle + 1, until, code)
        yield {"ph": "X", **issue.track, "ts": issue.cycle, "dur": until - issue.cycle, "name": i.opcode,
               "cat": "issue", "args": about}  # fmt: skip


def _memory_events(log: list[_Issue], code: tuple[Instruction, ...]) -> Iterator[Event]:
    """Nestable asynchronous slices: viewers put as many tracks side by side as there are in flight."""
    for number, issue in enumerate(log):
        i = code[issue.position]
        is_memory = i.declaration is not None and i.declaration.pipe is Pipe.MEMORY
        if is_memory and issue.complete > issue.cycle:
            common = {**issue.track, "id": hex(number), "name": i.opcode, "cat": "memory"}
            about = {"sass": i.text, "address": _address(issue.position), "block": issue.block,
                     "warp": issue.warp, "latency": issue.complete - issue.cycle}  # fmt: skip
            yield {"ph": "b", "ts": issue.cycle, **common, "args": about}
            yield {"ph": "e", "ts": issue.complete, **common}


def _unit_events(
    log: list[_Issue], code: tuple[Instruction, ...], model: Model, schedule: Schedule
) -> Iterator[Event]:
    """Units are reserved in the order of issue, as in the model, in sixteenths as tensor cores need them."""
    rows = model.table(schedule).reshape(-1, Row.WIDTH)
    free: dict[tuple[int, int], int] = defaultdict(int)
    for issue in log:
        row = rows[issue.position]
        unit, start = int(row[Row.UNIT]), SIXTEENTH * issue.cycle
        if unit == Unit.NONE:
            continue
        length = SIXTEENTH * int(row[Row.HOLD])
        if row[Row.KIND] == Kind.TENSOR:
            length = int(row[Row.INTERVAL])
        elif row[Row.LITE] and free[issue.core, Unit.FMA_LITE] < free[issue.core, unit]:
            unit = int(Unit.FMA_LITE)
        start = max(start, free[issue.core, unit])
        free[issue.core, unit] = start + length
        yield {"ph": "X", "pid": _FIRST_PROCESS + issue.core, "tid": _unit_track(issue.core, unit),
               "ts": _cycles(start), "dur": _cycles(length), "name": code[issue.position].opcode,
               "cat": "unit",
               "args": {"address": _address(issue.position), "block": issue.block,
                        "warp": issue.warp}}  # fmt: skip


def _names(log: list[_Issue], events: list[Event]) -> Iterator[Event]:
    """What the tracks are called, and their order: warp slots, then units."""
    for core in range(SUB_CORES):
        yield _name("process_name", _FIRST_PROCESS + core, 0, f"sub-core {core}")
    for slot in sorted({issue.slot for issue in log}):
        process = _FIRST_PROCESS + slot % SUB_CORES
        yield _name("thread_name", process, _SLOT_TRACKS + slot, f"warp slot {slot}")
    tracks = sorted({(event["pid"], event["tid"]) for event in events if event["cat"] == "unit"})
    for process, track in tracks:
        unit = Unit(track - _unit_track(process - _FIRST_PROCESS, 0))
        yield _name("thread_name", process, track, f"unit {unit.name.lower().replace('_', ' ')}")


def _name(kind: str, process: int, track: int, name: str) -> Event:
    return {"ph": "M", "pid": process, "tid": track, "name": kind, "args": {"name": name}}


def _unit_track(core: int, unit: int) -> int:
    return _UNIT_TRACKS + len(Unit) * core + unit


def _cycles(sixteenths: int) -> int | float:
    return sixteenths // SIXTEENTH if sixteenths % SIXTEENTH == 0 else sixteenths / SIXTEENTH


def _address(position: int) -> str:
    return f"{WORD_BYTES * position:#06x}"


def _reason(hold: Hold | None, start: int, until: int, code: tuple[Instruction, ...]) -> str:
    """What the cycles before an issue went to, as far as the log says."""
    parts = []
    if hold is not None:
        parts.append(f"{REASON_NAMES[hold.reason]} of {code[hold.by].opcode} at {_address(hold.by)}")
        start = hold.until
    if start < until:
        parts.append(f"{until - start} cycles of fetch, branch, a busy unit or another warp's turn")
    return ", then ".join(parts)
