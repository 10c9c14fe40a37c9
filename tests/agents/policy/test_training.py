"""Training: it learns what pays, goes on from a checkpoint as if never stopped, and NumPy agrees."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from cuasmrl.agents.policy import weights
from cuasmrl.agents.policy.inference import Judge
from cuasmrl.agents.policy.lessons import Plan, Position, is_help, load, positions_of, save
from cuasmrl.agents.policy.network import Network
from cuasmrl.agents.policy.observation import pairs
from cuasmrl.agents.policy.observation.facts import Facts
from cuasmrl.agents.policy.observation.position import stand_of
from cuasmrl.agents.policy.scenes import Scene, batch_of, scenes_of
from cuasmrl.agents.policy.training import Course, Progress, fit, loss_of
from cuasmrl.errors import CuasmrlError
from cuasmrl.schedule import Board, Schedule, Scoreboards
from tests.traced_kernels import traced

SMALL = Course(width=8, head=8, epochs=3, batch=2)
NAME = "vector_add"


@pytest.fixture(scope="module")
def positions() -> list[Position]:
    return list(positions_of(traced(NAME), Plan(stops=(0, 10, 20), moves=24), 1, Scoreboards.KEPT))


@pytest.fixture(scope="module")
def scenes(positions: list[Position]) -> list[Scene]:
    """As seen in the lessons, but moves help where they go up."""
    found = scenes_of(Board(traced(NAME).listing), positions)
    up = pairs.COLUMNS.index("up")
    return [replace(scene, helps=(scene.pairs[:, up] > 0).astype(np.float32)) for scene in found]


def test_lessons_repeat_and_survive_the_disk(positions: list[Position], tmp_path: Path) -> None:
    again = list(positions_of(traced(NAME), Plan(stops=(0, 10, 20), moves=24), 1, Scoreboards.KEPT))
    save(tmp_path / "lesson.npz", again)
    kept = load(tmp_path / "lesson.npz")
    assert [p.stop for p in kept] == [0, 10, 20]
    for one, other in zip(positions, kept, strict=True):
        np.testing.assert_array_equal(one.gains, other.gains)
        np.testing.assert_array_equal(one.indices, other.indices)
        assert len(set(zip(one.instructions.tolist(), one.targets.tolist(), strict=True))) == len(one.gains)


def test_a_gain_within_the_noise_is_no_help(positions: list[Position]) -> None:
    noisy = replace(
        positions[0], gains=np.array([0.04, 0.2, 2.0], np.float32), errors=np.full(3, 0.1, np.float32)
    )
    assert is_help(noisy).tolist() == [0, 0, 1]
    assert is_help(replace(noisy, errors=np.zeros(3, np.float32))).tolist() == [0, 1, 1]


def test_heavy_kernels_are_left_out() -> None:
    with pytest.raises(CuasmrlError, match="more than lessons are given on"):
        next(positions_of(traced(NAME), Plan(heaviest=10), 1, Scoreboards.KEPT))


def test_it_learns_what_pays(scenes: list[Scene]) -> None:
    before, after = (fit(scenes, replace(SMALL, epochs=n, learning_rate=2e-2)) for n in (0, 25))
    with torch.no_grad():
        losses = [float(loss_of(network.eval(), scenes, SMALL)) for network in (before, after)]
    assert losses[1] < 0.7 * losses[0]


def test_it_goes_on_as_if_it_had_never_stopped(scenes: list[Scene], tmp_path: Path) -> None:
    class StoppedError(Exception):
        pass

    def stop(progress: Progress) -> None:
        if progress.epoch == 2:
            raise StoppedError

    path = tmp_path / "checkpoint.pt"
    with pytest.raises(StoppedError):
        fit(scenes, SMALL, path, stop)
    resumed, whole = fit(scenes, SMALL, path), fit(scenes, SMALL)
    for one, other in zip(resumed.parameters(), whole.parameters(), strict=True):
        assert torch.equal(one, other)


def test_numpy_gives_the_odds_of_the_network(positions: list[Position]) -> None:
    board, position = Board(traced(NAME).listing), positions[-1]
    board.restore(Schedule.of_arrays(board.listing, position.indices, position.bits))
    number = board.block_of[position.instructions[0]]
    here = np.array([board.block_of[i] == number for i in position.instructions])
    network = fitted()
    judge = Judge({name: tensor.numpy() for name, tensor in network.state_dict().items()})
    block = board.blocks[number]
    stand = stand_of(board, position.profile, block, Facts.of(board, block))
    found = judge.odds(stand, judge.look(stand), position.instructions[here], position.targets[here])
    scene = next(s for s in scenes_of(board, [position]) if len(s.order) == len(block))
    with torch.no_grad():
        expected = network.eval()(batch_of([scene]))[0].numpy()
    # What is fitted is kept in half precision.
    np.testing.assert_allclose(found, expected, atol=0.02, rtol=0.02)


def fitted() -> Network:
    torch.manual_seed(0)
    lessons = positions_of(traced(NAME), Plan(stops=(0,), moves=24), 2, Scoreboards.KEPT)
    return fit(list(scenes_of(Board(traced(NAME).listing), lessons)), SMALL)


def test_weights_for_something_else_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "w.safetensors"
    weights.save(path, {"a": np.zeros(2, np.float32)}, {"seed": 3})
    tensors, about = weights.load(path)
    assert list(tensors) == ["a"]
    assert about["seed"] == 3
    with pytest.raises(CuasmrlError, match="cannot read the weights"):
        weights.load(tmp_path / "none.safetensors")
    monkeypatch.setattr(pairs, "COLUMNS", ("other",))
    with pytest.raises(CuasmrlError, match="another set of columns of moves"):
        weights.load(path)
