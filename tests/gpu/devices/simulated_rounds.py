"""Simulated rounds; `python -m tests.gpu.devices.simulated_rounds` prints how often a gain is claimed."""

import numpy as np

from cuasmrl.gpu.devices.rounds import MeasuredGain, judge

ROUNDS = 200
TABLE: dict[str, dict[str, float]] = {
    "equal, noise 1 %": {},
    "equal, noise 1 %, drift 10 %": {"drift": 0.1},
    "equal, noise 0.1 %, drift 10 %, 5 % stragglers": {"noise": 0.001, "drift": 0.1, "stragglers": 0.05},
    "equal, two speeds 15 % apart": {"noise": 0.005, "modes": 0.15},
    "2 % faster, noise 1 %": {"gain": 0.02},
    "2 % faster, noise 1 %, drift 10 %, 5 % stragglers": {"gain": 0.02, "drift": 0.1, "stragglers": 0.05},
    "2 % faster, noise 3 %": {"gain": 0.02, "noise": 0.03},
    "0.5 % faster, noise 1 %": {"gain": 0.005},
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
) -> MeasuredGain:
    """Rounds of three slots in time; old, new and copy take them in random order."""
    slots = np.linspace(1, 1 + drift, 3 * ROUNDS).reshape(ROUNDS, 3)
    slots *= np.exp(noise * rng.standard_normal(slots.shape))
    slots *= 1 + modes * (rng.random(slots.shape) < 0.4)
    slots *= 1 + (rng.random(slots.shape) < stragglers) * rng.exponential(0.5, slots.shape)
    times = 20 * np.take_along_axis(slots, np.argsort(rng.random(slots.shape), axis=1), axis=1)
    times[:, 1] /= 1 + gain
    times[:, 1:] *= 1 - placement
    return judge(*times.T.tolist())


def claims(scene: dict[str, float], trials: int) -> float:
    rng = np.random.default_rng(1)
    return sum(simulate(rng, **scene).survives for _ in range(trials)) / trials


if __name__ == "__main__":
    for what, scene in TABLE.items():
        print(f"| {what} | {claims(scene, 1000):.1%} |")
