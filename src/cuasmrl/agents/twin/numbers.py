"""The numbers that schedules of a kernel depend on, and steps from one set of them to another."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np

from cuasmrl.agents.twin.guess import Guess
from cuasmrl.gpu.timing.parameters import Number, Parameters
from cuasmrl.gpu.timing.uncertainty import draw
from cuasmrl.schedule import Schedule

_MATTERS = 2e-4
"""A relative time that a number has to change to matter."""
_LEAP = 0.3
"""How often a step goes anywhere in a number's range, instead of near where it is."""
_NEAR = 0.2
"""Standard deviation of a step nearby, as a share of the range."""
_MOST_CHANGED = 4


def sensitive(nominal: Guess, schedules: Sequence[Schedule]) -> tuple[str, ...]:
    """The numbers that change how schedules compare, and not only how long they all take."""
    expected = np.array(nominal.predictions(schedules))

    def matters(name: str, value: float) -> bool:
        other = nominal.changed(nominal.numbers.with_values({name: value}))
        if other.model.machine == nominal.model.machine and other.model.code is nominal.model.code:
            return False
        return bool(np.abs(np.array(other.predictions(schedules)) - expected).max() > _MATTERS)

    return tuple(
        name
        for name, number in nominal.numbers.numbers.items()
        if any(matters(name, value) for value in _extremes(number))
    )


def drawn(nominal: Parameters, count: int, rng: random.Random) -> list[Parameters]:
    """Chips from the ranges of the file."""
    return draw(nominal, count + 1, rng.getrandbits(60))[1:]


def stepped(numbers: Parameters, names: Sequence[str], rng: random.Random) -> Parameters:
    """Some of these numbers changed: a step that is as likely in both directions."""
    chosen = rng.sample(names, min(len(names), rng.randint(1, _MOST_CHANGED)))
    return numbers.with_values({name: _moved(numbers.numbers[name], rng) for name in chosen})


def _moved(number: Number, rng: random.Random) -> float:
    if number.choices:
        return rng.choice([choice for choice in number.choices if choice != number.value])
    if rng.random() < _LEAP:
        return rng.uniform(number.low, number.high)
    value = number.value + rng.gauss(0, _NEAR) * (number.high - number.low)
    # Reflected at the ends of the range, so that a step back is as likely.
    if value < number.low:
        value = 2 * number.low - value
    if value > number.high:
        value = 2 * number.high - value
    return min(max(value, number.low), number.high)


def _extremes(number: Number) -> list[float]:
    values = number.choices or (number.low, number.high)
    return [value for value in values if value != number.value]
