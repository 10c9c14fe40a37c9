"""What rounds of interleaved launches say: the gain of one cubin over another, or why nothing is claimed.

In every round all cubins run once each, in random order. If two of them are equally fast, either is as likely
to come out ahead in a round whatever clocks and temperature do meanwhile, so the number of rounds in which
one is ahead follows the sign test exactly. The interval is the one that belongs to this test.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb, inf
from statistics import median

import numpy as np

from cuasmrl.gpu.devices.bench import Times
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

    `members` are the rounds; `median` is theirs, `low` and `high` the ends of its interval of 99 %
    confidence, `share_above_zero` the share of rounds in which the new one was ahead, `nominal` the ratio of
    the median times.
    """

    old_time: float
    """Microseconds, the median."""
    new_time: float
    control: float
    """The median "gain" of a second copy of the old one, loaded elsewhere: not due to the schedule."""
    refusal: str | None
    """Why no gain is claimed, in a sentence."""
    gpu: str = ""
    """Name of the GPU that ran the rounds."""
    arch: int = 0
    """Its compute capability without the point."""

    @property
    def survives(self) -> bool:
        return self.refusal is None

    @property
    def sentence(self) -> str:
        """For people."""
        if self.refusal is not None:
            return f"no gain: {self.refusal}"
        return (
            f"{self.median:+.2%} ({self.low:+.2%} to {self.high:+.2%} with {LEVEL:.0%} confidence), "
            f"{self.old_time:.2f} to {self.new_time:.2f} microseconds, ahead in "
            f"{round(self.share_above_zero * len(self.members))} of {len(self.members)} rounds"
        )


@dataclass(frozen=True)
class Modes:
    """Two speeds of one kernel."""

    apart: float
    share: float
    """Of the samples in the slower one."""


def judge(old: Sequence[float], new: Sequence[float], copy: Sequence[float]) -> MeasuredGain:
    """The gain of `new` over `old`, by times of the same rounds; `copy` is the old one loaded twice."""
    gains = tuple(float(a / b - 1) for a, b in zip(old, new, strict=True))
    control = tuple(float(a / b - 1) for a, b in zip(old, copy, strict=True))
    low, high = interval(gains)
    middle = median(gains)
    floor = _floor(control)
    old_time, new_time = median(old), median(new)
    nominal = old_time / new_time - 1
    refusal = None
    modes = two_modes(old)
    if modes is not None:
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
        refusal = "round by round the new schedule is ahead, but its median time is not smaller"
    return MeasuredGain(
        nominal=nominal,
        median=middle,
        low=low,
        high=high,
        share_above_zero=sum(gain > 0 for gain in gains) / len(gains),
        members=gains,
        old_time=old_time,
        new_time=new_time,
        control=median(control),
        refusal=refusal,
    )


def interval(samples: Sequence[float], level: float = LEVEL) -> tuple[float, float]:
    """Where the median lies with this confidence; distribution-free, by the sign test."""
    ordered, count = sorted(samples), len(samples)
    # The median is below the k-th smallest of n samples if fewer than k of them are below the median.
    below, rank, allowed = 0, 0, (1 - level) / 2 * 2**count
    while rank <= count // 2 and below + comb(count, rank) <= allowed:
        below += comb(count, rank)
        rank += 1
    return (ordered[rank - 1], ordered[count - rank]) if rank else (-inf, inf)


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


def relative_time(times: Times) -> float:
    """Time of the second cubin of a race over that of the first: the median over the rounds."""
    return float(np.median(times[:, 1] / times[:, 0]))


def _floor(control: Sequence[float]) -> float:
    """How much two copies of one cubin differ, if they do."""
    low, high = interval(control)
    return 0.0 if low <= 0 <= high else abs(median(control))
