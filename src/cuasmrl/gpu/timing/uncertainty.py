"""How sure a figure is: common random seeds, and an ensemble of chips that the sources all allow.

Memory latency has a seeded jitter: without it a search would tune a schedule to one exact phase of the
machine, which no real run has. And most numbers of a chip are known only within a range: a gain is worth
something if it shows in most chips drawn from these ranges, not only in the one at their centre.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from statistics import mean, median, quantiles

from cuasmrl.gpu.timing.model import Model
from cuasmrl.gpu.timing.parameters import Number, Parameters
from cuasmrl.schedule import Schedule

UNIT = "modelled cycles"
_WORKERS = 2


@dataclass(frozen=True)
class Measurement:
    """Cycles of one schedule over seeds."""

    value: float
    low: float
    high: float
    """The smallest and the largest sample."""
    device: str
    samples: tuple[int, ...]
    unit: str = UNIT


@dataclass(frozen=True)
class Gain:
    """How much faster a schedule is than another: old cycles / new cycles - 1, on equal terms."""

    nominal: float
    """On the chip as its file describes it, mean over the seeds."""
    median: float
    """Over the ensemble."""
    low: float
    high: float
    """The middle 90 % of the ensemble."""
    share_above_zero: float
    members: tuple[float, ...]
    """The mean over the seeds for each member of the ensemble; the first is the nominal chip."""


def draw(parameters: Parameters, count: int, seed: int = 0) -> list[Parameters]:
    """The chip itself and `count` - 1 others, every number drawn from its range at once."""
    rng = random.Random(seed)
    members = [parameters]
    for _ in range(count - 1):
        values = {name: _drawn(rng, number) for name, number in parameters.numbers.items()}
        members.append(parameters.with_values(values))
    return members


def _drawn(rng: random.Random, number: Number) -> float:
    """Below and above the stated value with equal chance, evenly on either side; choices evenly."""
    if number.choices:
        return rng.choice(number.choices)
    above = rng.random() < 0.5
    return rng.uniform(number.value, number.high) if above else rng.uniform(number.low, number.value)


def measure(model: Model, schedule: Schedule, seeds: Iterable[int], blocks: int | None = None) -> Measurement:
    """Replay a schedule once per seed."""
    table = model.table(schedule)
    with ThreadPoolExecutor(_WORKERS) as pool:
        samples = tuple(pool.map(lambda seed: model.cycles(table, seed, blocks), seeds))
    return Measurement(mean(samples), min(samples), max(samples), model.chip.name, samples)


def compare(
    model: Model,
    old: Schedule,
    new: Schedule,
    seeds: Sequence[int],
    members: Sequence[Parameters],
    blocks: int | None = None,
    fewer: int | None = None,
) -> Gain:
    """Time both schedules with the same seeds on every member of an ensemble, the nominal chip first.

    With `fewer` every other member has so many of the seeds, the next ones in turn.
    """

    def gain(number: int) -> float:
        member = model.with_parameters(members[number])
        before, after = member.table(old), member.table(new)
        chosen = seeds
        if fewer is not None and number:
            chosen = [seeds[(number * fewer + k) % len(seeds)] for k in range(fewer)]
        ratios = [member.cycles(before, seed, blocks) / member.cycles(after, seed, blocks) for seed in chosen]
        return mean(ratios) - 1

    with ThreadPoolExecutor(_WORKERS) as pool:
        gains = tuple(pool.map(gain, range(len(members))))
    cuts = quantiles(gains, n=20) if len(gains) > 1 else [gains[0]] * 19
    return Gain(
        nominal=gains[0],
        median=median(gains),
        low=cuts[0],
        high=cuts[-1],
        share_above_zero=sum(g > 0 for g in gains) / len(gains),
        members=gains,
    )
