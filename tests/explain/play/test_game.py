"""A game of people: moves, refusals, history, versions."""

import json
import random

import pytest

from cuasmrl.checker import Checker
from cuasmrl.errors import CuasmrlError
from cuasmrl.explain.play.game import SharedGame, StaleError
from cuasmrl.explain.play.reach import reach_of
from cuasmrl.explain.play.state import game_data, kernel_data
from cuasmrl.schedule import Board
from tests.climbing import faster, kernel
from tests.explain.play.conftest import refused


def drag(i: int, to: int, kind: str = "drag") -> dict[str, object]:
    return {"kind": kind, "instruction": i, "position": to}


def free_instruction(game: SharedGame) -> tuple[int, int]:
    """One of the hot loop, and another place that it may take by itself."""
    start, end = 193, 265
    for i in range(start, end):
        alone = reach_of(game.board, i).alone
        if len(alone) > 3 and game.board.code[i].opcode == "LDSM":
            return i, next(p for p in alone if p != i)
    raise AssertionError("nothing can move")


def test_cycles_and_their_reasons_are_those_of_the_model(game: SharedGame) -> None:
    i, to = free_instruction(game)
    game.play(0, drag(i, to))
    state = json.loads(json.dumps(game_data(game)))
    model, schedule, seeds = game.watch.scope.model, game.here.schedule, game.watch.scope.seeds
    cycles = [model.simulate(schedule, seed).cycles for seed in seeds]
    assert state["cycles"] == sum(cycles) / len(seeds)
    assert sum(state["reasons"].values()) == state["cycles"] * game.watch.divisor
    original = sum(model.simulate(kernel().original, seed).cycles for seed in seeds) / len(seeds)
    assert state["gain"] == original / state["cycles"] - 1
    assert game.watch.time(schedule) == state["cycles"]
    assert [state["order"], state["history"][-1]["cycles"]] == [list(schedule.order), state["cycles"]]


def test_every_position_of_a_game_is_certified(game: SharedGame) -> None:
    rng, checker = random.Random(1), Checker(kernel().cubin)
    for _ in range(60):
        i = rng.randrange(len(game.board.code))
        block = game.board.blocks[game.board.block_of[i]]
        moves = [drag(i, rng.randrange(block.start, block.end)), {"kind": "yield", "instruction": i},
                 {"kind": "stall", "instruction": i, "stall": rng.randrange(16)}]  # fmt: skip
        try:
            game.play(game.version, rng.choice(moves))
        except CuasmrlError:
            continue
    assert len(game.visited) > 20
    for schedule in game.visited[::5]:
        checker.check(schedule.apply(kernel().cubin))


def test_what_is_said_to_come_along_comes_along() -> None:
    """And nothing else does, wherever an instruction is dragged."""
    rng, board = random.Random(0), Board(kernel().listing)
    dragged = 0
    while dragged < 60:
        i = rng.randrange(len(board.code))
        reach, here, old = reach_of(board, i), board.position[i], list(board.position)
        to = rng.randrange(reach.first, reach.last + 1)
        if not board.drag(i, to):
            continue
        dragged += 1
        ties = {tie.instruction for tie in (reach.up if to < here else reach.down)}
        way = board.position[i] - here
        with_it = {j for j, was in enumerate(old) if j != i and (board.position[j] - was) * way > 0}
        assert with_it <= ties
        assert (to in reach.alone) <= (not with_it)


def test_undo_and_redo_lead_through_the_history(game: SharedGame) -> None:
    i, to = free_instruction(game)
    start = game.here.schedule
    game.play(0, drag(i, to))
    moved = game.here.schedule
    assert moved != start
    game.go(1, 0)
    assert game.board.schedule() == start
    game.go(2, 1)
    assert game.board.schedule() == moved
    assert refused(lambda: game.go(3, 2)) == "there is nothing to redo"
    assert refused(lambda: game.go(3, -1)) == "there is nothing to undo"
    game.go(3, 0)
    game.play(4, {"kind": "yield", "instruction": i})
    assert [step.words for step in game.steps[1:]] == [f"LDSM at {16 * i:#06x} yields now"]


def test_a_move_on_an_older_board_is_refused(game: SharedGame) -> None:
    i, to = free_instruction(game)
    game.play(0, drag(i, to))
    with pytest.raises(StaleError, match="the board has changed in the meantime"):
        game.play(0, drag(i, i))
    assert game.version == 1


def test_the_checker_says_why_an_instruction_does_not_go_alone(game: SharedGame) -> None:
    i, _ = free_instruction(game)
    reach = reach_of(game.board, i)
    beyond = next(p for p in range(reach.first, reach.last) if p not in reach.alone)
    said = refused(lambda: game.play(0, drag(i, beyond, "shift")))
    assert "must stay before" in said
    assert game.version == 0
    assert game.board.schedule() == kernel().original


def test_other_refusals(game: SharedGame) -> None:
    i, _ = free_instruction(game)
    last = len(game.board.code) - 1
    pinned = next(j for j in range(last) if game.board.fixed[j])
    reach = reach_of(game.board, i)
    assert refused(lambda: game.play(0, drag(pinned, 0))).endswith(
        "is pinned: control flow, fences and fillers stay where they are"
    )
    assert refused(lambda: game.play(0, drag(i, reach.last + 1))) == reach.walls[1]
    assert refused(lambda: game.play(0, drag(i, i))) == f"LDSM at {16 * i:#06x} is there already"
    assert "0 to 15" in refused(lambda: game.play(0, {"kind": "stall", "instruction": i, "stall": 99}))
    assert "a move is one of" in refused(lambda: game.play(0, {"kind": "jump", "instruction": i}))
    assert "instruction is a whole number" in refused(lambda: game.play(0, drag(True, 3)))
    waiting = next(d for d in game.board.code if d.opcode == "IMAD" and d.control.stall > 3)
    said = refused(lambda: game.play(0, {"kind": "stall", "instruction": waiting.index, "stall": 1}))
    assert "needs" in said or "must" in said
    assert game.version == 0


def test_a_game_goes_on_from_another_schedule() -> None:
    game = SharedGame(kernel(), faster())
    assert game.here.schedule == faster()
    assert game.board.schedule() == faster()
    assert game.visited == (faster(),)
    game.go(1, 0)
    assert game.board.schedule() == kernel().original


def test_the_hot_loop_is_shown() -> None:
    game = SharedGame(kernel())
    data = kernel_data(game.kernel, game.board, game.watch)
    assert data["is_loop"]
    start, end = data["blocks"][data["region"][0]]
    assert sum(text.startswith("HMMA") for text in data["text"][start:end]) >= 4
    assert data["iterations"] == data["executions"][start]
