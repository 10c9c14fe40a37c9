"""What sittings of interleaved launches say: the gain of one cubin over another, or why nothing is claimed.

In a round all cubins run once each, in random order; in a sitting each is loaded once, and buffers lie
somewhere. What the place of code and data does to a cubin's time is the same for all rounds of a sitting, so
rounds are no independent samples of a gain: sittings are. If two cubins are equally fast, what a sitting says
of them is as likely to favour one as the other by the same amount, whatever places, clocks and heat do. So
Wilcoxon's signed-rank test over sittings is exact, and the interval is the one that belongs to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from math import inf
from statistics import median

import numpy as np

from cuasmrl.gpu.devices.bench import Times
from cuasmrl.gpu.devices.monitor import Conditions
from cuasmrl.gpu.timing import L2
from cuasmrl.gpu.timing.uncertainty import Gain

LEVEL = 0.99
"""Of the interval: at equal speed it lies above zero in one of 200 cases."""
_APART = 0.03
"""Modes closer than this are steps of the clock frequency, which is about a hundredth of it."""
_LEAST_SHARE = 0.1
"""A mode has at least this share of the samples; fewer are stragglers."""
_BETWEEN = 0.05
"""At most this share lies in the middle third between two modes; of a single mode at least a seventh does."""


@dataclass(frozen=True)
class MeasuredGain(Gain):
    """Measured on a GPU: old time / new time - 1.

    `members` are the sittings, each by the median of its rounds; `median` is the middle of what pairs of them
    say, `low` and `high` the ends of its interval of 99 % confidence, `share_above_zero` the share of
    sittings in which the new one was ahead, `nominal` the ratio of the median times.
    """

    old_time: float
    """Microseconds, the median."""
    new_time: float
    control: float
    """The "gain" of a second copy of the old one, loaded elsewhere: not due to the schedule."""
    refusal: str | None
    """Why no gain is claimed, in a sentence."""
    gpu: str = ""
    """Name of the GPU that ran the rounds."""
    arch: int = 0
    """Its compute capability without the point."""
    rounds: int = 0
    """Of all sittings."""
    l2: L2 = L2.COLD
    """Its state before each launch."""
    method: str = "events"
    """What took the times: `events`, or `CUPTI`."""
    compared: int = 0
    """Launches of the new one whose outputs were those of the original."""
    conditions: Conditions | None = field(default=None, repr=False)
    """What the GPU said of itself, round by round."""
    other: Elsewhere | None = None
    """The same under the other state of L2."""

    @property
    def survives(self) -> bool:
        return self.refusal is None

    @property
    def sentence(self) -> str:
        """For people."""
        if self.refusal is not None:
            return f"no gain: {self.refusal}"
        count = len(self.members)
        told = (
            f"{self.median:+.2%} ({self.low:+.2%} to {self.high:+.2%} with {LEVEL:.0%} confidence), "
            f"{self.old_time:.2f} to {self.new_time:.2f} microseconds with a {self.l2} L2 by {self.method}, "
            f"ahead in {round(self.share_above_zero * count)} of {count} sittings"
        )
        if self.other is not None:
            told += f"; with a {self.other.l2} L2 {self.other.median:+.2%}"
        return told


@dataclass(frozen=True)
class Elsewhere:
    """The gain under another state of L2 than the one that it is claimed for."""

    l2: L2
    median: float
    low: float
    high: float
    old_time: float
    new_time: float


@dataclass(frozen=True)
class Modes:
    """Two speeds of one kernel."""

    apart: float
    share: float
    """Of the samples in the slower one."""


def judge(sittings: Sequence[Times], conditions: Conditions | None = None) -> MeasuredGain:
    """The gain of the second cubin over the first by the same sittings; the third is a copy of the first."""
    gains, control = by_sitting(sittings, 1), by_sitting(sittings, 2)
    low, high = interval(gains)
    middle = centre(gains)
    floor = _floor(control)
    times = np.concatenate(sittings)
    old_time, new_time = float(np.median(times[:, 0])), float(np.median(times[:, 1]))
    nominal = old_time / new_time - 1
    refusal = conditions.refusal if conditions else None
    modes = two_modes(times[:, 0].tolist())
    if refusal is not None:
        pass
    elif modes is not None:
        refusal = (
            f"the original itself runs at two speeds, {modes.apart:.1%} apart ({modes.share:.0%} of its "
            "launches are slow); lock the clocks and keep others off the GPU"
        )
    elif low <= 0:
        refusal = f"the interval reaches from {low:+.2%} to {high:+.2%}, so the gain may be noise"
    elif low <= floor:
        refusal = (
            f"a second copy of the original differs from it by {floor:.2%}, so {middle:+.2%} may be due to "
            "where the code lies"
        )
    elif nominal <= 0:
        refusal = "sitting by sitting the new schedule is ahead, but its median time is not smaller"
    return MeasuredGain(
        nominal=nominal,
        median=middle,
        low=low,
        high=high,
        share_above_zero=sum(gain > 0 for gain in gains) / len(gains),
        members=gains,
        old_time=old_time,
        new_time=new_time,
        control=centre(control),
        refusal=refusal,
        rounds=len(times),
        conditions=conditions,
    )


def elsewhere(sittings: Sequence[Times], l2: L2) -> Elsewhere:
    """The same two cubins under another state of L2."""
    gains, times = by_sitting(sittings, 1), np.concatenate(sittings)
    old_time, new_time = np.median(times[:, 0]), np.median(times[:, 1])
    return Elsewhere(l2, centre(gains), *interval(gains), float(old_time), float(new_time))


def by_sitting(sittings: Sequence[Times], arm: int) -> tuple[float, ...]:
    """The gain of a cubin over the first one: the median over the rounds of each sitting."""
    return tuple(float(np.median(times[:, 0] / times[:, arm])) - 1 for times in sittings)


def centre(samples: Sequence[float]) -> float:
    """The median of the means of all pairs, after Hodges and Lehmann."""
    return float(np.median(_pairs(samples)))


def interval(samples: Sequence[float], level: float = LEVEL) -> tuple[float, float]:
    """Where the centre lies with this confidence, by the signed-rank test: exact for symmetric samples."""
    pairs = _pairs(samples)
    # The k-th smallest mean of a pair is above zero if the ranks of negative samples sum up to less than k.
    rank = _ranks_below(len(samples), (1 - level) / 2)
    return (float(pairs[rank - 1]), float(pairs[-rank])) if rank else (-inf, inf)


def _pairs(samples: Sequence[float]) -> Times:
    values = np.asarray(samples)
    first, second = np.triu_indices(len(values))
    return np.sort((values[first] + values[second]) / 2)


@lru_cache(maxsize=64)
def _ranks_below(count: int, allowed: float) -> int:
    """The largest k such that a sum of ranks below k has at most this chance at equal speed, or 0."""
    ways = np.zeros(count * (count + 1) // 2 + 1)
    ways[0] = 1.0
    for rank in range(1, count + 1):
        ways[rank:] = ways[rank:] + ways[:-rank]
    return int(np.searchsorted(np.cumsum(ways) / 2.0**count, allowed, side="right"))


def two_modes(times: Sequence[float]) -> Modes | None:
    """Two speeds with hardly anything between them; drift, noise and stragglers do not count."""
    values = np.sort(np.log(times))
    # What is too little for a mode must not decide where the modes are divided.
    values = values.clip(*np.quantile(values, (_LEAST_SHARE, 1 - _LEAST_SHARE)))
    fewest = max(2, int(np.ceil(_LEAST_SHARE * len(values))))
    splits = np.arange(fewest, len(values) - fewest + 1)
    if not len(splits):
        return None
    # The split that leaves least variance inside its two parts has most between them.
    sums = np.cumsum(values)
    means = sums[splits - 1] / splits, (sums[-1] - sums[splits - 1]) / (len(values) - splits)
    split = int(splits[np.argmax(splits * (len(values) - splits) * (means[1] - means[0]) ** 2)])
    fast, slow = float(np.median(values[:split])), float(np.median(values[split:]))
    third = (slow - fast) / 3
    between = np.mean((values > fast + third) & (values < slow - third))
    apart = float(np.expm1(slow - fast))
    if apart < _APART or between > _BETWEEN:
        return None
    return Modes(apart, 1 - split / len(values))


def relative_time(sittings: Sequence[Times]) -> float:
    """Time of the second cubin over that of the first."""
    return 1 / (1 + median(by_sitting(sittings, 1)))


def _floor(control: Sequence[float]) -> float:
    """How much two copies of one cubin differ, if they do."""
    low, high = interval(control)
    return 0.0 if low <= 0 <= high else abs(centre(control))
