"""AssemblyGame-v1: sound masks, rewards that add up, ends, observations, and play without losses."""

import json

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from cuasmrl.agents import weights
from cuasmrl.game import FreeGame
from cuasmrl.game.features import COLUMNS
from cuasmrl.game.free import FAILURE, KINDS
from cuasmrl.game.jumps import GROUP, JUMPS, PARTS, SCALE, Kind
from cuasmrl.gpu.timing import Reason
from tests.game.play import certify, new_clock, new_game, random_steps


@pytest.mark.parametrize("keep_worse", [True, False])
def test_gymnasium_finds_no_fault(keep_worse: bool) -> None:
    check_env(FreeGame(new_game("vector_add"), keep_worse=keep_worse), skip_render_check=True)


def test_it_is_registered() -> None:
    env = gym.make("AssemblyGame-v1", new_game=new_game("vector_add"), rows=64)
    assert env.observation_space.shape == (64, len(COLUMNS))
    env.reset(seed=0)
    assert env.get_wrapper_attr("action_masks")().shape == (64 * KINDS + 1,)


def test_version_1_has_the_columns_it_began_with() -> None:
    """Whoever changes them makes a new version: policies are trained on these."""
    assert len(COLUMNS) == 53
    assert [column for column in COLUMNS if column.startswith("waited: ")] == [
        f"waited: {name}"
        for name in (
            "stall", "branch", "fetch", "short scoreboard", "long scoreboard", "copy", "barrier",
            "tensor result", "constant", "tensor busy", "unit busy", "memory queue", "register port",
            "not selected",
        )
    ]  # fmt: skip
    about = json.loads(weights.DEFAULT.with_suffix(".json").read_text(encoding="utf-8"))
    assert list(COLUMNS) == about["columns"]


def test_waits_are_shown_in_the_column_of_their_name() -> None:
    env = FreeGame(new_game("gemm_leaky_relu"))
    seen, _ = env.reset()
    profile = env.game.profile(env.game.original)
    positions = np.concatenate([np.arange(b.start, b.end) for b in env.game.scope.blocks])
    total = profile.spent.sum()
    for name, reasons in {
        "long scoreboard": (Reason.LONG_SCOREBOARD, Reason.L2_SHARE, Reason.DRAM),
        "barrier": (Reason.BARRIER, Reason.MBARRIER),
        "tensor result": (Reason.TENSOR_RESULT,),
        "not selected": (Reason.NOT_SELECTED,),
    }.items():
        waited = profile.waits[positions][:, list(reasons)].sum(axis=1)
        shown = seen[: len(positions), COLUMNS.index(f"waited: {name}")]
        np.testing.assert_allclose(shown, np.sqrt(waited / total), rtol=1e-5)
    assert seen[:, COLUMNS.index("waited: barrier")].any()


@pytest.mark.parametrize("name", ["softmax", "gemm_leaky_relu"])
def test_every_legal_move_is_carried_out_and_certified(name: str) -> None:
    env = FreeGame(new_game(name), horizon=1000)
    env.reset()
    failures, before = 0, env.game.schedule
    for number, step in enumerate(random_steps(env, 120)):
        if step[1] == FAILURE:
            failures += 1
            assert env.game.schedule == before
        before = env.game.schedule
        if number % 20 == 0:
            certify(name, before)
    certify(name, before)
    # Some have no expressible stall counts, which nobody knows before trying.
    assert failures < 40


