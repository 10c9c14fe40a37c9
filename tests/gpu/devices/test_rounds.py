"""The statistics of interleaved rounds on simulated times: no claim without a gain, no gain unclaimed."""

from math import inf
from statistics import median

import numpy as np
import pytest

from cuasmrl.gpu.devices.rounds import interval, two_modes
from tests.gpu.devices.simulated_rounds import ROUNDS, claims, simulate

TRIALS = 300


@pytest.mark.parametrize(
    "scene",
    [
        {"noise": 0.01},
        {"noise": 0.002, "drift": 0.1},
        {"noise": 0.03, "stragglers": 0.05},
        # Too close together to be told from noise, but the test of signs does not mind.
        {"noise": 0.005, "modes": 0.02},
    ],
)
def test_equal_speed_is_claimed_as_a_gain_in_one_case_of_a_hundred_at_most(scene: dict[str, float]) -> None:
    assert claims(scene, TRIALS) <= 0.0134


@pytest.mark.parametrize(
    "scene",
    [{"noise": 0.01}, {"noise": 0.01, "drift": 0.1, "stragglers": 0.05}, {"noise": 0.02, "drift": 0.3}],
)
def test_two_percent_are_found(scene: dict[str, float]) -> None:
    assert claims({"gain": 0.02, **scene}, 100) >= 0.98


def test_a_loss_is_never_claimed() -> None:
    assert claims({"gain": -0.01}, 100) == 0.0


@pytest.mark.parametrize("gain", [0.0, 0.02, 0.18])
def test_an_original_at_two_speeds_is_refused(gain: float) -> None:
    rng = np.random.default_rng(2)
    found = [simulate(rng, gain=gain, noise=0.005, modes=0.15, stragglers=0.03) for _ in range(50)]
    assert not any(one.survives for one in found)
    assert "two speeds, 15" in (found[0].refusal or "")


def test_a_gain_no_larger_than_between_two_copies_of_the_original_is_refused() -> None:
    found = simulate(np.random.default_rng(3), noise=0.002, placement=0.01)
    assert found.low > 0
    assert not found.survives
    assert found.control == pytest.approx(0.01, abs=0.001)
    assert found.sentence.startswith("no gain: a second copy")


def test_the_fields_of_a_gain() -> None:
    found = simulate(np.random.default_rng(4), gain=0.05, noise=0.01)
    assert found.survives
    assert found.refusal is None
    assert len(found.members) == ROUNDS
    assert found.low < found.median < found.high
    assert found.median == median(found.members) == pytest.approx(0.05, abs=0.005)
    assert found.nominal == found.old_time / found.new_time - 1 == pytest.approx(0.05, abs=0.005)
    assert found.share_above_zero > 0.95
    assert found.sentence.startswith("+5.0")
    assert found.sentence.endswith("of 200 rounds")


def test_the_interval_holds_the_median_as_often_as_it_says() -> None:
    rng = np.random.default_rng(5)
    for level in (0.9, 0.99):
        inside = 0
        for _ in range(500):
            low, high = interval(rng.exponential(1.0, 60).tolist(), level)
            inside += low <= np.log(2) <= high
        assert level - 0.01 <= inside / 500 <= level + (1 - level) * 0.8


def test_the_interval_of_known_ranks() -> None:
    # Of 200 fair coins fewer than 82 show heads in 0.43 % of all cases, fewer than 83 in 0.66 %.
    samples = [float(n) for n in range(1, 201)]
    assert interval(samples) == (82.0, 119.0)
    assert interval([1.0, 2.0, 3.0]) == (-inf, inf)


@pytest.mark.parametrize("share", [0.2, 0.5, 0.8])
def test_modes_are_seen_whatever_their_shares(share: float) -> None:
    rng = np.random.default_rng(6)
    times = np.where(rng.random(200) < share, 23.0, 20.0) * np.exp(0.01 * rng.standard_normal(200))
    found = two_modes(times.tolist())
    assert found is not None
    assert found.apart == pytest.approx(0.15, abs=0.01)
    assert found.share == pytest.approx(share, abs=0.1)


@pytest.mark.parametrize(
    "times",
    [
        np.linspace(20, 26, 200),
        20 + np.sin(np.linspace(0, 20, 200)),
        np.full(200, 20.0),
        np.r_[np.full(190, 20.0), np.full(10, 30.0)],
        np.r_[np.full(100, 20.0), np.full(100, 20.3)],
        20 + np.random.default_rng(7).exponential(2.0, 200),
        np.array([20.0, 25.0]),
    ],
    ids=["drift", "swing", "constant", "stragglers", "clock steps", "tail", "few"],
)
def test_one_mode_is_not_taken_for_two(times: np.ndarray) -> None:
    assert two_modes(times.tolist()) is None
