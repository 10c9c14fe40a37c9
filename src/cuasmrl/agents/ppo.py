"""Proximal policy optimisation: learns, while it plays one kernel, which moves pay."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
import torch
from sb3_contrib import MaskablePPO
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import configure
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv

from cuasmrl.agents import weights
from cuasmrl.agents.policies import PublishedEncoder, RowPolicy
from cuasmrl.game import Clock, FreeGame, Game, PublishedGame
from cuasmrl.game.published import HORIZON

_PATIENCE = 8
"""Steps per evaluation of the budget: most steps cost one, but a player may run in circles for nothing."""


@dataclass(frozen=True)
class PPO:
    """Masked PPO on AssemblyGame-v1, from weights trained on other kernels, climbing from the best so far."""

    name: ClassVar[str] = "ppo"

    weights: Path | None = weights.DEFAULT
    """Where the policy starts from; None: from random weights."""
    learns: bool = True
    """Whether the policy is trained on what it plays; if not, its weights play as they are."""
    width: int = 32
    """Channels of the network."""
    games: int = 1
    """Environments played in turn; they share one clock."""
    rollout: int = 128
    """Steps between updates, of all environments together."""
    batch: int = 32
    """Steps in one gradient step."""
    epochs: int = 4
    """Passes over a rollout."""
    learning_rate: float = 3e-4
    """Of Adam; falls to zero as the budget is spent."""
    discount: float = 0.5
    """What a later reward is worth: small, because in a climb most moves pay at once or never."""
    trace: float = 0.9
    """Lambda of the advantage estimate."""
    clip: float = 0.2
    """How far an update may change the odds of a move."""
    entropy: float = 0.003
    """Reward for staying undecided."""
    value: float = 0.5
    """Weight of the critic's loss."""
    horizon: int = 512
    """Moves in an episode."""
    keep_worse: bool = False
    """Whether moves that make the kernel slower stay on the board."""
    unit: float = 0.1
    """A gain in percent that counts as much; larger ones grow like the logarithm."""
    restart: float = 0.0
    """How often an episode begins at the compiler's schedule and not at the best so far."""
    log_dir: Path | None = field(default=None, compare=False)
    """Where TensorBoard scalars go; changes nothing in play."""

    def play(self, new_game: Callable[[], Game], seed: int) -> None:
        torch.set_num_threads(1)
        games = [self._environment(new_game, seed + k) for k in range(self.games)]
        clock: Clock = games[0].unwrapped.game.clock  # type: ignore[attr-defined]
        model = self.model(games, seed)
        if self.weights is not None:
            weights.load(self.weights, model.policy.mlp_extractor, self.width)
        if self.learns:
            train(model, clock, self.log_dir)
        else:
            watch(model, clock)

    def model(self, games: list[gym.Env[Any, Any]], seed: int) -> MaskablePPO:
        """A learner on environments of equal size."""
        return MaskablePPO(
            RowPolicy,
            vectorised(games),
            learning_rate=lambda left: self.learning_rate * left,
            n_steps=max(1, self.rollout // len(games)),
            batch_size=self.batch,
            n_epochs=self.epochs,
            gamma=self.discount,
            gae_lambda=self.trace,
            clip_range=self.clip,
            ent_coef=self.entropy,
            vf_coef=self.value,
            policy_kwargs={"width": self.width},
            seed=seed,
            device="cpu",
        )

    def _environment(self, new_game: Callable[[], Game], seed: int) -> gym.Env[Any, Any]:
        game = FreeGame(new_game, horizon=self.horizon, keep_worse=self.keep_worse)
        return Lessons(game, self.restart, self.unit, seed)


@dataclass(frozen=True)
class PublishedPPO:
    """The learner of CuAsmRL on AssemblyGame-v0: its network, its settings, one environment, from scratch.

    Unlike the published code it ends episodes where they end and keeps the best schedule of all it visits.
    """

    name: ClassVar[str] = "ppo-published"

    shared: bool = False
    """Whether loads from shared memory move too."""
    log_dir: Path | None = field(default=None, compare=False)
    """Where TensorBoard scalars go; changes nothing in play."""

    def play(self, new_game: Callable[[], Game], seed: int) -> None:
        torch.set_num_threads(1)
        game = PublishedGame(new_game, self.shared)
        environment = gym.wrappers.TimeLimit(game, HORIZON)
        train(self.model(environment, seed), game.game.clock, self.log_dir)

    def model(self, environment: gym.Env[Any, Any], seed: int) -> MaskablePPO:
        return MaskablePPO(
            MaskableActorCriticPolicy,
            vectorised([environment]),
            learning_rate=lambda left: 2.5e-4 * left,
            n_steps=64,
            batch_size=8,
            n_epochs=4,
            gamma=0.99,
            gae_lambda=0.95,
            clip_range=0.2,
            clip_range_vf=0.2,
            ent_coef=0.01,
            vf_coef=0.5,
            max_grad_norm=0.5,
            policy_kwargs={"features_extractor_class": PublishedEncoder, "net_arch": [],
                           "optimizer_kwargs": {"eps": 1e-5}},
            seed=seed,
            device="cpu",
        )  # fmt: skip


class Lessons(gym.Wrapper[Any, Any, Any, Any]):
    """What is learnt from: episodes that begin at the best schedule so far or afresh, and scaled rewards.

    Starting at the best makes far schedules reachable. Most gains are small and a few large: without the
    logarithm one lucky move would drown all others in an update.
    """

    def __init__(self, game: FreeGame, restart: float, unit: float, seed: int) -> None:
        super().__init__(game)
        self.restart = restart
        self.unit = unit
        self.rng = np.random.default_rng(seed)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, Any]:
        clock = self.unwrapped.game.clock  # type: ignore[attr-defined]
        start = clock.original if self.rng.random() < self.restart else clock.best
        return self.env.reset(seed=seed, options={"schedule": start} | (options or {}))

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        seen, reward, terminated, truncated, info = self.env.step(action)
        scaled = math.copysign(math.log1p(abs(float(reward)) / self.unit), float(reward))
        return seen, scaled, terminated, truncated, info