def test_each_jump_goes_where_it_says() -> None:
    env = FreeGame(new_game("gemm_leaky_relu"), horizon=1000)
    for number, jump in enumerate(JUMPS):
        env.reset()
        rows = np.flatnonzero(env.action_masks()[number:-1:KINDS])
        assert len(rows)
        board, carried_out = env.game.board, False
        for row in rows[:: max(1, len(rows) // 4)]:
            i, place = env._order[row], int(env._positions[row])
            span = board.span(i)
            before = list(board.position)
            if env.step(np.int64(row * KINDS + number))[1] == FAILURE:
                continue
            carried_out = True
            now, others = board.position[i], sum(a != b for a, b in zip(before, board.position, strict=True))
            by, size = (now - place) * np.sign(jump.by), abs(jump.by)
            if jump.is_flip:
                assert others == 0
            elif jump.kind is Kind.REACH:
                way = abs(span[0 if jump.by < 0 else -1] - place)
                assert (size - 1) * way / PARTS < by <= size * way / PARTS + 1
            elif jump.kind is Kind.GAP:
                assert by > 0
                assert now in span
            elif jump.kind is Kind.DRAG:
                # Those that come along may leave it where it was.
                assert 0 <= by < SCALE * size
            env.reset()
        assert carried_out


def test_instructions_go_where_warps_wait() -> None:
    env = FreeGame(new_game("gemm_leaky_relu"))
    env.reset()
    waits = env.game.profile(env.game.original).waits.sum(axis=1)
    for number, jump in enumerate(JUMPS):
        if jump.kind is Kind.GAP:
            to = env._targets[:, number]
            here, to = env._positions[to >= 0], to[to >= 0]
            assert ((to - here) * jump.by > 0).all()
            assert (waits[to + (jump.by > 0)] > 0).all()


def test_the_longer_warps_wait_the_more_jumps_lead_there() -> None:
    env = FreeGame(new_game("gemm_leaky_relu"))
    env.reset()
    waits = env.game.profile(env.game.original).waits.sum(axis=1)
    drawn = np.zeros(len(waits))
    for number, jump in enumerate(JUMPS):
        if jump.kind is Kind.GAP:
            to = env._targets[:, number]
            np.add.at(drawn, to[to >= 0] + (jump.by > 0), 1)
    block = max(env.game.scope.blocks, key=lambda block: waits[block.start : block.end].sum())
    order = np.argsort(waits[block.start : block.end]) + block.start
    half = len(order) // 2
    assert drawn[order[half:]].sum() > 4 * drawn[order[:half]].sum()


def test_places_are_drawn_anew_and_the_same_for_a_seed() -> None:
    env = FreeGame(new_game("gemm_leaky_relu"))
    unseeded = env._targets.copy()
    env.reset()
    assert not np.array_equal(env._targets, unseeded)
    env.reset(seed=3)
    first = env._targets.copy()
    env.reset(seed=3)
    np.testing.assert_array_equal(env._targets, first)
    other = FreeGame(new_game("gemm_leaky_relu"))
    np.testing.assert_array_equal(other._targets, unseeded)


def test_a_flip_has_to_pay_in_a_climb() -> None:
    env = FreeGame(new_game("gemm_leaky_relu"), horizon=1000, keep_worse=False, leeway=1.0)
    env.reset()
    tried = 0
    for number, jump in enumerate(JUMPS):
        for row in np.flatnonzero(env.action_masks()[number:-1:KINDS])[:20] if jump.is_flip else ():
            before, time = env.game.schedule.key, env._time
            env.step(np.int64(row * KINDS + number))
            assert env.game.schedule.key == before or env._time < time
            tried += 1
    assert tried > 20


def test_a_group_moves_together() -> None:
    env = FreeGame(new_game("gemm_leaky_relu"))
    env.reset()
    board = env.game.board
    number = next(n for n, jump in enumerate(JUMPS) if jump.kind is Kind.GROUP and jump.by == -4)
    for row in np.flatnonzero(env.action_masks()[number:-1:KINDS]):
        i = env._order[row]
        behind = [j for j in board.order[board.position[i] :] if board.block_of[j] == board.block_of[i]]
        alike = [j for j in behind if board.code[j].opcode == board.code[i].opcode][:GROUP]
        before = [board.position[j] for j in alike]
        if len(alike) == GROUP and env.step(np.int64(row * KINDS + number))[1] != FAILURE:
            moved = [old - board.position[j] for j, old in zip(alike, before, strict=True)]
            if all(0 < by < 4 * SCALE for by in moved):
                return
        env.reset()
    raise AssertionError("no group could move")


def test_whoever_is_waited_for_is_told() -> None:
    env = FreeGame(new_game("gemm_leaky_relu"))
    seen, _ = env.reset()
    awaited = seen[:, COLUMNS.index("awaited")]
    raises = seen[:, COLUMNS.index("sets write barrier")] + seen[:, COLUMNS.index("sets read barrier")]
    assert awaited.max() > 0.1
    assert not awaited[raises == 0].any()


def test_rewards_add_up_to_the_gain() -> None:
    env = FreeGame(new_game("softmax"), horizon=1000)
    _, info = env.reset()
    start, total = info["time"], 0.0
    for _, reward, _, _, step in random_steps(env, 60):
        total += 0.0 if reward == FAILURE else reward
        assert total == pytest.approx(100 * (start - step["time"]) / env.game.clock.start)


def test_worse_moves_are_taken_back_and_not_tried_again() -> None:
    env = FreeGame(new_game("softmax"), horizon=1000, keep_worse=False)
    env.reset()
    time, total = env.game.clock.start, 0.0
    rng = np.random.default_rng(0)
    for _ in range(150):
        before = env.game.schedule.key
        action = rng.choice(np.flatnonzero(env.action_masks()[:-1]))
        _, reward, _, _, info = env.step(action)
        assert reward >= 0
        assert info["time"] <= time
        total, time = total + reward, info["time"]
        if env.game.schedule.key == before:
            assert not env.action_masks()[action]
    assert total == pytest.approx(100 * (1 - time / env.game.clock.start))
    assert time == env.game.clock.best_time
    certify("softmax", env.game.clock.best)


def test_a_leeway_keeps_what_is_hardly_slower() -> None:
    env = FreeGame(new_game("softmax"), horizon=1000, keep_worse=False, leeway=0.5)
    env.reset()
    times = [info["time"] for *_, info in random_steps(env, 150)]
    lows = np.minimum.accumulate([env.game.clock.start, *times])[1:]
    assert (np.array(times) <= lows + 0.005 * env.game.clock.start).all()
    assert (np.array(times) > lows).any()


def test_a_climb_never_returns_to_a_schedule() -> None:
    env = FreeGame(new_game("vector_add"), horizon=10_000, keep_worse=False)
    env.reset()
    visited = [env.game.schedule.key]
    for _ in random_steps(env, 2000):
        if env.game.schedule.key != visited[-1]:
            visited.append(env.game.schedule.key)
    assert len(set(visited)) == len(visited)


def test_stopping_ends_the_episode_for_nothing() -> None:
    env = FreeGame(new_game("vector_add"))
    env.reset()
    before, spent = env.game.schedule, env.game.clock.spent
    _, reward, terminated, truncated, _ = env.step(np.int64(env.stop))
    assert (reward, terminated, truncated) == (0.0, True, False)
    assert (env.game.schedule, env.game.clock.spent) == (before, spent)


def test_the_horizon_truncates() -> None:
    env = FreeGame(new_game("softmax"), horizon=5)
    env.reset()
    steps = list(random_steps(env, 50))
    assert len(steps) == 5
    assert [step[3] for step in steps] == [False] * 4 + [True]
    assert not any(step[2] for step in steps)


def test_a_spent_budget_truncates_and_leaves_the_board_alone() -> None:
    env = FreeGame(new_game("softmax", budget=7), horizon=1000)
    env.reset()
    *others, last = random_steps(env, 100)
    assert last[3]
    assert last[4]["budget_spent"]
    assert env.game.clock.spent == 7
    assert env.game.clock.has_seen(env.game.schedule)
    assert not any(step[3] for step in others)


def test_schedules_seen_before_cost_nothing() -> None:
    env = FreeGame(new_game("softmax"), horizon=1000)
    env.reset(seed=3)
    first = [step[4]["time"] for step in random_steps(env, 20, seed=3)]
    spent = env.game.clock.spent
    env.reset(seed=3)
    assert [step[4]["time"] for step in random_steps(env, 20, seed=3)] == first
    assert env.game.clock.spent == spent


def test_an_episode_may_start_anywhere() -> None:
    env = FreeGame(new_game("softmax"), horizon=1000)
    env.reset()
    list(random_steps(env, 10))
    there, rows = env.game.schedule, env._rows
    env.reset()
    assert env.game.schedule == env.game.original
    seen, info = env.reset(options={"schedule": there})
    assert env.game.schedule == there
    assert info["time"] == env.game.clock.time(there)
    # How many jumps there are depends on the places that were drawn.
    others = [COLUMNS.index("moved last"), COLUMNS.index("jumps")]
    np.testing.assert_array_equal(np.delete(seen, others, 1), np.delete(rows, others, 1))


def test_rows_follow_the_order() -> None:
    env = FreeGame(new_game("gemm_leaky_relu"), rows=512, horizon=1000)
    first, _ = env.reset()
    static = dict(zip(env._order, first[:, : COLUMNS.index("stall")], strict=False))
    for seen, *_ in random_steps(env, 30):
        for row, i in enumerate(env._order):
            np.testing.assert_array_equal(seen[row, : COLUMNS.index("stall")], static[i])
        stalls = [env.game.board.stall[i] / 15 for i in env._order]
        np.testing.assert_allclose(seen[: len(stalls), COLUMNS.index("stall")], stalls, rtol=1e-6)
        assert not seen[len(stalls) :].any()
        assert env.observation_space.contains(seen)


def test_games_can_share_a_clock() -> None:
    clock = new_clock("vector_add", 30)
    envs = gym.vector.SyncVectorEnv([
        lambda: FreeGame(new_game("vector_add", clock=clock)) for _ in range(3)
    ])  # fmt: skip
    seen, _ = envs.reset(seed=[0, 0, 0])
    assert seen.shape[0] == 3
    for k in range(5):
        envs.step(np.array([np.flatnonzero(env.action_masks())[9 * k] for env in envs.envs]))  # type: ignore[attr-defined]
    # All three made the same moves: the device was asked once for each.
    assert 1 <= clock.spent <= 5


def test_the_same_play_gives_the_same_observations() -> None:
    runs = []
    for _ in range(2):
        env = FreeGame(new_game("softmax"), horizon=1000)
        env.reset(seed=1)
        runs.append([(step[0].tobytes(), step[1]) for step in random_steps(env, 25)])
    assert runs[0] == runs[1]
