"""Simulated sittings; `python -m tests.gpu.devices.simulated_rounds` prints how often a gain is claimed.

Of all confirmations, and of those of the five seeds the least and the most."""

from statistics import fmean

import numpy as np

from cuasmrl.gpu.devices.cuda import SITTING_ROUNDS, SITTINGS
from cuasmrl.gpu.devices.rounds import MeasuredGain, judge

SEEDS, TRIALS = range(1, 6), 800
ALL = {"placement": 0.01, "drift": 0.1, "stragglers": 0.05}
TABLE: dict[str, dict[str, float]] = {
    "equal, noise 1 %": {},
    "equal, noise 0.1 %, drift 10 %, 5 % stragglers": {"noise": 0.001, "drift": 0.1, "stragglers": 0.05},
    "equal, placement 0.2 %, drift 10 %, 5 % stragglers": {**ALL, "placement": 0.002},
    "equal, placement 1 %, drift 10 %, 5 % stragglers": ALL,
    "equal, every fourth place 1 % slower, drift 10 %, 5 % stragglers": {**ALL, "placement": 0, "slow": 0.01},
    "equal, two speeds 15 % apart": {"noise": 0.005, "modes": 0.15},
    "2 % faster, noise 1 %": {"gain": 0.02},
    "2 % faster, placement 1 %, drift 10 %, 5 % stragglers": {"gain": 0.02, **ALL},
    "2 % faster, noise 3 %": {"gain": 0.02, "noise": 0.03},
    "0.5 % faster, noise 1 %": {"gain": 0.005},
    "0.5 % faster, placement 1 %": {"gain": 0.005, "placement": 0.01},
    "2 % faster, two speeds 15 % apart": {"gain": 0.02, "noise": 0.005, "modes": 0.15},
}


def simulate(
    rng: np.random.Generator,
    gain: float = 0.0,
    noise: float = 0.01,
    drift: float = 0.0,
    modes: float = 0.0,
    stragglers: float = 0.0,
    placement: float = 0.0,
    slow: float = 0.0,
) -> MeasuredGain:
    """Rounds of three slots in time; old, new and copy take them in random order."""
    shape = SITTINGS, SITTING_ROUNDS, 3
    slots = np.linspace(1, 1 + drift, int(np.prod(shape))).reshape(shape)
    slots *= np.exp(noise * rng.standard_normal(shape))
    slots *= 1 + modes * (rng.random(shape) < 0.4)
    slots *= 1 + (rng.random(shape) < stragglers) * rng.exponential(0.5, shape)
    times = 20 * np.take_along_axis(slots, np.argsort(rng.random(shape), axis=2), axis=2)
    # What the place does lasts for a sitting, for each cubin that is loaded.
    loaded = SITTINGS, 1, 3
    times *= np.exp(placement * rng.standard_normal(loaded)) * (1 + slow * (rng.random(loaded) < 0.25))
    times[:, :, 1] /= 1 + gain
    return judge(list(times))


def claims(scene: dict[str, float], trials: int, seed: int = 1) -> float:
    rng = np.random.default_rng(seed)
    return sum(simulate(rng, **scene).survives for _ in range(trials)) / trials


if __name__ == "__main__":
    for what, scene in TABLE.items():
        found = [claims(scene, TRIALS, seed) for seed in SEEDS]
        print(f"| {what} | {fmean(found):.1%} | {min(found):.1%} to {max(found):.1%} |", flush=True)
