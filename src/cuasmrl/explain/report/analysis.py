"""What replays tell of a run's kernel: its hot loop, its cycles, its bounds, under both schedules."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, TypeAlias

from cuasmrl.binary.cubin.notes import tool_of
from cuasmrl.explain.comparison import Comparison, compare_replays
from cuasmrl.explain.report.cycles import KernelCycles, cycles_between
from cuasmrl.explain.report.dependences import Dependence, dependences_of
from cuasmrl.explain.report.headroom import Headroom, headroom_of
from cuasmrl.explain.report.loop import ConfirmedGain, HotLoop, Row, Side, loop_between, region_of
from cuasmrl.explain.report.warp import WarpTimeline, timeline_of
from cuasmrl.explain.waits.replays import Replays, replays_of
from cuasmrl.gpu.timing import REASON_NAMES, readers_of, slack_of
from cuasmrl.gpu.timing.slack import Readers
from cuasmrl.gpu.traced import TracedKernel
from cuasmrl.schedule import Schedule

SlackOf: TypeAlias = Mapping[int, tuple[int, float]]
"""Of an instruction, by number in the original listing: the least and the mean over its executions."""


@dataclass(frozen=True)
class Subject:
    """The kernel in figures."""

    name: str
    config: str
    sizes: Mapping[str, int]
    chip: str
    arch: int
    instructions: int
    """Of the code."""
    issued: int
    """By all warps of the SM."""
    blocks: int
    """That the SM executes."""
    resident: int
    limit: str
    """What keeps more blocks from being resident."""
    tool: str | None
    """That wrote the cubin, if it says so."""


@dataclass(frozen=True)
class Analysis:
    subject: Subject
    is_changed: bool
    """Otherwise there is no schedule but the original, and both sides are that."""
    cycles: KernelCycles
    loop: HotLoop
    slack: tuple[SlackOf, SlackOf]
    """Before and after."""
    timeline: WarpTimeline | None
    dependences: tuple[Dependence, ...]
    headroom: Headroom
    comparison: Comparison
    kernel: TracedKernel = field(repr=False)

    def as_dict(self, brief: bool = False) -> dict[str, Any]:
        """Without what only the listing of one run needs, if it is to be brief."""
        if brief:
            whole = self.as_dict()
            whole["loop"] = {
                **{name: whole["loop"][name] for name in ("is_loop", "iterations", "seeds")},
                **{side: _totals(whole["loop"][side]) for side in ("before", "after")},
            }
            return {name: part for name, part in whole.items() if name not in _LISTING}
        return {
            "subject": asdict(self.subject),
            "is_changed": self.is_changed,
            "cycles": self.cycles.as_dict(),
            "loop": self._loop(),
            "timeline": self.timeline.as_dict() if self.timeline else None,
            "dependences": [dependence.as_row() for dependence in self.dependences],
            "headroom": self.headroom.as_dict(),
            "moved": self.comparison.moved,
            "edited": self.comparison.edited,
            "sentences": list(self.comparison.sentences),
        }

    def _loop(self) -> dict[str, Any]:
        """In columns: a loop may have thousands of rows."""
        loop, rows = self.loop, self.loop.before.rows
        return {
            "is_loop": loop.is_loop,
            "iterations": loop.iterations,
            "seeds": list(loop.seeds),
            "reasons": list(REASON_NAMES.values()),
            "text": [row.text for row in rows],
            "moved": sorted(loop.moved),
            "before": _columns(loop, loop.before, self.slack[0]),
            "after": _columns(loop, loop.after, self.slack[1]),
        }


def _columns(loop: HotLoop, side: Side, slack: SlackOf) -> dict[str, Any]:
    rows = side.rows
    return {
        "cycles_per_iteration": loop.per_iteration(side.cycles),
        "reasons": side.reasons,
        "order": [row.index for row in rows],
        "position": [row.position for row in rows],
        "control": [row.control for row in rows],
        "executions": [row.executions for row in rows],
        "waits": [_numbered(row) for row in rows],
        "awaited": [row.awaited for row in rows],
        "slack": [[slack[row.index][0], round(slack[row.index][1], 1)] for row in rows],
    }


def _totals(columns: Mapping[str, Any]) -> dict[str, Any]:
    return {name: columns[name] for name in ("cycles_per_iteration", "reasons")}


_LISTING = ("timeline", "dependences")
_NUMBERS = {name: int(reason) for reason, name in REASON_NAMES.items()}


def _numbered(row: Row) -> list[int]:
    """Number of a reason, cycles, number of the next reason, ..."""
    return [number for name, cycles in row.waits.items() for number in (_NUMBERS[name], cycles)]


def analyse(kernel: TracedKernel, best: Schedule | None, gain: ConfirmedGain | None = None) -> Analysis:
    """Replay the original and, if there is one, the best schedule."""
    old = replays_of(kernel.model, kernel.original)
    new = old if best is None else replays_of(kernel.model, best)
    region = region_of(kernel, old)
    loop = loop_between(kernel, old, new, gain)
    cycles = cycles_between(old, new)
    readers = readers_of(kernel.listing)
    return Analysis(
        _subject(kernel, old),
        best is not None,
        cycles,
        loop,
        (_slack(old, readers), _slack(new, readers)),
        timeline_of(old, new, region),
        dependences_of(kernel.listing, loop.before.place),
        headroom_of(kernel.model, cycles),
        compare_replays(kernel.chip.name, old, new),
        kernel,
    )


def _subject(kernel: TracedKernel, replays: Replays) -> Subject:
    model = kernel.model
    return Subject(
        kernel.name,
        kernel.config,
        dict(kernel.sizes),
        kernel.chip.name,
        kernel.listing.kernel.arch,
        len(kernel.listing.instructions),
        replays.results[0].instructions,
        model.blocks,
        model.resident,
        model.occupancy.limit,
        tool_of(kernel.cubin),
    )


def _slack(replays: Replays, readers: Readers) -> SlackOf:
    found = slack_of(replays.schedule, replays.results[0], readers)
    pairs = zip(found.least.tolist(), found.mean.tolist(), strict=True)
    return dict(zip(replays.schedule.order, pairs, strict=True))
