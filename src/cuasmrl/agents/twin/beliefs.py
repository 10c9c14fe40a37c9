"""What the agent believes the device to be: guesses at its numbers, fitted to the times it has seen.

A likelihood on the logarithm of relative times, with a noise that is as large as the best guess is wrong. At
each fit new guesses join, guesses are drawn anew by their likelihood, and each takes some Metropolis steps.
"""

from __future__ import annotations

import math
import random
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from cuasmrl.agents.twin.guess import Guess
from cuasmrl.agents.twin.numbers import drawn, stepped
from cuasmrl.schedule import Schedule

_LEAST_NOISE = 5e-4
"""Of a log ratio: what rounding and rough replays leave even of a perfect guess."""
_FAR = 0.03
"""A schedule that is so much slower than the best is allowed twice the variance: what matters is the ranking
of good ones."""
_EVIDENCE = 20
"""Times count for no more than so many: how wrong a model is differs little from one schedule to the next."""

_HELD = 5
"""Latest fits whose guesses say what is believed."""
_BEFORE = 200


@dataclass(frozen=True)
class Seen:
    """A schedule that the device has timed."""

    schedule: Schedule
    change: float
    """Logarithm of its time over that of the original."""


@dataclass(frozen=True)
class Fit:
    """What a fit came to."""

    noise: float
    """How wrong the best guess is: standard deviation of a log ratio."""
    moved: float
    """Share of the Metropolis steps that were taken."""


@dataclass(frozen=True)
class Belief:
    """What is believed of one number of the chip."""

    name: str
    unit: str
    stated: float
    """By the chip's file."""
    before: tuple[float, float]
    """The middle 90 % of chips drawn from the file's ranges."""
    after: tuple[float, float]
    """The middle 90 % of the guesses of the latest fits."""

    @property
    def left(self) -> float:
        """Share of the width that is left."""
        width = self.before[1] - self.before[0]
        return (self.after[1] - self.after[0]) / width if width else 1.0


class Beliefs:
    def __init__(self, nominal: Guess, names: Sequence[str], count: int, rng: random.Random) -> None:
        self.nominal = nominal
        self.names = tuple(names)
        self.rng = rng
        self.guesses = [nominal, *self._fresh(count - 1)]
        self._held: deque[list[Guess]] = deque([self.guesses], maxlen=_HELD)

    def draw(self, count: int) -> list[Guess]:
        """Different guesses, as far as there are."""
        unique = list(dict.fromkeys(self.guesses))
        return self.rng.sample(unique, min(count, len(unique)))

    def predict(self, schedule: Schedule) -> float:
        """What the guesses say on average."""
        return sum(guess.predict(schedule) for guess in self.guesses) / len(self.guesses)

    def fit(self, seen: Sequence[Seen], fresh: int, steps: int) -> Fit:
        count = len(self.guesses)
        candidates = [*self.guesses, *self._fresh(fresh)]
        noise = self._noise(candidates, seen)
        weighed = [(_likelihood(guess, seen, noise), guess) for guess in candidates]
        best = max(likelihood for likelihood, _ in weighed)
        weights = [math.exp(likelihood - best) for likelihood, _ in weighed]
        chosen = [weighed[k] for k in _systematic(weights, count, self.rng)]
        moved = 0
        for _ in range(steps):
            for k, (likelihood, guess) in enumerate(chosen):
                other = guess.changed(stepped(guess.numbers, self.names, self.rng))
                threshold = likelihood + math.log(1 - self.rng.random())
                found = _likelihood(other, seen, noise, threshold)
                if found > threshold:
                    chosen[k] = found, other
                    moved += 1
        self.guesses = [guess for _, guess in chosen]
        self._held.append(self.guesses)
        return Fit(noise, moved / (steps * count) if steps else 0.0)

    def revealed(self) -> list[Belief]:
        """Of each number what the chip's file says and what the latest fits do, those that narrowed most
        first."""
        drawn_before = drawn(self.nominal.numbers, _BEFORE, random.Random(0))
        held = [guess.numbers for guesses in self._held for guess in guesses]
        found = [
            Belief(
                name,
                self.nominal.numbers.numbers[name].unit,
                self.nominal.numbers[name],
                interval([numbers[name] for numbers in drawn_before]),
                interval([numbers[name] for numbers in held]),
            )
            for name in self.names
        ]
        return sorted(found, key=lambda belief: belief.left)

    def _fresh(self, count: int) -> list[Guess]:
        return [self.nominal.changed(numbers) for numbers in drawn(self.nominal.numbers, count, self.rng)]

    def _noise(self, guesses: Sequence[Guess], seen: Sequence[Seen]) -> float:
        least = min(_misfit(guess, seen) for guess in guesses)
        return max(_LEAST_NOISE, math.sqrt(least / max(1, len(seen) - 1)))


def interval(values: Sequence[float]) -> tuple[float, float]:
    """The middle 90 %."""
    ordered = sorted(values)
    cut = round(0.05 * (len(ordered) - 1))
    return ordered[cut], ordered[-1 - cut]


def _weight(one: Seen, best: float) -> float:
    return 1 / (1 + ((one.change - best) / _FAR) ** 2)


def _misfit(guess: Guess, seen: Sequence[Seen], most: float = math.inf) -> float:
    """Weighted squares of what is left of the times, but for a common factor; stops where it gets too large.

    The sum around the mean of those so far only grows as more are added.
    """
    best = min(one.change for one in seen)
    weights = mean = squares = 0.0
    for one in seen:
        weight = _weight(one, best)
        left = one.change - guess.predict(one.schedule)
        weights += weight
        step = left - mean
        mean += step * weight / weights
        squares += weight * step * (left - mean)
        if squares > most:
            break
    return squares


def _likelihood(guess: Guess, seen: Sequence[Seen], noise: float, least: float = -math.inf) -> float:
    """Its logarithm; some smaller figure where it is below `least`."""
    scale = min(1.0, _EVIDENCE / len(seen)) / (2 * noise**2)
    return -scale * _misfit(guess, seen, -least / scale)


def _systematic(weights: Sequence[float], count: int, rng: random.Random) -> list[int]:
    """Numbers drawn by weight, each as often as its share says give or take one."""
    step = sum(weights) / count
    at, summed, chosen = rng.random() * step, 0.0, list[int]()
    for k, weight in enumerate(weights):
        summed += weight
        while at < summed and len(chosen) < count:
            chosen.append(k)
            at += step
    return chosen + [len(weights) - 1] * (count - len(chosen))


def informative(seen: Sequence[Seen], count: int) -> list[Seen]:
    """Of many schedules: the fastest, the latest, and others from all over the range."""
    if len(seen) <= count:
        return list(seen)
    third = count // 3
    ranked = sorted(seen, key=lambda one: one.change)
    chosen = dict.fromkeys([*ranked[:third], *seen[-third:]])
    rest = [one for one in ranked if one not in chosen]
    left = count - len(chosen)
    chosen |= dict.fromkeys(rest[k * len(rest) // left] for k in range(left))
    return list(chosen)
