"""Proximal policy optimisation: learns, while it plays one kernel, which moves pay."""

from __future__ import annotations

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
from torch.nn.functional import binary_cross_entropy_with_logits

from cuasmrl.agents import weights
from cuasmrl.agents.lessons import Lessons, Trials, worth
from cuasmrl.agents.policies import PublishedEncoder, RowNetwork, RowPolicy
from cuasmrl.game import Clock, FreeGame, Game, PublishedGame
from cuasmrl.game.published import HORIZON

_LOOK_BACK_RATE = 0.01
"""Of Adam when looking back."""
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
    batch: int = 64
    """Steps in one gradient step."""
    epochs: int = 2
    """Passes over a rollout."""
    learning_rate: float = 3e-4
    """Of Adam; falls to zero as the budget is spent."""
    discount: float = 0.5
    """What a later reward is worth: small, because in a climb most moves pay at once or never."""
    trace: float = 0.9
    """Lambda of the advantage estimate."""
    clip: float = 0.2
    """How far an update may change the odds of a move."""
    entropy: float = 0.01
    """Reward for staying undecided."""
    value: float = 0.5
    """Weight of the critic's loss."""
    horizon: int = 2000
    """Moves in an episode."""
    keep_worse: bool = False
    """Whether moves that make the kernel slower stay on the board."""
    leeway: float = 0.05
    """Percent of the start by which a climb may get slower than its best."""
    unit: float = 0.1
    """A gain in percent that counts as much; larger ones grow like the logarithm."""
    patience: int = 400
    """Evaluations without a gain after which an episode begins a few moves aside of the best."""
    aside: int = 4
    """Random moves of such a step."""
    sharpness: float = 1.5
    """Moves are preferred by the odds that they help to this power."""
    reviews: int = 5
    """Gradient steps after each update on the worth of all moves tried so far."""
    tether: float = 10.0
    """How strongly these are held to the weights that play began with."""
    log_dir: Path | None = field(default=None, compare=False)
    """Where TensorBoard scalars go; changes nothing in play."""

    def play(self, new_game: Callable[[], Game], seed: int) -> None:
        torch.set_num_threads(1)
        games = [self._environment(new_game, seed + k) for k in range(self.games)]
        clock: Clock = games[0].unwrapped.game.clock  # type: ignore[attr-defined]
        model = self.model(games, seed)
        if self.weights is not None:
            weights.load(self.weights, model.policy.mlp_extractor, self.width)
            model.policy.mlp_extractor.freeze()
        if self.learns:
            train(model, clock, self.log_dir)
        else:
            watch(model, clock)

    def model(self, games: list[gym.Env[Any, Any]], seed: int) -> Learner:
        """A learner on environments of equal size."""
        return Learner(
            RowPolicy,
            vectorised(games),
            reviews=self.reviews,
            tether=self.tether,
            learning_rate=lambda left: self.learning_rate * left,
            n_steps=max(1, self.rollout // len(games)),
            batch_size=self.batch,
            n_epochs=self.epochs,
            gamma=self.discount,
            gae_lambda=self.trace,
            clip_range=self.clip,
            ent_coef=self.entropy,
            vf_coef=self.value,
            policy_kwargs={"width": self.width, "sharpness": self.sharpness},
            seed=seed,
            device="cpu",
        )

    def _environment(self, new_game: Callable[[], Game], seed: int) -> gym.Env[Any, Any]:
        game = FreeGame(new_game, horizon=self.horizon, keep_worse=self.keep_worse, leeway=self.leeway)
        return Lessons(game, self.unit, self.patience, self.aside, seed)


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
                           # The network has tens of millions of weights: unfused, Adam takes longest.
                           "optimizer_kwargs": {"eps": 1e-5, "fused": True}},
            seed=seed,
            device="cpu",
        )  # fmt: skip


class Learner(MaskablePPO):
    """Masked PPO that after each update looks back at all moves tried so far, as pre-training does.

    A gain is rare: an update soon forgets it, a look back does not.
    """

    def __init__(self, *args: Any, reviews: int = 0, tether: float = 0.0, **settings: Any) -> None:
        self.reviews = reviews
        self.tether = tether
        self._tried: list[tuple[torch.Tensor, torch.Tensor, torch.Tensor]] = []
        self._start: list[torch.Tensor] = []
        super().__init__(*args, **settings)

    def train(self) -> None:
        network = self.policy.mlp_extractor
        if not self._start:
            self._start = [p.detach().clone() for p in network.scores.parameters()]
        super().train()
        if self.reviews:
            lessons = [memory.take() for memory in self.env.get_attr("memory")]  # type: ignore[union-attr]
            # What a network that still changes makes of a row would be out of date.
            if network.is_frozen:
                self._remember(network, lessons)
                self._look_back(network.scores)

    def _remember(self, network: RowNetwork, lessons: list[Trials]) -> None:
        """What the network makes of the rows that moved is all that scores depend on."""
        for trials in lessons:
            with torch.no_grad():
                rows = network.recall(torch.from_numpy(trials.seen))[0]
            row, jump = np.divmod(trials.actions, network.scores.out_features)
            gains = torch.from_numpy(trials.gains)
            self._tried.append((rows[trials.of, row], torch.from_numpy(jump), worth(gains)))

    def _look_back(self, head: torch.nn.Linear) -> None:
        """Fit the scores to what all moves were worth, tied to where they began."""
        rows, jumps, found = (torch.cat(part) for part in zip(*self._tried, strict=True))
        optimizer = torch.optim.Adam(head.parameters(), lr=_LOOK_BACK_RATE)
        for _ in range(self.reviews):
            scores = (rows * head.weight[jumps]).sum(dim=1) + head.bias[jumps]
            loss = binary_cross_entropy_with_logits(scores, found, reduction="sum")
            for now, start in zip(head.parameters(), self._start, strict=True):
                loss = loss + self.tether / 2 * ((now - start) ** 2).sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


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
