"""When one warp issues the instructions of one iteration of the hot loop, before and after."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from cuasmrl.explain.waits.holds import Hold, holds_of, issues
from cuasmrl.explain.waits.regions import Region
from cuasmrl.explain.waits.replays import Replays
from cuasmrl.gpu.timing.records import Note


@dataclass(frozen=True)
class Issue:
    index: int
    """Of the instruction in the original listing."""
    cycle: int
    """Since the first issue of the iteration."""
    complete: int
    """When its result is there; the cycle of issue where the latency is fixed."""
    reason: int | None
    """The last thing that held it up, a `Reason`, as far as the log says; None if it followed at once."""
    by: int | None
    """The instruction that did."""


@dataclass(frozen=True)
class Iteration:
    issues: tuple[Issue, ...]
    cycles: int
    """Until the next iteration begins, or what follows the loop."""


@dataclass(frozen=True)
class WarpTimeline:
    block: int
    warp: int
    """Its number in the block."""
    iteration: int
    """Which one of the warp, from 0."""
    seed: int
    before: Iteration
    after: Iteration

    def as_dict(self) -> dict[str, Any]:
        """Issues as rows of numbers: there are hundreds."""
        sides = {
            name: {
                "cycles": side.cycles,
                "issues": [[i.index, i.cycle, i.complete, i.reason, i.by] for i in side.issues],
            }
            for name, side in (("before", self.before), ("after", self.after))
        }
        head = {k: v for k, v in asdict(self).items() if k not in sides}
        return {**head, **sides}


def timeline_of(old: Replays, new: Replays, region: Region) -> WarpTimeline | None:
    """The first warp of the first block in the middle one of its iterations; None if no whole one is logged.

    One iteration of one warp is an example, not a mean: jitter and the turns of other warps are in it.
    """
    sides = [list(_iterations(replays, region)) for replays in (old, new)]
    count = min(map(len, sides))
    if not count:
        return None
    before, after = (side[count // 2] for side in sides)
    return WarpTimeline(0, 0, count // 2, old.seeds[0], before, after)


def _iterations(replays: Replays, region: Region) -> Iterator[Iteration]:
    """The whole iterations of block 0, warp 0 that the log holds."""
    schedule, log = replays.schedule, issues(replays.log)
    inside = frozenset(region.positions)
    mine = (log[:, Note.BLOCK] == 0) & (log[:, Note.WARP] == 0)
    holds = holds_of(replays.log, schedule)
    found: list[tuple[list[int], Hold | None]] = []
    for row, hold, is_mine in zip(log.tolist(), holds, mine.tolist(), strict=True):
        if not is_mine:
            continue
        position = row[Note.POSITION]
        if found and (position == region.head.start or position not in inside):
            yield _iteration(found, row[Note.CYCLE], schedule.order)
            found = []
        if position == region.head.start or (found and position in inside):
            found.append((row, hold))


def _iteration(found: Sequence[tuple[list[int], Hold | None]], end: int, order: Sequence[int]) -> Iteration:
    start = found[0][0][Note.CYCLE]
    rows = tuple(
        Issue(
            order[row[Note.POSITION]],
            row[Note.CYCLE] - start,
            max(row[Note.COMPLETE], row[Note.CYCLE]) - start,
            None if hold is None else int(hold.reason),
            None if hold is None else order[hold.by],
        )
        for row, hold in found
    )
    return Iteration(rows, end - start)
