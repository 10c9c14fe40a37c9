"""A traced kernel under random schedules, on its chip and on others of the ensemble."""

import random
from collections.abc import Iterator

from cuasmrl.gpu.timing import Model
from cuasmrl.gpu.timing.uncertainty import draw
from cuasmrl.gpu.traced import TracedKernel
from cuasmrl.schedule import Board, Schedule, Scoreboards
from cuasmrl.schedule.random_moves import random_move

_MOVES = 60
"""Between two schedules."""


def schedules_on_chips(kernel: TracedKernel, seed: int, count: int) -> Iterator[tuple[Model, Schedule]]:
    """The kernel's own schedule and `count` others, on three chips."""
    rng, board = random.Random(seed), Board(kernel.listing, scoreboards=Scoreboards.REASSIGNED)
    schedules = [kernel.original]
    for _ in range(count):
        for _ in range(_MOVES):
            random_move(board, rng)
        schedules.append(board.schedule())
    for parameters in [kernel.model.parameters, *draw(kernel.model.parameters, 2)]:
        model = kernel.model.with_parameters(parameters)
        for schedule in schedules:
            yield model, schedule
