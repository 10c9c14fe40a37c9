"""Hill climbing by a policy: what is tried next is drawn by the odds that it helps."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from cuasmrl.agents.greedy import climb
from cuasmrl.agents.policy import weights
from cuasmrl.agents.policy.advice import Advised, Trust
from cuasmrl.agents.policy.ranker import Policy
from cuasmrl.agents.proposals import Mix, Walk
from cuasmrl.game import Game


@dataclass(frozen=True)
class PolicyClimb:
    """As `greedy`, but most moves are judged by a policy trained on other kernels before one is timed."""

    name: ClassVar[str] = "policy"

    weights: Path = weights.DEFAULT
    """Of the policy."""
    trust: Trust = field(default_factory=Trust)
    """How far it is followed."""
    patience: int = 400
    """Evaluations without a gain after which it steps aside."""
    aside: int = 4
    """Moves of such a step."""
    lag: int = 0
    """Moves that are proposed before the answer about the one before them is taken."""
    mix: Mix = field(default_factory=Mix)
    """The moves that nobody judges."""

    def play(self, new_game: Callable[[], Game], seed: int) -> None:
        policy = Policy.load(self.weights)
        rng = random.Random(seed)
        walk = Walk(new_game(), rng, self.mix)
        walk.proposals = Advised(walk.game, rng, self.mix, policy, self.trust)
        climb(walk, self.patience, self.aside, self.lag)
