"""Pre-training: it learns to rank moves, its weights play other kernels, and unfit weights are refused."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from cuasmrl.agents import match, weights
from cuasmrl.agents.policies import RowNetwork
from cuasmrl.agents.ppo import PPO
from cuasmrl.agents.pretraining import Curriculum, Positions, explore, fit, kernels, ranking_loss
from cuasmrl.devices import VirtualTimer
from cuasmrl.errors import CuasmrlError
from cuasmrl.game.features import COLUMNS
from cuasmrl.game.free import JUMPS
from tests.traced_kernels import traced

SMALL = Curriculum(positions=6, climb=3, tries=5, epochs=2, batch=4, width=8)


def made_up(positions: int = 40, rows: int = 12) -> Positions:
    """Moves pay where the first column is high."""
    rng = np.random.default_rng(0)
    seen = rng.random((positions, rows, len(COLUMNS)), np.float32)
    actions = rng.integers(0, rows * JUMPS, (positions, 8))
    gains = np.where(np.take_along_axis(seen[:, :, 0], actions // JUMPS, 1) > 0.7, 0.5, -0.5)
    return Positions("made up", seen, actions, gains.astype(np.float32))


def test_it_learns_to_rank_moves() -> None:
    torch.set_num_threads(1)
    lesson = made_up().telling
    everything = list(range(len(lesson.seen)))
    before = fit([lesson], replace(SMALL, epochs=0))
    after = fit([lesson], replace(SMALL, epochs=30, learning_rate=1e-2))
    with torch.no_grad():
        losses = [float(ranking_loss(network, lesson, everything, SMALL)) for network in (before, after)]
    assert losses[1] < losses[0] - 0.15


def test_it_explores_from_the_compilers_schedule() -> None:
    found = explore(traced("softmax"), SMALL, 0)
    assert found.seen.shape == (6, found.seen.shape[1], len(COLUMNS))
    assert found.actions.shape == found.gains.shape == (6, 5)
    np.testing.assert_array_equal(found.seen[0], found.seen[3])
    again = explore(traced("softmax"), SMALL, 0)
    np.testing.assert_array_equal(found.gains, again.gains)


def test_weights_play_another_kernel(tmp_path: Path) -> None:
    network = fit([explore(traced("vector_add"), SMALL, 0)], SMALL)
    weights.save(tmp_path / "w.safetensors", network, 8, {"kernels": ["vector_add"]})
    kernel = traced("softmax")
    timer = VirtualTimer(kernel, turns=2, seeds=(1,))
    for learns in (False, True):
        agent = PPO(weights=tmp_path / "w.safetensors", width=8, learns=learns, rollout=32)
        assert match(agent, kernel.listing, timer, 40, 0).spent == 40


def test_weights_for_another_game_are_refused(tmp_path: Path) -> None:
    network = RowNetwork(1, len(COLUMNS), JUMPS, 8)
    path = tmp_path / "w.safetensors"
    weights.save(path, network, 8, {})
    about = json.loads(path.with_suffix(".json").read_text())
    path.with_suffix(".json").write_text(json.dumps(about | {"columns": ["other"]}))
    with pytest.raises(CuasmrlError, match="another columns"):
        weights.load(path, network, 8)
    with pytest.raises(CuasmrlError, match="cannot read the weights"):
        weights.load(tmp_path / "none.safetensors", network, 8)


def test_the_weights_that_come_along_fit_this_game() -> None:
    weights.load(weights.DEFAULT, RowNetwork(1, len(COLUMNS), JUMPS, PPO.width), PPO.width)
    assert weights.DEFAULT.stat().st_size < 1 << 20


def test_holding_everything_out_is_refused() -> None:
    from cuasmrl import workloads

    with pytest.raises(CuasmrlError, match="held out"):
        kernels(Curriculum(hold_out=tuple(workloads.names())))
