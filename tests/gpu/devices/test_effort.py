"""How much has to be replayed."""

import random
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from cuasmrl.gpu.devices.effort import FEWEST, ITERATIONS, MOST, Pair, measure_effort, rank_correlation


@dataclass(frozen=True)
class Named:
    key: bytes


@dataclass(frozen=True)
class Chip:
    """Each schedule takes a time of its own, and as much more or less as this chip happens to like it."""

    spread: float
    noise: float
    seed: int
    model: Any = field(default=None)

    def __post_init__(self) -> None:
        object.__setattr__(self, "model", self)

    def table(self, schedule: Named) -> Named:
        return schedule

    def cycles(self, schedule: Named) -> float:
        own = random.Random(schedule.key).gauss(0, self.spread)
        liked = random.Random(schedule.key + bytes([self.seed])).gauss(0, self.noise)
        return 1e6 * (1 + own + liked)


@dataclass(frozen=True)
class Told:
    """Differences from the original by the number of the candidate."""

    differences: Any

    @property
    def model(self) -> "Told":
        return self

    def table(self, schedule: Named) -> Named:
        return schedule

    def cycles(self, schedule: Named) -> float:
        return 1e6 if schedule.key == b"original" else 1e6 + 1e3 * self.differences[int(schedule.key)]


def effort_of(spread: float, noise: float, in_part: float = 0.0) -> Any:
    """`in_part` is the noise that few iterations add to what a schedule is worth."""
    original = Named(b"original")
    pairs = [Pair(Named(b"%d" % n), original) for n in range(24)]  # type: ignore[arg-type]

    def conditions(iterations: int) -> list[Chip]:
        added = in_part if iterations == ITERATIONS[0] else 0.0
        return [Chip(spread, noise + added, seed) for seed in range(MOST)]

    reference = [Chip(spread, noise, 100 + seed) for seed in range(8)]
    return measure_effort(pairs, original, reference, conditions)  # type: ignore[arg-type]


def test_without_noise_few_conditions_do() -> None:
    effort = effort_of(spread=0.005, noise=0.0)
    assert (effort.iterations, effort.conditions) == (ITERATIONS[0], FEWEST)
    assert effort.agreement == pytest.approx(1)


def test_noise_takes_more_conditions() -> None:
    little, much = effort_of(0.005, 0.002), effort_of(0.005, 0.03)
    assert little.conditions == FEWEST
    assert much.conditions == MOST
    # Both the schedule and the original it is compared with are liked more or less.
    assert little.noise == pytest.approx(0.002 * 2**0.5, rel=0.2)
    assert little.agreement > much.agreement


def test_more_iterations_are_taken_where_few_mislead() -> None:
    assert effort_of(0.005, 0.001).iterations == ITERATIONS[0]
    assert effort_of(0.005, 0.001, in_part=0.05).iterations == ITERATIONS[1]


def test_chips_differ_little_about_small_changes_where_few_of_them_tell_schedules_apart() -> None:
    steady, unsteady = effort_of(0.005, 0.002), effort_of(0.005, 0.03)
    assert steady.least_noise < 0.1 * steady.noise
    assert (steady.margin, unsteady.margin) == (1, 2)
    assert unsteady.least_noise == pytest.approx(unsteady.noise)


def test_fewer_conditions_show_equality_where_moves_change_nothing_anywhere() -> None:
    """Of 24 candidates 20 take as long as the original on every chip, or all differ on most of them."""
    rare = np.zeros((24, 12))
    rare[:4] = np.random.default_rng(0).normal(size=(4, 12))
    hidden = np.random.default_rng(0).normal(size=(24, 12))
    hidden[:, ::6] = 0

    def equal_of(differences: npt.NDArray[np.float64]) -> int:
        original = Named(b"original")
        pairs = [Pair(Named(b"%d" % n), original) for n in range(24)]  # type: ignore[arg-type]

        def conditions(iterations: int) -> list[Told]:
            return [Told(differences[:, k]) for k in range(12)]

        reference = conditions(0)[:8]
        return measure_effort(pairs, original, reference, conditions).equal  # type: ignore[arg-type]

    assert equal_of(rare) < equal_of(hidden)


def test_nothing_to_compare_is_said() -> None:
    effort = measure_effort([], Named(b"original"), [], lambda iterations: [])  # type: ignore[arg-type]
    assert effort.agreement is None
    assert "rank" not in effort.sentence


def test_rank_correlation_by_hand() -> None:
    assert rank_correlation(np.array([1.0, 2, 3, 4]), np.array([10.0, 20, 30, 1000])) == pytest.approx(1)
    assert rank_correlation(np.array([1.0, 2, 3]), np.array([3.0, 2, 1])) == pytest.approx(-1)
    # Ranks 1.5 1.5 3 4 beside 1 2 3 4: covariance 4.5, variances 4.5 and 5.
    assert rank_correlation(np.array([1.0, 1, 2, 3]), np.array([1.0, 2, 3, 4])) == pytest.approx(
        4.5 / (4.5 * 5) ** 0.5
    )
    assert rank_correlation(np.array([1.0, 1, 1]), np.array([1.0, 2, 3])) == 0
