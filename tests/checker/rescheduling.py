"""Legal schedules of real kernels, made by random moves on a board, to plant faults in."""

import random
from collections.abc import Mapping

from cuasmrl.binary.sass import Listing
from cuasmrl.checker import Checker, Refusal
from cuasmrl.schedule import Board, Schedule, Scoreboards
from cuasmrl.schedule.random_moves import random_move
from tests.checker.subjects import Origin, Subject


def move(board: Board, moves: int, rng: random.Random) -> None:
    """So many legal moves, or as many as are found in ten times as many tries."""
    for _ in range(10 * moves):
        moves -= random_move(board, rng) is not None
        if not moves:
            return


def rescheduled(
    checker: Checker, listings: Mapping[str, Listing], moves: int, rng: random.Random
) -> dict[str, Subject]:
    """Every kernel after some legal moves; in half of the cubins with scoreboards reassigned as well."""
    cubin, table = checker.original, checker.table
    scoreboards = rng.choice(list(Scoreboards))
    schedules = {
        name: _certified(checker, Board(listing, table, scoreboards), moves, rng)
        for name, listing in listings.items()
    }
    changed = cubin
    for schedule in schedules.values():
        changed = schedule.apply(changed)
    checker.check(changed)
    return {
        name: Subject(
            changed,
            Listing(changed.kernel(name), schedule.arranged().instructions),
            table,
            Origin(Subject(cubin, listings[name], table), schedule.order),
        )
        for name, schedule in schedules.items()
    }


def _certified(checker: Checker, board: Board, moves: int, rng: random.Random) -> Schedule:
    """What is planted in has to be sound: where the checker is stricter than the board, fewer moves."""
    while moves:
        move(board, moves, rng)
        try:
            checker.check(board.schedule().apply(checker.original))
        except Refusal:
            board.reset()
            moves //= 2
        else:
            break
    return board.schedule()
