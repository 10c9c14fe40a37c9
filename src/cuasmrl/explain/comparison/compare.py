"""Replay two schedules of a kernel on equal terms, and find where their cycles differ."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from cuasmrl.binary.cubin import WORD_BYTES
from cuasmrl.errors import CuasmrlError
from cuasmrl.explain.comparison.changes import (
    Comparison,
    InstructionChange,
    ReasonChange,
    Timed,
)
from cuasmrl.explain.comparison.words import sentences
from cuasmrl.explain.waits.charges import charged
from cuasmrl.explain.waits.holds import holds_of, issues
from cuasmrl.explain.waits.replays import Replays, replays_of
from cuasmrl.gpu.timing import REASON_NAMES, Model, Reason
from cuasmrl.gpu.timing.code import Int
from cuasmrl.gpu.timing.records import SUB_CORES, Note
from cuasmrl.schedule import Schedule, control_flow

Cycles: TypeAlias = npt.NDArray[np.float64]
_LOGGED = 100_000
"""Issues that are looked at to see who waits for whom; the amounts are those of the whole replay."""


def compare(
    model: Model,
    before: Schedule,
    after: Schedule,
    seeds: Sequence[int] = range(3),
    names: tuple[str, str] = ("before", "after"),
) -> Comparison:
    """Replay two schedules of the kernel with the same seeds and say where their cycles differ."""
    if before.listing.kernel.words != after.listing.kernel.words:
        raise CuasmrlError("two schedules can be compared only if they are made from the same listing")
    old, new = (replays_of(model, s, seeds, _LOGGED) for s in (before, after))
    return compare_replays(model.chip.name, old, new, names)


def compare_replays(
    chip: str, old: Replays, new: Replays, names: tuple[str, str] = ("before", "after")
) -> Comparison:
    """The same from replays that have been made, under the same seeds."""
    before, after = old.schedule, new.schedule
    instructions = _instruction_changes(old, new)
    moved = {i for p, q in zip(before.order, after.order, strict=True) if p != q for i in (p, q)}
    return Comparison(
        before.listing.kernel.name,
        chip,
        Timed(names[0], old.cycles),
        Timed(names[1], new.cycles),
        _reason_changes(old, new),
        instructions,
        len(moved),
        sum(a != b for a, b in zip(before.controls, after.controls, strict=True)),
        sentences(instructions, before, after),
    )


def _reason_changes(old: Replays, new: Replays) -> tuple[ReasonChange, ...]:
    """Each cycle of a sub-core has one name, so the sums over all four are four times the cycles."""
    sums = [old.cores, new.cores]
    shares = [total / (SUB_CORES * len(old.seeds)) for total in sums]
    changes = [
        ReasonChange(REASON_NAMES[Reason(k)], float(shares[0][k]), float(shares[1][k]))
        for k in range(len(shares[0]))
        if sums[0][k] != sums[1][k]
    ]
    return tuple(sorted(changes, key=lambda c: -abs(c.change)))


def _instruction_changes(before: Replays, after: Replays) -> tuple[InstructionChange, ...]:
    old, new = before.schedule, after.schedule
    lost_old, lost_new = _lost(before), _lost(after)
    causes_old, causes_new = _causes(old, before.log), _causes(new, after.log)
    place_old, place_new = _positions(old), _positions(new)
    total = lost_new - lost_old
    found = []
    for i in np.flatnonzero(total.any(axis=1)).tolist():
        # The name of the change is the reason that went the same way, and farthest.
        reason = int(total[i].argmax() if total[i].sum() > 0 else total[i].argmin())
        found.append(
            InstructionChange(
                index=i,
                text=old.listing.instructions[i].text,
                address_before=WORD_BYTES * place_old[i],
                address_after=WORD_BYTES * place_new[i],
                control_before=str(old.controls[i]),
                control_after=str(new.controls[i]),
                lost_before=float(lost_old[i].sum()),
                lost_after=float(lost_new[i].sum()),
                reason=REASON_NAMES[Reason(reason)],
                reason_change=float(total[i, reason]),
                cause_before=causes_old.get((i, _merged(reason))),
                cause_after=causes_new.get((i, _merged(reason))),
            )
        )
    return tuple(sorted(found, key=lambda change: (-abs(change.change), change.index)))


def _lost(replays: Replays) -> Cycles:
    """Cycles of all warps by original index and reason, without those of issuing; mean over the seeds."""
    rows = replays.rows / len(replays.seeds)
    rows[:, Reason.ISSUED] = 0
    lost = np.zeros_like(rows)
    lost[list(replays.schedule.order)] = charged(rows, control_flow(replays.schedule.listing))
    return lost


def _causes(schedule: Schedule, log: Int) -> dict[tuple[int, int], int]:
    """For an instruction and a reason, the other that it waited for longest; all by original index.

    Scoreboards count as one reason: which of the two names the model gives depends on who raised it last.
    """
    found: dict[tuple[int, int], Counter[int]] = defaultdict(Counter)
    before: dict[tuple[int, int], int] = {}
    rows = issues(log)[:, [Note.CYCLE, Note.BLOCK, Note.WARP, Note.POSITION]].tolist()
    for (cycle, block, warp, position), hold in zip(rows, holds_of(log, schedule), strict=True):
        if hold is not None:
            waited = hold.until - before[block, warp] - 1
            found[schedule.order[position], _merged(hold.reason)][schedule.order[hold.by]] += waited
        before[block, warp] = cycle
    return {key: waited.most_common(1)[0][0] for key, waited in found.items()}


def _merged(reason: int) -> int:
    """All waits for a scoreboard are one: the log does not say what held up its result."""
    far = (Reason.LONG_SCOREBOARD, Reason.L2_SHARE, Reason.DRAM, Reason.TMA, Reason.MBARRIER)
    return Reason.SHORT_SCOREBOARD if reason in far else reason


def _positions(schedule: Schedule) -> dict[int, int]:
    return {i: position for position, i in enumerate(schedule.order)}
