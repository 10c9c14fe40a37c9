"""AssemblyGame-v0: the published game on sound rules."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from cuasmrl.errors import CuasmrlError
from cuasmrl.game import Game, PublishedGame
from cuasmrl.schedule import Scoreboards
from tests.game.play import certify, new_clock, new_game, random_steps
from tests.traced_kernels import traced


def test_gymnasium_finds_no_fault() -> None:
    check_env(PublishedGame(new_game("softmax")), skip_render_check=True)


@pytest.mark.filterwarnings("ignore:.*out of date:DeprecationWarning")
def test_it_is_registered_with_a_horizon() -> None:
    env = gym.make("AssemblyGame-v0", new_game=new_game("gemm_leaky_relu"))
    env.reset(seed=0)
    rng = np.random.default_rng(0)
    for number in range(1, 33):
        legal = np.flatnonzero(env.get_wrapper_attr("action_masks")()[:-1])
        *_, terminated, truncated, _ = env.step(rng.choice(legal))
        assert not terminated
        assert truncated == (number == 32)


@pytest.mark.parametrize(
    ("name", "shared"), [("gemm_leaky_relu", False), ("gemm_leaky_relu", True), ("softmax", True)]
)
def test_every_legal_move_is_carried_out_and_certified(name: str, shared: bool) -> None:
    env = PublishedGame(new_game(name), shared)
    env.reset()
    total = 0.0
    for number, (_, reward, _, _, info) in enumerate(random_steps(env, 80)):
        total += reward
        assert total == pytest.approx(100 * (1 - info["time"] / env.game.clock.start))
        if number % 20 == 0:
            certify(name, env.game.schedule)
    certify(name, env.game.schedule)


def test_scoreboards_are_kept_whatever_the_game_does_elsewhere() -> None:
    listing, clock = traced("gemm_leaky_relu").listing, new_clock("gemm_leaky_relu")
    masks = [
        PublishedGame(lambda how=how: Game(listing, clock, scoreboards=how)).action_masks()  # type: ignore[misc]
        for how in Scoreboards
    ]
    assert masks[0].sum() > 1
    assert (masks[0] == masks[1]).all()


def test_control_codes_travel_unchanged() -> None:
    env = PublishedGame(new_game("gemm_leaky_relu"), True)
    env.reset()
    assert any(env.game.schedule.order != env.game.original.order for _ in random_steps(env, 60))
    for old, new in zip(env.game.original.controls, env.game.schedule.controls, strict=True):
        # Operand-cache flags are worth nothing behind another instruction.
        assert (old.stall, old.waits, old.write_barrier) == (new.stall, new.waits, new.write_barrier)


def test_an_illegal_move_fails() -> None:
    env = PublishedGame(new_game("softmax"))
    env.reset()
    illegal = np.flatnonzero(~env.action_masks())
    assert len(illegal)
    _, reward, terminated, _, _ = env.step(illegal[0])
    assert (reward, terminated) == (-1.0, True)
    assert env.game.schedule == env.game.original


def test_stopping_ends_the_episode_for_nothing() -> None:
    env = PublishedGame(new_game("softmax"))
    env.reset()
    assert env.action_masks()[env.stop]
    _, reward, terminated, truncated, _ = env.step(np.int64(env.stop))
    assert (reward, terminated, truncated) == (0.0, True, False)


def test_a_spent_budget_truncates_and_leaves_the_board_alone() -> None:
    env = PublishedGame(new_game("gemm_leaky_relu", budget=4), True)
    env.reset()
    *_, last = random_steps(env, 100)
    assert last[3]
    assert last[4]["budget_spent"]
    assert env.game.clock.spent == 4
    assert env.game.clock.has_seen(env.game.schedule)


def test_rows_follow_the_order() -> None:
    env = PublishedGame(new_game("gemm_leaky_relu"))
    first, _ = env.reset()
    for seen, *_ in random_steps(env, 40):
        np.testing.assert_array_equal(seen, first[env.game.board.order])
        assert env.observation_space.contains(seen)


def test_games_can_share_a_clock() -> None:
    clock = new_clock("gemm_leaky_relu", 20)
    envs = gym.vector.SyncVectorEnv([
        lambda: PublishedGame(new_game("gemm_leaky_relu", clock=clock), True) for _ in range(2)
    ])  # fmt: skip
    envs.reset(seed=0)
    for _ in range(3):
        envs.step(np.array([np.flatnonzero(env.action_masks())[0] for env in envs.envs]))  # type: ignore[attr-defined]
    assert 1 <= clock.spent <= 3


def test_a_kernel_without_such_instructions_is_refused() -> None:
    game = new_game("vector_add")()
    game.keep_scoreboards()
    game.board.fixed[:] = [True] * len(game.board.fixed)
    with pytest.raises(CuasmrlError, match="AssemblyGame-v1"):
        PublishedGame(lambda: game)