class Ledger(BaseCallback):
    """Ties learning to the clock: the learning rate follows the budget, and the end is its end."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self.clock = clock

    def _on_step(self) -> bool:
        return not self.clock.is_over

    def _on_rollout_end(self) -> None:
        # The learning rate falls with the steps that are left: as many as the rest of the budget will take.
        self.model._total_timesteps = self.num_timesteps * self.clock.budget // max(1, self.clock.spent)
        self.logger.record("game/evaluations", self.clock.spent)
        self.logger.record("game/gain_percent", 100 * self.clock.gain)
        self.logger.record("game/new_schedules", self.clock.spent / max(1, self.num_timesteps))


def vectorised(games: list[gym.Env[Any, Any]]) -> DummyVecEnv:
    """Environments in one process, each reporting the length and return of its episodes."""
    return DummyVecEnv([lambda game=game: Monitor(game) for game in games])  # type: ignore[misc]


def train(model: MaskablePPO, clock: Clock, log_dir: Path | None) -> None:
    """Learn until the budget is spent."""
    model.set_logger(configure(str(log_dir), ["tensorboard"]) if log_dir else configure(None, []))
    model.learn(_PATIENCE * clock.budget, callback=Ledger(clock))


def watch(model: MaskablePPO, clock: Clock) -> None:
    """Play with the policy as it is until the budget is spent."""
    games = model.get_env()
    assert games is not None
    seen = games.reset()
    for _ in range(_PATIENCE * clock.budget):
        if clock.is_over:
            return
        masks = np.stack(games.env_method("action_masks"))
        actions, _ = model.predict(seen, action_masks=masks)  # type: ignore[arg-type]
        seen = games.step(actions)[0]
