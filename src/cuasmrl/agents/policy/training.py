"""Fitting the network to labelled moves, with checkpoints to go on from as if it had never stopped."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch.nn.functional import binary_cross_entropy_with_logits, smooth_l1_loss

from cuasmrl.agents.policy.network import Network, Shape
from cuasmrl.agents.policy.observation import pairs, rows
from cuasmrl.agents.policy.observation.facts import Float
from cuasmrl.agents.policy.scenes import Scene, batch_of

_EPOCHS = 1 << 20
_RARE = -3.0
"""Log odds that a move helps, before anything is known."""


@dataclass(frozen=True)
class Course:
    """How a network is fitted."""

    width: int = 48
    """Channels of an instruction."""
    rounds: int = 2
    """How often it is told of its neighbours."""
    head: int = 64
    """Channels of a move."""
    dropout: float = 0.2
    """Share of channels that are left out in a step."""
    gains: float = 0.5
    """Weight of the error of the gains; the rest of the loss is the cross entropy of the odds."""
    unit: float = 0.1
    """A gain in percent that counts as much; larger ones grow like the logarithm."""
    epochs: int = 6
    """Passes over all scenes."""
    batch: int = 24
    """Scenes in one gradient step."""
    learning_rate: float = 2e-3
    """Of AdamW; rises for a short while, then falls to zero."""
    weight_decay: float = 0.1
    """Pulls weights to zero."""
    warm_up: float = 0.1
    """Share of all steps in which the learning rate rises."""
    seed: int = 0
    """Of the first weights and of the order of the scenes."""


@dataclass(frozen=True)
class Progress:
    """After an epoch."""

    epoch: int
    loss: float
    """Mean of the epoch."""
    learning_rate: float
    """At its end."""


def fit(
    scenes: Sequence[Scene],
    course: Course,
    checkpoint: Path | None = None,
    report: Callable[[Progress], None] = lambda _: None,
) -> Network:
    """A network that tells which moves help; goes on from the checkpoint if there is one."""
    torch.manual_seed(course.seed)
    shape = Shape(
        len(rows.COLUMNS), len(pairs.COLUMNS), course.width, course.rounds, course.head, course.dropout
    )
    network = Network(shape)
    torch.nn.init.constant_(network.odds.bias, _RARE)
    _scale(network, scenes)
    learning = [p for p in network.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(learning, course.learning_rate, weight_decay=course.weight_decay)
    steps = course.epochs * -(-len(scenes) // course.batch)
    pace = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, course.learning_rate, max(2, steps), pct_start=course.warm_up
    )
    first = 0
    if checkpoint is not None and checkpoint.is_file():
        state = torch.load(checkpoint, weights_only=True)
        network.load_state_dict(state["network"])
        optimizer.load_state_dict(state["optimizer"])
        pace.load_state_dict(state["pace"])
        first = state["epoch"]
    for epoch in range(first, course.epochs):
        # What is left out in a step depends on the epoch only, wherever training began.
        torch.manual_seed(_EPOCHS * course.seed + epoch + 1)
        total = count = 0.0
        for chosen in _batches(scenes, course.batch, random.Random(f"{course.seed} {epoch}")):
            loss = loss_of(network, chosen, course)
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(learning, 1.0)
            optimizer.step()
            pace.step()
            total, count = total + loss.item(), count + 1
        if checkpoint is not None:
            _keep(checkpoint, network, optimizer, pace, epoch + 1)
        report(Progress(epoch + 1, total / max(1.0, count), pace.get_last_lr()[0]))
    return network


def loss_of(network: Network, scenes: Sequence[Scene], course: Course) -> torch.Tensor:
    """Cross entropy between odds and whether moves helped, and the error of the gains."""
    odds, gains = network(batch_of(scenes))
    helps = torch.from_numpy(np.concatenate([scene.helps for scene in scenes]))
    wanted = torch.from_numpy(np.concatenate([scene.gains for scene in scenes]))
    off: torch.Tensor = smooth_l1_loss(gains, torch.asinh(wanted / course.unit))
    return binary_cross_entropy_with_logits(odds, helps) + course.gains * off


def _batches(scenes: Sequence[Scene], size: int, rng: random.Random) -> Iterator[list[Scene]]:
    order = rng.sample(range(len(scenes)), len(scenes))
    for k in range(0, len(order), size):
        yield [scenes[n] for n in order[k : k + size]]


def _scale(network: Network, scenes: Sequence[Scene]) -> None:
    """Every column gets mean 0 and deviation 1, but those that hardly vary are not blown up."""
    for name in ("row", "pair"):
        values = np.concatenate([getattr(scene, f"{name}s") for scene in scenes]).astype(np.float32)
        mean, scale = _moments(values)
        getattr(network, f"{name}_mean").data[:] = torch.from_numpy(mean)
        getattr(network, f"{name}_scale").data[:] = torch.from_numpy(scale)


def _moments(values: Float) -> tuple[Float, Float]:
    deviation = values.std(axis=0, dtype=np.float64)
    scale = 1 / np.maximum(deviation, 0.05)
    return values.mean(axis=0, dtype=np.float64).astype(np.float32), scale.astype(np.float32)


def _keep(
    path: Path, network: Network, optimizer: torch.optim.Optimizer,
    pace: torch.optim.lr_scheduler.LRScheduler, epoch: int,
) -> None:  # fmt: skip
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    state = {"network": network.state_dict(), "optimizer": optimizer.state_dict(),
             "pace": pace.state_dict(), "epoch": epoch}  # fmt: skip
    torch.save(state, partial)
    partial.replace(path)
