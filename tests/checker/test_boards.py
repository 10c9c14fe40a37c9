"""The board makes none of the changes that are unsafe, and what it offers is certified."""

import random
from collections.abc import Iterator, Mapping

import pytest

from cuasmrl.checker import Refusal, Rule
from cuasmrl.schedule import Board, Schedule, Scoreboards
from tests.checker.conftest import CHIPS, UNSAFE, Examined, each
from tests.checker.plants.base import is_strong
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
            if not _overtakes_other_memory(subjects[refusal.kernel], refusal):
                refused.append(str(refusal))
    assert refused == []


def _overtakes_other_memory(subject: Subject, refusal: Refusal) -> bool:
    """Here the checker is stricter: a strong access that stood behind an access of other memory overtakes it.

    Then that one is issued while the strong one is under way, which it was not in the original.
    """
    p, c = refusal.producer, refusal.consumer
    if refusal.rule is not Rule.SCOREBOARD or refusal.register is not None or p is None or c is None:
        return False
    first, second = subject.code[c].declaration, subject.code[p].declaration
    if first is None or second is None:
        return False
    apart = not {first.reads, first.writes} & {second.reads, second.writes} - {None}
    return is_strong(subject.code[p]) and c < p and apart


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
