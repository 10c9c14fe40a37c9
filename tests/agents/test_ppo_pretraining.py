"""Pre-training: it learns to rank moves, its weights play other kernels, and unfit weights are refused."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from cuasmrl.agents import match, weights
from cuasmrl.agents.lessons import Trials
from cuasmrl.agents.policies import RowNetwork
from cuasmrl.agents.ppo import PPO
from cuasmrl.agents.pretraining import Curriculum, Lesson, explore, fit, study, subjects, worth_loss
from cuasmrl.agents.transfer import transfers
from cuasmrl.errors import CuasmrlError
from cuasmrl.game import Clock, FreeGame, Game
from cuasmrl.game.features import COLUMNS
from cuasmrl.game.free import KINDS
from cuasmrl.gpu.devices import VirtualTimer
from cuasmrl.schedule import Scoreboards
from tests.traced_kernels import traced

SMALL = Curriculum(moves=40, epochs=2, batch=4, width=8)


def made_up(positions: int = 40, rows: int = 12, tries: int = 8) -> Lesson:
    """Moves pay where the first column is high."""
    rng = np.random.default_rng(0)
    seen = rng.random((positions, rows, len(COLUMNS)), np.float32)
    of = np.repeat(np.arange(positions), tries)
    actions = rng.integers(0, rows * KINDS, positions * tries)
    gains = np.where(seen[of, actions // KINDS, 0] > 0.7, 0.5, -0.5)
    return Lesson("made up", Trials(seen, of, actions, gains.astype(np.float32)))


def test_it_learns_what_moves_are_worth() -> None:
    torch.set_num_threads(1)
    lesson = made_up()
    before = fit([lesson], replace(SMALL, epochs=0))
    after = fit([lesson], replace(SMALL, epochs=30, learning_rate=1e-2))
    with torch.no_grad():
        losses = [float(worth_loss(network, lesson.trials)) for network in (before, after)]
    assert losses[1] < losses[0] - 0.15


def test_a_part_of_a_lesson_is_about_the_positions_asked_for() -> None:
    whole = made_up().trials
    part = made_up().part([7, 3])
    np.testing.assert_array_equal(part.seen, whole.seen[[7, 3]])
    np.testing.assert_array_equal(part.actions[part.of == 1], whole.actions[whole.of == 3])
    np.testing.assert_array_equal(part.gains[part.of == 0], whole.gains[whole.of == 7])


def test_it_explores_from_the_compilers_schedule() -> None:
    found, again = (explore(traced("softmax"), SMALL, 0).trials for _ in range(2))
    assert 40 <= len(found.actions) < 160
    assert (np.diff(found.of) >= 0).all()
    assert len(found.seen) > found.of.max()
    kernel = traced("softmax")
    clock = Clock(VirtualTimer(kernel), kernel.original, 1)
    np.testing.assert_array_equal(
        found.seen[0], FreeGame(lambda: Game(kernel.listing, clock, kernel)).reset(seed=0)[0]
    )
    np.testing.assert_array_equal(found.gains, again.gains)


def test_scoreboards_given_out_anew_leave_more_to_explore() -> None:
    kept, reassigned = (
        explore(traced("gemm_leaky_relu"), replace(SMALL, moves=1, scoreboards=how), 0).trials.seen[0]
        for how in Scoreboards
    )
    room = [COLUMNS.index(name) for name in ("room above", "room below")]
    assert (reassigned[:, room] >= kept[:, room]).all()
    assert (reassigned[:, room] > kept[:, room]).any()


def test_a_workload_is_studied_by_name() -> None:
    name, config = subjects(SMALL)[0]
    found = study(name, config, SMALL, 0)
    assert found is not None
    assert found.kernel == f"{name} {config}"
    assert len(found.trials.actions) >= 40


def test_weights_play_another_kernel(tmp_path: Path) -> None:
    network = fit([explore(traced("vector_add"), SMALL, 0)], SMALL)
    weights.save(tmp_path / "w.safetensors", network, 8, {"kernels": ["vector_add"]})
    kernel = traced("softmax")
    timer = VirtualTimer(kernel, iterations=2, seeds=(1,))
    for learns in (False, True):
        agent = PPO(weights=tmp_path / "w.safetensors", width=8, learns=learns, rollout=32)
        assert match(agent, kernel, timer, 40, 0).spent == 40


def test_weights_for_another_game_are_refused(tmp_path: Path) -> None:
    network = RowNetwork(1, KINDS, 8)
    path = tmp_path / "w.safetensors"
    weights.save(path, network, 8, {})
    about = json.loads(path.with_suffix(".json").read_text())
    path.with_suffix(".json").write_text(json.dumps(about | {"columns": ["other"]}))
    with pytest.raises(CuasmrlError, match="another columns"):
        weights.load(path, network, 8)
    with pytest.raises(CuasmrlError, match="cannot read the weights"):
        weights.load(tmp_path / "none.safetensors", network, 8)


def test_the_weights_that_come_along_fit_this_game() -> None:
    weights.load(weights.DEFAULT, RowNetwork(1, KINDS, PPO.width), PPO.width)
    assert weights.DEFAULT.stat().st_size < 1 << 20


def test_transfer_is_measured_on_unseen_workloads_only(tmp_path: Path) -> None:
    path = tmp_path / "w.safetensors"
    weights.save(path, RowNetwork(1, KINDS, PPO.width), PPO.width, {"hold_out": ["vector_add"]})
    (found,) = transfers([traced("vector_add")], path, few=3, many=5)
    assert found.kernel.startswith("vector_add")
    with pytest.raises(CuasmrlError, match="trained on softmax"):
        list(transfers([traced("softmax")], path))


def test_holding_everything_out_is_refused() -> None:
    from cuasmrl import workloads

    with pytest.raises(CuasmrlError, match="held out"):
        subjects(Curriculum(hold_out=tuple(workloads.names())))
