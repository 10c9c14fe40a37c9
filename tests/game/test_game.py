"""What players see of the machine: the model of the kernel, and of the device nothing but times."""

import random
from collections.abc import Sequence
from typing import Any

import pytest

from cuasmrl.agents import AGENTS, match
from cuasmrl.game import Clock, FreeGame, Game
from cuasmrl.gpu.devices import Eager, Rival, VirtualTimer
from cuasmrl.gpu.profile import replayed
from cuasmrl.schedule import Schedule
from tests.gpu.devices.fake_driver import Scene
from tests.gpu.devices.test_cuda import timer_on
from tests.traced_kernels import traced

SEARCHES = ("random", "greedy", "anneal", "evolve", "list")


class OnlyTimes:
    """A timer that answers nothing but how long schedules take."""

    def __init__(self, name: str) -> None:
        self._timer = VirtualTimer(traced(name), iterations=2, seeds=(1,))

    def time(self, schedule: Schedule, rival: Rival | None = None) -> float:
        return self._timer.time(schedule, rival)

    def times(self, schedules: Sequence[Schedule], rival: Rival | None = None) -> list[float]:
        return self._timer.times(schedules, rival)

    def __getattr__(self, name: str) -> Any:
        if hasattr(Eager, name):
            raise AttributeError(name)  # a device need not look ahead
        raise AssertionError(f"a player asked the device for {name}")


@pytest.mark.parametrize("name", SEARCHES)
def test_agents_ask_a_device_for_nothing_but_times(name: str) -> None:
    kernel = traced("gemm_leaky_relu")
    timer: Any = OnlyTimes("gemm_leaky_relu")
    assert match(AGENTS.named(name), kernel, timer, 60, seed=0).spent == 60


def test_the_view_of_the_free_game_asks_for_nothing_but_times() -> None:
    timer: Any = OnlyTimes("softmax")
    clock = Clock(timer, traced("softmax").original, 5)
    env = FreeGame(lambda: Game(traced("softmax").listing, clock, traced("softmax")))
    env.reset(seed=0)
    env.step(env.action_masks().argmax())


@pytest.mark.parametrize("is_traced", [True, False])
def test_play_on_a_gpu_covers_the_main_loop(is_traced: bool) -> None:
    kernel = traced("softmax")
    timer = timer_on(Scene(time=40.0))
    try:
        game = Game(kernel.listing, Clock(timer, kernel.original, 5), kernel if is_traced else None)
    finally:
        timer.close()
    spent = replayed(kernel.model, kernel.original, 1).spent
    hottest = max(game.board.blocks, key=lambda block: spent[block.start : block.end].sum())
    assert hottest in game.scope.blocks
    drawn = [game.scope.draw(random.Random(seed)) for seed in range(50)]
    assert sum(hottest.start <= i < hottest.end for i in drawn) > 10
