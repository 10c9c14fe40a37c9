"""Games on small kernels, and random legal play on them."""

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from cuasmrl.checker import Checker
from cuasmrl.game import Clock, FreeGame, Game, PublishedGame
from cuasmrl.gpu.devices import VirtualTimer
from cuasmrl.schedule import Schedule
from tests.traced_kernels import traced

Step = tuple[npt.NDArray[np.float32], float, bool, bool, dict[str, Any]]


def new_clock(name: str, budget: int = 1000) -> Clock:
    kernel = traced(name)
    return Clock(VirtualTimer(kernel, iterations=2, seeds=(1,)), kernel.original, budget)


def new_game(name: str, budget: int = 1000, clock: Clock | None = None) -> Callable[[], Game]:
    shared = clock or new_clock(name, budget)
    return lambda: Game(traced(name).listing, shared, traced(name))


def random_steps(env: FreeGame | PublishedGame, steps: int, seed: int = 0) -> Iterator[Step]:
    """Legal moves at random, without stopping."""
    rng = np.random.default_rng(seed)
    for _ in range(steps):
        legal = np.flatnonzero(env.action_masks()[:-1])
        if not len(legal):
            return
        step = env.step(rng.choice(legal))
        yield step
        if step[2] or step[3]:
            return


@lru_cache
def checker(name: str) -> Checker:
    kernel = traced(name)
    return Checker(kernel.cubin)


def certify(name: str, schedule: Schedule) -> None:
    """Raises what is wrong with a schedule, if anything is."""
    checker(name).check(schedule.apply(traced(name).cubin))
