"""The policy in play: it judges all moves of a position, keeps to the budget and repeats itself."""

from pathlib import Path

import numpy as np
import pytest
import torch

from cuasmrl.agents import match
from cuasmrl.agents.policy import weights
from cuasmrl.agents.policy.agent import PolicyClimb
from cuasmrl.agents.policy.draws import Draws
from cuasmrl.agents.policy.inference import IMPOSSIBLE
from cuasmrl.agents.policy.network import Network, Shape
from cuasmrl.agents.policy.observation import pairs, rows
from cuasmrl.agents.policy.ranker import Policy
from cuasmrl.game import Clock, Game
from cuasmrl.gpu.devices import VirtualTimer
from cuasmrl.schedule import Drag, Scoreboards, play
from tests.game.play import certify
from tests.traced_kernels import traced


@pytest.fixture(scope="module")
def untrained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.manual_seed(0)
    network = Network(Shape(len(rows.COLUMNS), len(pairs.COLUMNS), 8, 1, 8))
    path = tmp_path_factory.mktemp("weights") / "w.safetensors"
    weights.save(path, {name: tensor.numpy() for name, tensor in network.state_dict().items()}, {})
    return path


def timer() -> VirtualTimer:
    return VirtualTimer(traced("softmax"), iterations=2, seeds=(1,))


@pytest.mark.parametrize("how", list(Scoreboards))
def test_the_budget_is_spent_and_the_result_repeats(untrained: Path, how: Scoreboards) -> None:
    agent = PolicyClimb(weights=untrained)
    first, second = (match(agent, traced("softmax"), timer(), 40, 0, scoreboards=how) for _ in range(2))
    assert first.spent == second.spent == 40
    assert first.best == second.best
    certify("softmax", first.best)


def test_all_drawn_moves_are_judged_and_only_legal_ones_have_odds(untrained: Path) -> None:
    kernel = traced("softmax")
    game = Game(kernel.listing, Clock(timer(), kernel.original, 1), kernel)
    here, profile = game.schedule, game.profile(game.original)
    drawn = Draws(game, profile).draw(200, np.random.default_rng(0))
    odds = Policy.load(untrained).look(game.board, profile).odds(*drawn)
    assert len(set(zip(drawn.instructions.tolist(), drawn.targets.tolist(), strict=True))) == len(odds)
    legal = []
    for i, to in zip(drawn.instructions.tolist(), drawn.targets.tolist(), strict=True):
        legal.append(play(game.board, Drag(i, to)))
        game.back_to(here)
    assert 0.2 < np.mean(legal) <= 1
    np.testing.assert_array_equal(odds > IMPOSSIBLE, legal)
