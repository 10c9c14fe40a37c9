"""The network, for training: rows of a block and of moves in it -> log odds that each move helps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import nn

from cuasmrl.agents.policy.layout import NEAR


@dataclass(frozen=True)
class Shape:
    """How large a network is."""

    rows: int
    """Columns of instructions."""
    pairs: int
    """Columns of moves."""
    width: int = 48
    """Channels of an instruction."""
    rounds: int = 2
    """How often it is told of its neighbours in the order and of its dependences."""
    head: int = 64
    """Channels of a move."""
    dropout: float = 0.0
    """Share of channels that are left out while the network is fitted."""


class Batch(NamedTuple):
    """Blocks laid end to end; instructions, dependences and moves are counted through."""

    rows: torch.Tensor
    near: torch.Tensor
    """Of each instruction those at the positions `NEAR`; itself where there is none."""
    before: torch.Tensor
    """Dependences: who has to come first,"""
    behind: torch.Tensor
    """and who has to stay behind it."""
    moves: torch.Tensor
    """The instruction of each move, the one above its destination and the one below."""
    pairs: torch.Tensor


class Network(nn.Module):  # type: ignore[misc]
    """Two parts: instructions learn of their surroundings, then each move is judged on its own."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        width, head = shape.width, shape.head
        self.row_mean = nn.Parameter(torch.zeros(shape.rows), requires_grad=False)
        self.row_scale = nn.Parameter(torch.ones(shape.rows), requires_grad=False)
        self.pair_mean = nn.Parameter(torch.zeros(shape.pairs), requires_grad=False)
        self.pair_scale = nn.Parameter(torch.ones(shape.pairs), requires_grad=False)
        self.encode = nn.Linear(shape.rows, width)
        self.rounds = nn.ModuleList(nn.Linear((3 + len(NEAR)) * width, width) for _ in range(shape.rounds))
        self.place = nn.Linear(3 * width, head, bias=False)
        self.change = nn.Linear(shape.pairs, head)
        self.judge = nn.Linear(head, head)
        self.odds = nn.Linear(head, 1)
        self.gain = nn.Linear(head, 1)
        """Only asked while the network is fitted: how much a move brings says more than whether it helps."""
        self.dropout = nn.Dropout(shape.dropout)

    def look(self, batch: Batch) -> torch.Tensor:
        """What is made of each instruction."""
        seen = torch.relu(self.encode((batch.rows - self.row_mean) * self.row_scale))
        for layer in self.rounds:
            around = seen[batch.near].flatten(1)
            before = _mean(seen, batch.before, batch.behind)
            behind = _mean(seen, batch.behind, batch.before)
            seen = seen + torch.relu(layer(torch.cat([seen, around, before, behind], dim=1)))
        return seen

    def forward(self, batch: Batch) -> tuple[torch.Tensor, torch.Tensor]:
        """Log odds that moves help, and what they bring."""
        places = self.dropout(self.look(batch)[batch.moves].flatten(1))
        pairs = (batch.pairs - self.pair_mean) * self.pair_scale
        found = torch.relu(self.place(places) + self.change(pairs))
        found = self.dropout(torch.relu(self.judge(found)) + found)
        return self.odds(found).squeeze(1), self.gain(found).squeeze(1)


def _mean(seen: torch.Tensor, of: torch.Tensor, to: torch.Tensor) -> torch.Tensor:
    """For each instruction the mean over those that it is tied to; zero for none."""
    total = torch.zeros_like(seen).index_add_(0, to, seen[of])
    count = torch.zeros(len(seen)).index_add_(0, to, torch.ones(len(to)))
    return total / count.clamp(min=1).unsqueeze(1)
