"""A kernel that a few moves make faster, and a schedule that does."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

from cuasmrl import workloads
from cuasmrl.agents import match
from cuasmrl.game import Game
from cuasmrl.gpu.chips import chip
from cuasmrl.gpu.devices import VirtualTimer
from cuasmrl.gpu.traced import TracedKernel
from cuasmrl.schedule import Schedule
from cuasmrl.workloads.tracing import trace_workload

NAME, CONFIG, SIZES = "gemm_leaky_relu", "m32n32k32_w2_s2", {"M": 128, "N": 128, "K": 256}


@dataclass(frozen=True)
class Climber:
    """Keeps what is not slower, and times nothing twice in a row."""

    name: ClassVar[str] = "climber"

    farthest: int = 40

    def play(self, new_game: Callable[[], Game], seed: int) -> None:
        game, rng = new_game(), random.Random(seed)
        best, here = game.clock.start, game.original
        while not game.clock.is_over:
            move = game.random_shift(rng, self.farthest)
            if move is None or not game.play(move):
                continue
            time = game.time()
            if time <= best:
                best, here = time, game.schedule
            else:
                game.back_to(here)


@dataclass(frozen=True)
class Idler:
    """Plays nothing."""

    name: ClassVar[str] = "idler"

    def play(self, new_game: Callable[[], Game], seed: int) -> None:
        new_game()


@lru_cache
def kernel() -> TracedKernel:
    workload = workloads.get(NAME)
    return trace_workload(workload, workload.config(CONFIG), chip("a100"), SIZES)


@lru_cache
def faster() -> Schedule:
    return match(Climber(), kernel(), VirtualTimer(kernel()), budget=100, seed=0).best
