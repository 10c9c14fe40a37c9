"""What a policy sees of moves: what it foresees is about what the model says, and nothing is seen twice."""

from functools import lru_cache

import numpy as np
import pytest

from cuasmrl.agents.policy.observation import pairs, rows
from cuasmrl.agents.policy.observation.facts import Facts
from cuasmrl.agents.policy.observation.position import Stand, stand_of
from cuasmrl.gpu.profile import replayed
from cuasmrl.schedule import Board, Drag, Scoreboards, play
from tests.traced_kernels import traced


@lru_cache
def hottest(name: str, how: Scoreboards = Scoreboards.KEPT) -> tuple[Board, Stand]:
    """The block of a kernel where most of its time goes, retimed."""
    kernel = traced(name)
    board = Board(kernel.listing, scoreboards=how)
    spent = replayed(kernel.part(4), kernel.original, 1).spent
    block = max(board.blocks, key=lambda block: spent[block.start : block.end].sum())
    board.retime(block.number)
    profile = replayed(kernel.part(4), board.schedule(), 1)
    return board, stand_of(board, profile, block, Facts.of(board, block))


@pytest.mark.parametrize("name", ["softmax", "gemm_leaky_relu"])
def test_the_present_order_takes_as_long_as_the_profile_says(name: str) -> None:
    board, stand = hottest(name)
    here = slice(stand.block.start, stand.block.end)
    profile = replayed(traced(name).part(4), board.schedule(), 1)
    a_warp = profile.spent[here].sum() / profile.executions[here].max()
    assert stand.timeline.length[0] == pytest.approx(a_warp, rel=0.05)


def test_moves_that_look_faster_are_faster_in_the_model() -> None:
    board, stand = hottest("gemm_leaky_relu")
    model, here = traced("gemm_leaky_relu").part(4), board.schedule()
    rng = np.random.default_rng(0)
    start, end = stand.block.start, stand.block.end
    moving = np.array([i for i in range(start, end) if not board.fixed[i]])
    instructions = rng.choice(moving, 200)
    targets = np.array([rng.choice([board.position[i], *board.others(i)]) for i in instructions])
    foreseen = stand.pairs(instructions, targets)[:, pairs.COLUMNS.index("foreseen cycles")]
    cycles = []
    for i, to in zip(instructions.tolist(), targets.tolist(), strict=True):
        play(board, Drag(i, to))
        cycles.append(model.cycles(model.table(board.schedule()), 1, model.resident))
        board.restore(here)
    first, second = (np.argsort(np.argsort(values, kind="stable")) for values in (foreseen, cycles))
    assert np.corrcoef(first, second)[0, 1] > 0.5


def test_a_move_that_is_not_legal_has_an_empty_row() -> None:
    board, stand = hottest("softmax")
    start = stand.block.start
    fixed = next(i for i in range(start, stand.block.end) if board.fixed[i])
    here = board.position[start]
    found = stand.pairs(np.array([fixed, start]), np.array([start, here]))
    assert not found.any()


def test_looking_changes_nothing_and_repeats() -> None:
    board, stand = hottest("softmax")
    before = board.schedule().key
    profile = replayed(traced("softmax").part(4), board.schedule(), 1)
    again = stand_of(board, profile, stand.block, Facts.of(board, stand.block))
    np.testing.assert_array_equal(again.rows, stand.rows)
    assert board.schedule().key == before
    assert stand.rows.shape == (len(stand.block), len(rows.COLUMNS))
    assert np.isfinite(stand.rows).all()
