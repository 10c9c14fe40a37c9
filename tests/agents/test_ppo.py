"""The PPO agents: they keep to the budget, repeat themselves, learn what pays, bootstrap truncated ends."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium import spaces
from stable_baselines3.common.callbacks import BaseCallback

from cuasmrl.agents import Agent, match
from cuasmrl.agents.lessons import Lessons, Memory, Trials, fair_move
from cuasmrl.agents.policies import RowNetwork
from cuasmrl.agents.ppo import PPO, PublishedPPO
from cuasmrl.game import Clock, FreeGame
from cuasmrl.game.features import COLUMNS
from cuasmrl.game.free import KINDS
from cuasmrl.gpu.devices import VirtualTimer
from tests.game.play import certify, new_game
from tests.traced_kernels import traced

SMALL = PPO(weights=None, rollout=32, batch=16, epochs=2, width=8, horizon=64, reviews=1)


def play(agent: Agent, name: str = "softmax", budget: int = 60, seed: int = 0) -> Clock:
    kernel = traced(name)
    return match(agent, kernel, VirtualTimer(kernel, iterations=2, seeds=(1,)), budget, seed)


@pytest.mark.parametrize("learns", [True, False])
def test_the_budget_is_spent_and_the_result_repeats(learns: bool) -> None:
    agent = replace(SMALL, learns=learns)
    first, second = play(agent), play(agent)
    assert first.spent == second.spent == 60
    assert first.best == second.best
    certify("softmax", first.best)
    assert play(agent, seed=1)._times.keys() != first._times.keys()


def test_the_published_agent_plays_the_published_game() -> None:
    # A small kernel, because the published network grows with it; swaps lead to few schedules of it, or none.
    first, second = (play(PublishedPPO(), "softmax", 2) for _ in range(2))
    assert first.spent <= 2
    assert first._times == second._times
    certify("softmax", first.best)


def test_games_share_the_budget() -> None:
    assert play(replace(SMALL, games=3), budget=60).spent == 60


def test_scalars_are_logged_and_change_nothing(tmp_path: Path) -> None:
    logged = play(replace(SMALL, log_dir=tmp_path))
    assert list(tmp_path.glob("events.out.tfevents.*"))
    assert logged.best == play(SMALL).best


def test_a_policy_does_not_depend_on_the_number_of_rows() -> None:
    torch.manual_seed(0)
    small, large = RowNetwork(20, 4, 8), RowNetwork(50, 4, 8)
    large.load_state_dict(small.state_dict())
    table = torch.rand(1, 20, len(COLUMNS))
    padded = torch.cat([table, torch.zeros(1, 30, len(COLUMNS))], dim=1)
    (logits, summary), (more, same) = small(table), large(padded)
    torch.testing.assert_close(logits[:, :80], more[:, :80])
    torch.testing.assert_close(logits[:, -1], more[:, -1])
    torch.testing.assert_close(summary, same)


def test_a_policy_that_knows_nothing_draws_rows_by_the_time_of_their_block() -> None:
    game = FreeGame(new_game("gemm_leaky_relu"))
    seen, _ = game.reset()
    network = RowNetwork(game.rows, KINDS, 8)
    torch.nn.init.zeros_(network.scores.weight)
    legal = game.action_masks()[:-1].reshape(game.rows, KINDS)
    with torch.no_grad():
        logits = network(torch.from_numpy(seen[None]))[0][0, :-1].numpy().reshape(game.rows, KINDS)
    odds = np.where(legal, np.exp(logits), 0.0).sum(axis=1)
    scope = game.game.scope
    weights = dict(zip(scope.movable, scope.weights, strict=True))
    expected = np.array([weights.get(i, 0.0) for i in game._order]) * legal.any(axis=1)
    assert len(set(scope.weights)) > 1
    np.testing.assert_allclose(odds / odds.sum(), expected / expected.sum(), atol=1e-5)


def test_a_frozen_trunk_looks_at_a_position_once() -> None:
    torch.manual_seed(0)
    network = RowNetwork(6, 4, 8)
    tables = torch.rand(2, 6, len(COLUMNS))[[0, 1, 1, 0]]
    before = network(tables)[0]
    network.freeze()
    torch.testing.assert_close(network(tables)[0], before)
    assert len(network._known) == 2
    with torch.no_grad():
        network.scores.bias += 1
    torch.testing.assert_close(network(tables)[0][:, :-1], before[:, :-1] + 1)


def test_episodes_begin_at_the_best_schedule_or_aside_of_it() -> None:
    game = FreeGame(new_game("softmax"), keep_worse=False, horizon=1000)
    lessons = Lessons(game, 0.1, 50, 2, 0)
    lessons.reset()
    rng = np.random.default_rng(0)
    while game.game.clock.best == game.game.original:
        lessons.step(rng.choice(np.flatnonzero(game.action_masks()[:-1])))
    lessons.reset()
    assert game.game.schedule == game.game.clock.best
    is_stuck = False
    while not is_stuck:
        is_stuck = lessons.step(rng.choice(np.flatnonzero(game.action_masks()[:-1])))[3]
    lessons.reset()
    assert game.game.schedule != game.game.clock.best


def test_of_equals_the_last_is_the_best() -> None:
    game = FreeGame(new_game("gemm_leaky_relu"), keep_worse=False, horizon=1000)
    lessons = Lessons(game, 0.1, 1000, 2, 0)
    lessons.reset(seed=0)
    rng = np.random.default_rng(0)
    clock = game.game.clock
    while clock.best in (game.game.original, game.schedule) or clock.time(game.schedule) > clock.best_time:
        lessons.step(fair_move(game, rng))
    last = game.schedule
    lessons.reset()
    assert game.schedule == last


def test_a_fair_move_is_of_any_row_that_can_move() -> None:
    game = FreeGame(new_game("gemm_leaky_relu"))
    game.reset(seed=0)
    rng = np.random.default_rng(0)
    moves = [fair_move(game, rng) for _ in range(4000)]
    assert game.action_masks()[moves].all()
    rows = np.array(moves) // KINDS
    legal = game.action_masks()[:-1].reshape(game.rows, -1).sum(axis=1)
    hot = game.observation[:, COLUMNS.index("weight")] == 1
    few, many = (hot & (legal > 0) & (legal <= 8)), (hot & (legal > 8))
    drawn = [np.isin(rows, np.flatnonzero(some)).sum() / some.sum() for some in (few, many)]
    assert drawn[0] == pytest.approx(drawn[1], rel=0.2)


def test_new_lows_are_rewarded_by_their_logarithm_and_all_moves_remembered() -> None:
    game = FreeGame(new_game("softmax"), horizon=1000)
    lessons = Lessons(game, 0.1, 400, 2, 0)
    lowest = lessons.reset()[1]["time"]
    rng = np.random.default_rng(0)
    for _ in range(20):
        _, reward, _, _, info = lessons.step(rng.choice(np.flatnonzero(game.action_masks()[:-1])))
        gain = max(0.0, 100 * (lowest - info["time"]) / game.game.clock.start)
        assert reward == pytest.approx(np.log1p(gain / 0.1))
        lowest = min(lowest, info["time"])
    assert len(lessons.memory.actions) == 20


def test_the_memory_gives_moves_with_their_positions() -> None:
    memory = Memory()
    for number in range(3):
        memory.see(np.full((2, 2), number, np.float32))
        for action in range(number):
            memory.note(10 * number + action, float(number))
    found = memory.take()
    assert len(found.actions) == 3
    for of, action, gain in zip(found.of, found.actions, found.gains, strict=True):
        assert found.seen[of, 0, 0] == action // 10 == gain
    memory.note(25, 1.0)
    assert memory.take().seen[0, 0, 0] == 2


def test_looking_back_teaches_what_helped() -> None:
    torch.manual_seed(0)
    bandit = Bandit(32)
    model = replace(SMALL, tether=0.0, reviews=1000).model([bandit], 0)
    network = model.policy.mlp_extractor
    network.freeze()
    model._start = [p.detach().clone() for p in network.scores.parameters()]
    actions = np.arange(16)
    gains = (actions == 6).astype(np.float32)
    model._remember(network, [Trials(bandit.rows[None], np.zeros(16, np.int64), actions, gains)])
    seen = torch.from_numpy(bandit.rows[None])
    with torch.no_grad():
        before = network(seen)[0][0, :16]
    model._look_back(network.scores)
    with torch.no_grad():
        rise = network(seen)[0][0, :16] - before
    assert rise[6] > rise[actions != 6].mean() + 1


class Bandit(gym.Env[Any, Any]):
    """Row 3 pays with its first jump, nothing else does."""

    observation_space = spaces.Box(0.0, 1.0, (8, len(COLUMNS)), np.float32)
    action_space = spaces.Discrete(8 * 2 + 1)

    def __init__(self, horizon: int) -> None:
        self.horizon, self.steps = horizon, 0
        self.rows = np.random.default_rng(0).random((8, len(COLUMNS))).astype(np.float32)
        self.rows[:, [COLUMNS.index("weight"), COLUMNS.index("jumps")]] = 1.0

    def reset(self, **_: Any) -> tuple[Any, dict[str, Any]]:
        self.steps = 0
        return self.rows, {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.steps += 1
        return self.rows, float(action == 6), False, self.steps >= self.horizon, {}

    def action_masks(self) -> np.ndarray[Any, Any]:
        mask = np.ones(17, bool)
        mask[[0, 16]] = False
        return mask


def test_it_learns_what_pays() -> None:
    torch.set_num_threads(1)
    bandit = Bandit(32)
    model = replace(SMALL, learning_rate=1e-2, epochs=4, reviews=0).model([bandit], 0)
    model.learn(800)
    action, _ = model.predict(bandit.rows, deterministic=True, action_masks=bandit.action_masks())
    assert action == 6


class Returns(BaseCallback):
    """Notes what the learner makes of the ends of episodes."""

    def _on_rollout_end(self) -> None:
        buffer = self.locals["rollout_buffer"]
        self.rewards, self.values = buffer.rewards.copy(), buffer.values.copy()

    def _on_step(self) -> bool:
        return True


def test_truncated_episodes_are_bootstrapped_and_ended_ones_not() -> None:
    class Ending(Bandit):
        def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
            seen, reward, _, end, info = super().step(action)
            return seen, reward, end, False, info

    for kind, is_bootstrapped in ((Bandit, True), (Ending, False)):
        model = replace(SMALL, rollout=8, batch=8, learning_rate=0.0, reviews=0).model([kind(4)], 0)
        with torch.no_grad():
            model.policy.value_net.bias.fill_(10.0)
        returns = Returns()
        model.learn(8, callback=returns)
        plain = np.isin(returns.rewards, (0.0, 1.0))
        assert plain[[0, 1, 2, 4, 5, 6]].all()
        assert plain[[3, 7]].any() != is_bootstrapped
        if is_bootstrapped:
            extra = returns.rewards[3, 0] - SMALL.discount * returns.values[3, 0]
            assert extra == pytest.approx(0.0, abs=1e-4) or extra == pytest.approx(1.0, abs=1e-4)
