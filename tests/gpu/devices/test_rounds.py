"""The statistics of interleaved rounds on simulated times: no claim without a gain, no gain unclaimed."""

from itertools import product
from math import inf

import numpy as np
import pytest

from cuasmrl.gpu.devices.cuda import SITTINGS
from cuasmrl.gpu.devices.monitor import Conditions, Reading
from cuasmrl.gpu.devices.rounds import centre, elsewhere, interval, judge, two_modes
from cuasmrl.gpu.timing import L2
from tests.gpu.devices.simulated_rounds import ALL, claims, simulate

TRIALS = 300


@pytest.mark.parametrize(
    "scene",
    [
        {"noise": 0.01},
        {"noise": 0.002, "drift": 0.1},
        {"noise": 0.03, "stragglers": 0.05},
        # Too close together to be told from noise, but the test of ranks does not mind.
        {"noise": 0.005, "modes": 0.02},
        {"placement": 0.002},
        ALL,
        {**ALL, "placement": 0.0, "slow": 0.01},
    ],
)
def test_equal_speed_is_claimed_as_a_gain_in_one_case_of_a_hundred_at_most(scene: dict[str, float]) -> None:
    assert claims(scene, TRIALS) <= 0.0134


@pytest.mark.parametrize(
    "scene",
    [{"noise": 0.01}, {"noise": 0.01, "drift": 0.1, "stragglers": 0.05}, {"noise": 0.02, "drift": 0.3}, ALL],
)
def test_two_percent_are_found(scene: dict[str, float]) -> None:
    assert claims({"gain": 0.02, **scene}, 100) >= 0.95


def test_a_loss_is_never_claimed() -> None:
    assert claims({"gain": -0.01}, 100) == 0.0


@pytest.mark.parametrize("gain", [0.0, 0.02, 0.18])
def test_an_original_at_two_speeds_is_refused(gain: float) -> None:
    rng = np.random.default_rng(2)
    found = [simulate(rng, gain=gain, noise=0.005, modes=0.15, stragglers=0.03) for _ in range(50)]
    assert not any(one.survives for one in found)
    assert "two speeds, 15" in (found[0].refusal or "")


def test_a_gain_no_larger_than_between_two_copies_of_the_original_is_refused() -> None:
    rng = np.random.default_rng(3)
    times = 20 * np.exp(0.002 * rng.standard_normal((SITTINGS, 10, 3)))
    times[:, :, 1:] *= 0.99
    found = judge(list(times))
    assert found.low > 0
    assert not found.survives
    assert found.control == pytest.approx(0.01, abs=0.001)
    assert found.sentence.startswith("no gain: a second copy")


def test_a_gain_under_throttling_is_refused() -> None:
    rng = np.random.default_rng(3)
    times = 20 * np.exp(0.002 * rng.standard_normal((SITTINGS, 10, 3)))
    times[:, :, 1] *= 0.95
    assert judge(list(times), Conditions.of([Reading(1410)] * 200)).survives
    found = judge(list(times), Conditions.of([Reading(1410, throttle=("power cap",))] * 200))
    assert found.sentence.startswith("no gain: the GPU slowed itself down in 200 of 200 rounds (power cap)")


def test_the_fields_of_a_gain() -> None:
    found = simulate(np.random.default_rng(4), gain=0.05, noise=0.01)
    assert found.survives
    assert found.refusal is None
    assert len(found.members) == SITTINGS
    assert found.rounds == 200
    assert found.low < found.median < found.high
    assert found.median == centre(found.members) == pytest.approx(0.05, abs=0.005)
    assert found.nominal == found.old_time / found.new_time - 1 == pytest.approx(0.05, abs=0.005)
    assert found.share_above_zero > 0.95
    assert found.sentence.startswith(f"{found.median:+.2%} (")
    assert "with a cold L2 by events" in found.sentence
    assert found.sentence.endswith("of 20 sittings")


def test_the_gain_under_the_other_state_of_l2_is_named() -> None:
    times = np.full((5, 4, 2), 10.0)
    times[:, :, 1] = 8.0
    found = elsewhere(list(times), L2.WARM)
    assert (found.l2, found.old_time, found.new_time) == (L2.WARM, 10.0, 8.0)
    assert found.median == pytest.approx(0.25)


def test_the_interval_holds_the_centre_as_often_as_it_says() -> None:
    rng = np.random.default_rng(5)
    for level in (0.9, 0.99):
        inside = 0
        for _ in range(500):
            low, high = interval(rng.laplace(1.0, 1.0, 20).tolist(), level)
            inside += low <= 1.0 <= high
        assert level - 0.02 <= inside / 500 <= level + (1 - level) * 0.9


def test_the_interval_is_that_of_the_signed_rank_test() -> None:
    # Of the 1024 ways to give 10 ranks a sign, this many have less than this sum of positive ones.
    samples = [1.0 + 0.1 * n for n in range(10)]
    sums = [
        sum(r for r, s in zip(range(1, 11), signs, strict=True) if s) for signs in product((0, 1), repeat=10)
    ]
    rank = max(k for k in range(56) if sum(one < k for one in sums) <= 0.005 * 1024)
    means = sorted((a + b) / 2 for n, a in enumerate(samples) for b in samples[n:])
    assert interval(samples) == (means[rank - 1], means[-rank])
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
