"""The end of a run: the best finalist is picked and judged; one that the device cannot time is dropped.

A schedule that stood every launch of the search may still fault, hang or go wrong in the many launches of a
confirmation. That costs the run this schedule and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from cuasmrl.gpu.devices import CandidateError, Timer
from cuasmrl.optimize.gate import Check, Outcome, Verdict
from cuasmrl.schedule import Schedule


@dataclass(frozen=True)
class Settled:
    schedule: Schedule
    verdict: Verdict


def settle(
    original: Schedule,
    finalists: Sequence[Schedule],
    timer: Timer,
    judged: Callable[[Schedule], Verdict],
    dropped: Mapping[bytes, str],
    drop: Callable[[bytes, str], None],
) -> Settled | None:
    """None if no finalist is left. `dropped` are those of an earlier attempt, by key, with the reason; `drop`
    is told of each more."""
    reasons = {s.key: dropped[s.key] for s in finalists if s.key in dropped}
    left = [schedule for schedule in finalists if schedule.key not in reasons]
    while left:
        try:
            best = timer.pick(original, left)
            verdict = judged(best)
        except CandidateError as error:
            if all(schedule.key != error.key for schedule in left):
                raise
            left = [schedule for schedule in left if schedule.key != error.key]
            reasons[error.key or b""] = str(error)
            drop(error.key or b"", str(error))
        else:
            return Settled(best, _noted(verdict, list(reasons.values()), len(finalists)))
    return None


def all_dropped(verdict: Verdict, reasons: Sequence[str]) -> Verdict:
    """What is left to say if no finalist stood the test."""
    sentence = f"the device could time none of the {len(reasons)} finalists: {'; '.join(reasons)}"
    return replace(verdict, checks=(Check("finalists", Outcome.FAILED, sentence),))


def _noted(verdict: Verdict, reasons: Sequence[str], count: int) -> Verdict:
    if not reasons:
        return verdict
    sentence = f"{len(reasons)} of {count} were dropped: {'; '.join(reasons)}"
    return replace(verdict, checks=(Check("finalists", Outcome.PASSED, sentence), *verdict.checks))
