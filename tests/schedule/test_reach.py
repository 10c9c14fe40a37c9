"""The reach of an instruction: `move` accepts every position in it, and none outside it."""

import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cuasmrl import workloads
from cuasmrl.binary.cubin import Cubin
from cuasmrl.binary.sass import disassemble_kernel
from cuasmrl.schedule import Board, Scoreboards
from tests.schedule.campaign import random_move

KERNELS = {75: "softmax", 80: "gemm_leaky_relu", 86: "bmm", 89: "rmsnorm", 90: "softmax", 100: "transpose",
           120: "gemm_leaky_relu"}  # fmt: skip
_INSTRUCTIONS = 6


def board_of(arch: int, scoreboards: Scoreboards) -> Board:
    workload = workloads.get(KERNELS[arch])
    built = workload.build(workload.configs[0], arch)
    return Board(disassemble_kernel(Cubin.parse(built.cubin, workload.name)), scoreboards=scoreboards)


BOARDS: dict[tuple[int, Scoreboards], Board] = {}


@pytest.mark.parametrize("scoreboards", Scoreboards)
@pytest.mark.parametrize("arch", workloads.ARCHS)
@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 2**32))
def test_reach_is_exact(arch: int, scoreboards: Scoreboards, seed: int) -> None:
    if (arch, scoreboards) not in BOARDS:
        BOARDS[arch, scoreboards] = board_of(arch, scoreboards)
    board, rng = BOARDS[arch, scoreboards], random.Random(seed)
    board.reset()
    for _ in range(rng.randrange(30)):
        random_move(board, rng)
    start = board.schedule()
    for i in rng.sample(range(len(board.code)), _INSTRUCTIONS):
        reach, block = board.reach(i), board.blocks[board.block_of[i]]
        assert board.position[i] in reach
        for to in range(block.start, block.end):
            assert board.move(i, to) == (to in reach)
            assert (board.position[i] == to) == (to in reach)
            board.restore(start)
            assert board.schedule().key == start.key


def test_nothing_in_a_kernel_that_is_not_understood_can_move() -> None:
    board = board_of(80, Scoreboards.KEPT)
    board.is_opaque = True
    assert all(board.reach(i) == [board.position[i]] for i in range(len(board.code)))
