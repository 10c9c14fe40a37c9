"""The board makes none of the changes that are unsafe, and what it offers is certified."""

import random
from collections.abc import Iterator, Mapping

import pytest

from cuasmrl.checker import Refusal
from cuasmrl.schedule import Board, Schedule, Scoreboards
from tests.checker.conftest import CHIPS, UNSAFE, Examined, each
from tests.checker.plants.keeping import lost
from tests.checker.rescheduling import move
from tests.checker.subjects import Subject


@each(*CHIPS, soon=("sm_80", "sm_100"))
@pytest.mark.parametrize("scoreboards", Scoreboards)
@pytest.mark.parametrize("source", UNSAFE)
def test_nothing_is_lost_on_a_board(
    source: str, chip: str, scoreboards: Scoreboards, examined: Examined
) -> None:
    """Every block retimed, then 200 random legal moves: nothing is lost, and all is certified."""
    checker, subjects = examined(source, chip)
    refused = []
    for schedules in _played(subjects, scoreboards, chip):
        candidate = checker.original
        for kernel, schedule in schedules.items():
            assert lost(subjects[kernel], schedule) == []
            candidate = schedule.apply(candidate)
        try:
            checker.check(candidate)
        except Refusal as refusal:
            refused.append(str(refusal))
    assert refused == []


def _played(
    subjects: Mapping[str, Subject], scoreboards: Scoreboards, seed: str
) -> Iterator[dict[str, Schedule]]:
    """Schedules of all kernels: retimed, and after each 50 moves of four times 50."""
    rng = random.Random(seed)
    boards = {k: Board(subject.listing, subject.table, scoreboards) for k, subject in subjects.items()}
    for board in boards.values():
        for block in board.blocks:
            board.retime(block.number)
    yield {kernel: board.schedule() for kernel, board in boards.items()}
    for _ in range(4):
        for board in boards.values():
            move(board, 50, rng)
        yield {kernel: board.schedule() for kernel, board in boards.items()}
