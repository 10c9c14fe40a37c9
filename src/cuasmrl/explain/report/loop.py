"""The hot loop of a kernel under two schedules: who stands where, and what a warp waits there.

All cycles are counts of the model, summed over warps and seeds, so sums are exact; divided by the iterations
they are what one warp needs for one iteration.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from statistics import mean
from typing import Any

from cuasmrl.binary.cubin import WORD_BYTES
from cuasmrl.errors import CuasmrlError
from cuasmrl.explain.waits.charges import charged
from cuasmrl.explain.waits.holds import holds_of, issues
from cuasmrl.explain.waits.regions import Region, hottest
from cuasmrl.explain.waits.replays import Replays, replays_of
from cuasmrl.gpu.devices.objective import UNSEEN_SEEDS
from cuasmrl.gpu.timing import REASON_NAMES, Reason
from cuasmrl.gpu.timing.code import Int
from cuasmrl.gpu.timing.records import Note
from cuasmrl.gpu.traced import TracedKernel
from cuasmrl.schedule import Block, Schedule, control_flow

ISSUED = REASON_NAMES[Reason.ISSUED]
_STALL = REASON_NAMES[Reason.STALL]
_RESULTS = (Reason.SHORT_SCOREBOARD, Reason.LONG_SCOREBOARD, Reason.TENSOR_RESULT)
_WORTH_TELLING = 0.5
"""A change of waiting, in cycles per iteration."""


@dataclass(frozen=True)
class Row:
    """One instruction of the loop, at its place in one of the schedules."""

    index: int
    """Its number in the original listing: its name wherever it stands."""
    position: int
    text: str
    control: str
    pipe: str | None
    executions: int
    waits: Mapping[str, int]
    """Cycles by reason: until it was issued, and those that its stall count, or a barrier or DEPBAR that it
    is, held up the next one. Only reasons that there are."""
    awaited: int | None
    """The instruction, by its original number, whose result it waited for longest; None if for no result."""

    @property
    def address(self) -> int:
        return WORD_BYTES * self.position

    @property
    def waited(self) -> int:
        return sum(self.waits.values())


@dataclass(frozen=True)
class Side:
    """The loop under one of the two schedules."""

    rows: tuple[Row, ...]
    """In the order of the schedule."""
    kernel_cycles: tuple[int, ...]
    """Modelled cycles of the whole kernel, one figure for each seed."""

    @cached_property
    def place(self) -> dict[int, int]:
        """Original index → which row of the loop."""
        return {row.index: k for k, row in enumerate(self.rows)}

    @property
    def reasons(self) -> dict[str, int]:
        """Cycles of the loop by reason, in the order of the model; `issued` counts the executions."""
        found = {ISSUED: sum(row.executions for row in self.rows)}
        for name in REASON_NAMES.values():
            cycles = sum(row.waits.get(name, 0) for row in self.rows)
            if cycles:
                found[name] = cycles
        return found

    @property
    def cycles(self) -> int:
        """Of all warps in the loop."""
        return sum(self.reasons.values())

    def __getitem__(self, index: int) -> Row:
        """The row of an instruction, named by its original index."""
        return self.rows[self.place[index]]


@dataclass(frozen=True)
class ConfirmedGain:
    """Of the whole kernel, as the gate of the run said: old time / new time - 1."""

    median: float
    """Over the ensemble of chips, or over the rounds of a GPU: this is what is claimed."""
    low: float
    high: float
    nominal: float
    """On the chip as its file describes it, or by the median times."""
    members: int
    """Chips, or rounds."""
    device: str

    @property
    def is_modelled(self) -> bool:
        return self.device.startswith("virtual:")

    @staticmethod
    def of(verdict: Mapping[str, Any] | None, schedule: Schedule) -> ConfirmedGain | None:
        """What a verdict file confirms; None if it is on another schedule, or the original is kept."""
        if not verdict or not verdict.get("accepted") or verdict.get("schedule") != schedule.key.hex():
            return None
        try:
            gain = verdict["gain"]
            median, low, high, nominal = (float(gain[k]) for k in ("median", "low", "high", "nominal"))
            return ConfirmedGain(median, low, high, nominal, len(gain["members"]), str(verdict["device"]))
        except (KeyError, TypeError, ValueError) as error:
            raise CuasmrlError(f"the verdict of the run holds no gain that can be read: {error!r}") from None


@dataclass(frozen=True)
class HotLoop:
    kernel: str
    config: str
    sizes: Mapping[str, int]
    chip: str
    is_loop: bool
    """Otherwise the kernel has no loop that is hotter than this block."""
    iterations: int
    """Of all warps and seeds."""
    seeds: tuple[int, ...]
    before: Side
    after: Side
    moved: frozenset[int]
    """As few instructions as can have moved, by original index; all others keep their order."""
    gain: ConfirmedGain | None

    def per_iteration(self, cycles: int) -> float:
        """What one warp needs for one iteration, mean over warps, iterations and seeds."""
        return cycles / self.iterations

    def saved(self, index: int) -> float:
        """Cycles per iteration by which a warp waits less at an instruction; negative if more."""
        return self.per_iteration(self.before[index].waited - self.after[index].waited)

    def saved_but_for_stalls(self, index: int) -> float:
        stalls = self.before[index].waits.get(_STALL, 0) - self.after[index].waits.get(_STALL, 0)
        return self.saved(index) - self.per_iteration(stalls)

    def as_dict(self) -> dict[str, Any]:
        return {
            **asdict(self),
            "before": self._side(self.before),
            "after": self._side(self.after),
            "moved": sorted(self.moved),
        }

    def _side(self, side: Side) -> dict[str, Any]:
        return {
            "kernel_cycles": list(side.kernel_cycles),
            "mean_kernel_cycles": mean(side.kernel_cycles),
            "cycles_per_iteration": self.per_iteration(side.cycles),
            "reasons": side.reasons,
            "rows": [{**asdict(row), "address": row.address, "waits": dict(row.waits)} for row in side.rows],
        }


def hot_loop(
    kernel: TracedKernel,
    schedule: Schedule,
    gain: ConfirmedGain | None = None,
    seeds: Sequence[int] = UNSEEN_SEEDS,
) -> HotLoop:
    """The loop in which the original spends most, under the original and another schedule of the kernel."""
    original = kernel.original
    if schedule.listing.kernel.words != kernel.listing.kernel.words:
        raise CuasmrlError(
            f"the schedule is none of {kernel.name} {kernel.config}: it was made from other code"
        )
    old, new = (replays_of(kernel.model, s, seeds) for s in (original, schedule))
    return loop_between(kernel, old, new, gain)


def loop_between(
    kernel: TracedKernel, old: Replays, new: Replays, gain: ConfirmedGain | None = None
) -> HotLoop:
    """The same from replays that have been made: of the original, and of the other schedule."""
    blocks = control_flow(kernel.listing)
    region = region_of(kernel, old)
    before, after = _side(old, region, blocks), _side(new, region, blocks)
    return HotLoop(
        kernel.name,
        kernel.config,
        dict(kernel.sizes),
        kernel.chip.name,
        region.is_loop,
        int(old.rows[region.head.start, Reason.ISSUED]),
        old.seeds,
        before,
        after,
        fewest_moves((row.index for row in before.rows), after.place),
        gain,
    )


def region_of(kernel: TracedKernel, original: Replays) -> Region:
    """Where the original spends most."""
    return hottest(control_flow(kernel.listing), original.rows.sum(axis=1).tolist())


def _side(replays: Replays, region: Region, blocks: Sequence[Block]) -> Side:
    cycles = charged(replays.rows, blocks)
    awaited = _awaited(replays.schedule, replays.log)
    rows = tuple(
        _row(replays.schedule, position, cycles[position].tolist(), awaited.get(position))
        for position in region.positions
    )
    return Side(rows, replays.cycles)


def _row(schedule: Schedule, position: int, cycles: Sequence[int], awaited: int | None) -> Row:
    index = schedule.order[position]
    instruction = schedule.listing.instructions[index]
    declaration = instruction.declaration
    return Row(
        index,
        position,
        instruction.text,
        str(schedule.controls[index]),
        None if declaration is None else str(declaration.pipe),
        cycles[Reason.ISSUED],
        {REASON_NAMES[Reason(k)]: n for k, n in enumerate(cycles) if n and k != Reason.ISSUED},
        awaited,
    )


def _awaited(schedule: Schedule, log: Int) -> dict[int, int]:
    """Position → original index of the instruction whose result was waited for longest there."""
    found: dict[int, Counter[int]] = defaultdict(Counter)
    last: dict[tuple[int, int], int] = {}
    rows = issues(log)[:, [Note.CYCLE, Note.BLOCK, Note.WARP, Note.POSITION]].tolist()
    for (cycle, block, warp, position), hold in zip(rows, holds_of(log, schedule), strict=True):
        if hold is not None and hold.reason in _RESULTS:
            found[position][schedule.order[hold.by]] += hold.until - last[block, warp]
        last[block, warp] = cycle
    return {position: waited.most_common(1)[0][0] for position, waited in found.items()}


def fewest_moves(order: Iterable[int], place: Mapping[int, int]) -> frozenset[int]:
    """All but a longest run of instructions, not necessarily neighbours, that are in the same order.

    In the one order they are given, `place` says where each is in the other.
    """
    ends: list[int] = []
    """Smallest place at which a run of each length can end."""
    lasts: list[int] = []
    previous: dict[int, int | None] = {}
    for index in order:
        to = place[index]
        length = bisect_left(ends, to)
        previous[index] = lasts[length - 1] if length else None
        ends[length : length + 1] = [to]
        lasts[length : length + 1] = [index]
    stays: set[int] = set()
    last: int | None = lasts[-1]
    while last is not None:
        stays.add(last)
        last = previous[last]
    return frozenset(previous) - stays


def window(loop: HotLoop, rows: int) -> range:
    """So many rows of both sides that tell most: where the instructions that stand in both save most."""
    length = len(loop.before.rows)
    if length <= rows:
        return range(length)

    def told(first: int) -> float:
        seen = range(first, first + rows)
        inside = (row.index for row in loop.before.rows[first : first + rows])
        return sum(loop.saved(index) for index in inside if loop.after.place[index] in seen)

    first = max(range(length - rows + 1), key=told)
    return range(first, first + rows)


def telling(loop: HotLoop, seen: range, most: int) -> tuple[int, ...]:
    """Instructions of a window that stand elsewhere and wait less or more there, the largest change first.

    Waits for stall counts come last: what one instruction has less, its neighbours often have more. Whose
    result was waited for comes with the one that waited.
    """
    shown = {row.index for side in (loop.before, loop.after) for row in side.rows[seen.start : seen.stop]}
    elsewhere = {i for i in shown if loop.before.place[i] != loop.after.place[i]}
    ranks = {i: (abs(loop.saved_but_for_stalls(i)), abs(loop.saved(i))) for i in elsewhere}
    found: list[int] = []
    for i in sorted(ranks, key=lambda i: (*(-n for n in ranks[i]), i)):
        if max(ranks[i]) >= _WORTH_TELLING:
            found.append(i)
            awaited = loop.before[i].awaited
            if awaited is not None and awaited in elsewhere and ranks[i][0] >= _WORTH_TELLING:
                found.append(awaited)
    return tuple(dict.fromkeys(found))[:most]
