"""Taking an instruction along with what it is tied to."""

import random

import pytest

from cuasmrl.checker import Checker
from cuasmrl.schedule import Board, Drag, play
from tests.assembly import listing
from tests.climbing import kernel
from tests.schedule.test_board import CHAIN, FLOATS


def test_what_it_depends_on_comes_along() -> None:
    board = Board(listing(CHAIN), FLOATS)
    assert not board.move(3, 0)
    assert play(board, Drag(3, 1))
    assert board.order[:4] == [0, 3, 1, 2]
    board.reset()
    assert play(board, Drag(3, 0))
    assert board.order[:4] == [0, 3, 1, 2]


def test_what_depends_on_it_comes_along() -> None:
    board = Board(listing(CHAIN), FLOATS)
    assert play(board, Drag(0, 3))
    assert board.order[:4] == [1, 2, 0, 3]


@pytest.mark.parametrize("to", [-1, 0, 4, 99])
def test_nothing_changes_when_it_cannot_go(to: int) -> None:
    board = Board(listing(CHAIN), FLOATS)
    before = board.schedule()
    assert not board.drag(0, to)
    assert board.schedule() == before


def test_the_pinned_stay() -> None:
    board = Board(listing(CHAIN), FLOATS)
    assert not board.drag(4, 0)


def test_every_drag_is_legal() -> None:
    traced, rng = kernel(), random.Random(0)
    board, checker = Board(traced.listing), Checker(traced.cubin)
    done = 0
    while done < 200:
        i = rng.randrange(len(board.code))
        block = board.blocks[board.block_of[i]]
        done += board.drag(i, rng.randrange(block.start, block.end))
        if done % 40 == 0:
            checker.check(board.schedule().apply(traced.cubin))
