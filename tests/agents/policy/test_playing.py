"""The policy in play: it judges all moves of a position, keeps to the budget and repeats itself."""

import random
from pathlib import Path

import numpy as np
import pytest
import torch

from cuasmrl.agents import match
from cuasmrl.agents.policy import weights
from cuasmrl.agents.policy.advice import Advised, Trust
from cuasmrl.agents.policy.agent import PolicyClimb
from cuasmrl.agents.policy.draws import Draws
from cuasmrl.agents.policy.inference import IMPOSSIBLE
from cuasmrl.agents.policy.network import Network, Shape
from cuasmrl.agents.policy.observation import pairs, rows
from cuasmrl.agents.policy.ranker import Policy
from cuasmrl.agents.proposals import Mix
from cuasmrl.agents.ranking import Float, Int
from cuasmrl.game import Clock, Evaluation, Game
from cuasmrl.gpu.devices import VirtualTimer
from cuasmrl.gpu.profile import Profile
from cuasmrl.schedule import Board, Drag, Scoreboards, play
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


def test_proposals_ahead_of_the_answers_change_nothing(untrained: Path) -> None:
    """Moves that are queued, and what is known of how moves of either kind did, go back with the dice."""
    agent = PolicyClimb(weights=untrained, trust=Trust(drawn=64, tried=8), patience=15)
    ways = []
    for workers in (1, 3):
        device = VirtualTimer(traced("softmax"), iterations=2, seeds=(1,), workers=workers)
        seen = list[Evaluation]()
        match(agent, traced("softmax"), device, 60, 0, None, seen.append)
        ways.append([evaluation.key for evaluation in seen])
    assert ways[0] == ways[1]
    assert len(ways[0]) == 60


class Asked:
    """A ranker that counts how often it is asked."""

    def __init__(self) -> None:
        self.times = 0

    def look(self, board: Board, profile: Profile) -> "Asked":
        self.times += 1
        return self

    def odds(self, instructions: Int, targets: Int) -> Float:
        return np.zeros(len(instructions), np.float32)


def advised(ranker: Asked) -> Advised:
    kernel = traced("softmax")
    game = Game(kernel.listing, Clock(timer(), kernel.original, 1), kernel)
    return Advised(game, random.Random(0), Mix(), ranker, Trust(drawn=64, tried=64, belief=20, memory=50))


def test_it_asks_again_where_a_move_has_helped_and_not_along_a_plateau() -> None:
    ranker = Asked()
    proposals = advised(ranker)

    def play() -> None:
        while proposals.play() != "advised":
            pass

    play()
    assert ranker.times == 1
    for gain, times in ((0.0, 1), (0.01, 2), (0.0, 2), (-0.01, 3)):
        proposals.look(proposals.game.schedule, gain)
        play()
        assert ranker.times == times


@pytest.mark.parametrize("helps", ["advised", "mix"])
def test_moves_of_the_kind_that_helps_are_proposed_more_often(helps: str) -> None:
    proposals = advised(Asked())
    before = proposals.share
    for _ in range(150):
        kind = proposals.play()
        if kind is not None and (kind == "advised") == (helps == "advised"):
            proposals.look(proposals.game.schedule, 0.001)
        proposals.game.back_to(proposals.game.original)
        proposals.look(proposals.game.original, 0.0)
    least = Trust().least
    assert proposals.share > max(before, 0.85) if helps == "advised" else proposals.share < before / 2
    assert least <= proposals.share <= 1 - least
