"""Networks of the PPO agents: the published one for AssemblyGame-v0, one for kernels of any size for -v1."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import torch
from gymnasium import spaces
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from torch import nn

from cuasmrl.game.features import COLUMNS

DILATIONS = (1, 4, 16)
"""Of the convolutions over the order of instructions: together they see 42 positions to either side."""
_KERNEL = 5
_REMEMBERED = 256
"""Positions, each as large as the kernel."""
_LEAST = 1e-3
"""Of weights and counts of jumps; where there is none, nothing is legal."""
_SELDOM = -4.0
"""Logit of stopping at the start: who stops at once learns nothing."""


class PublishedEncoder(BaseFeaturesExtractor):
    """The convolutions of CuAsmRL over the table of instructions; their output grows with the kernel."""

    def __init__(self, observation_space: spaces.Box, features_dim: int = 512) -> None:
        super().__init__(observation_space, features_dim)
        convolutions = nn.Sequential(
            nn.Conv2d(1, 32, (5, 3), stride=(2, 1), padding=1), nn.ReLU(),
            nn.Conv2d(32, 64, 4, stride=2, padding=(0, 1)), nn.ReLU(),
            nn.Conv2d(64, 64, 3), nn.ReLU(), nn.Flatten(),
        )  # fmt: skip
        with torch.no_grad():
            size = convolutions(torch.zeros(1, 1, *observation_space.shape)).shape[1]
        self.layers = nn.Sequential(convolutions, nn.Linear(size, features_dim), nn.ReLU())

    def forward(self, observations: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.layers(observations.unsqueeze(1))
        return found


class RowNetwork(nn.Module):  # type: ignore[misc]
    """Scores every jump of every row, and sums the state up. No weight depends on the number of rows.

    A score is the log odds that a jump helps. Without any, a policy draws a row by the time of its block, and
    then one of its legal jumps; with them, it prefers jumps by these odds to the power of `sharpness`.
    """

    def __init__(self, rows: int, jumps: int, width: int, sharpness: float = 1.0) -> None:
        super().__init__()
        self.sharpness = sharpness
        self.latent_dim_pi = rows * jumps + 1
        self.latent_dim_vf = 2 * width
        self.encoder = nn.Linear(len(COLUMNS), width)
        self.convolutions = nn.ModuleList(
            nn.Conv1d(width, width, _KERNEL, padding=_KERNEL // 2 * d, dilation=d) for d in DILATIONS
        )
        self.context = nn.Linear(2 * width, width)
        self.scores = nn.Linear(width, jumps)
        self.stop = nn.Linear(2 * width, 1)
        for head in (self.scores, self.stop):
            nn.init.orthogonal_(head.weight, 0.01)
            nn.init.zeros_(head.bias)
        nn.init.constant_(self.stop.bias, _SELDOM)
        self._known: OrderedDict[bytes, tuple[torch.Tensor, torch.Tensor]] = OrderedDict()

    @property
    def trunk(self) -> tuple[nn.Module, ...]:
        """All but what reads scores, stop and value off."""
        return self.encoder, self.convolutions, self.context

    @property
    def is_frozen(self) -> bool:
        return not self.encoder.weight.requires_grad

    def freeze(self) -> None:
        """Learn only to read off from now on: then a state is looked at once and for all."""
        for part in self.trunk:
            part.requires_grad_(False)

    def look(self, features: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """What is made of each row, and a summary of the state."""
        table = features.view(len(features), -1, len(COLUMNS))
        is_row = table.any(dim=2, keepdim=True)
        rows = torch.relu(self.encoder(table)) * is_row
        for convolution in self.convolutions:
            near = convolution(rows.transpose(1, 2)).transpose(1, 2)
            rows = (rows + torch.relu(near)) * is_row
        count = is_row.sum(dim=1).clamp(min=1)
        summary = torch.cat([rows.sum(dim=1) / count, rows.amax(dim=1)], dim=1)
        return torch.relu(rows + self.context(summary).unsqueeze(1)), summary

    def recall(self, features: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """The same by a frozen trunk: most moves are taken back, so most states come up many times."""
        found = []
        for row in features:
            key = row.numpy().tobytes()
            if key not in self._known:
                self._known[key] = self.look(row[None])
                if len(self._known) > _REMEMBERED:
                    self._known.popitem(last=False)
            found.append(self._known[key])
        rows, summaries = zip(*found, strict=True)
        return torch.cat(rows), torch.cat(summaries)

    def forward(self, features: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Logits of all actions, and the summary that the value is read from."""
        rows, summary = self.recall(features) if self.is_frozen else self.look(features)
        table = features.view(len(features), -1, len(COLUMNS))
        preferences = _fair(table) + self.sharpness * self.scores(rows)
        return torch.cat([preferences.flatten(1), self.stop(summary)], dim=1), summary

    def odds(self, features: torch.Tensor) -> torch.Tensor:
        """Log odds that each jump helps, row by row."""
        found: torch.Tensor = self.scores(self.look(features)[0])
        return found.flatten(1)

    def forward_actor(self, features: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self(features)[0]
        return logits

    def forward_critic(self, features: torch.Tensor) -> torch.Tensor:
        summary: torch.Tensor = self(features)[1]
        return summary


def _fair(table: torch.Tensor) -> torch.Tensor:
    """Log odds of each jump of a row, if rows are drawn by the time of their block."""
    weight, jumps = (table[:, :, COLUMNS.index(name)].clamp(min=_LEAST) for name in ("weight", "jumps"))
    return (weight / jumps).log().unsqueeze(2)


class RowPolicy(MaskableActorCriticPolicy):
    """Actor and critic on one `RowNetwork`."""

    def __init__(self, *args: Any, width: int = 32, sharpness: float = 1.0, **settings: Any) -> None:
        self.width = width
        self.sharpness = sharpness
        super().__init__(*args, **settings)

    def _build(self, lr_schedule: Any) -> None:
        rows = (self.observation_space.shape or (0,))[0]
        assert isinstance(self.action_space, spaces.Discrete)
        jumps = (int(self.action_space.n) - 1) // rows
        self.mlp_extractor = RowNetwork(rows, jumps, self.width, self.sharpness)
        self.action_net = nn.Identity()
        self.value_net = nn.Linear(self.mlp_extractor.latent_dim_vf, 1)
        self.optimizer = self.optimizer_class(self.parameters(), lr=lr_schedule(1), **self.optimizer_kwargs)
