"""Compiled retiming beside a plain rendering of the same rules."""

import random

import pytest

from cuasmrl.binary.sass import MAX_STALL
from cuasmrl.schedule import Block, Board
from tests.traced_kernels import traced


def spacing(board: Board, first: int, second: int) -> int:
    bounds = board.bounds
    own = bounds.limits[first].spacing
    if own <= 1:
        return 0
    is_follower = second == next(
        (j for j in range(first + 1, len(board.code)) if bounds.pipe[j] == bounds.pipe[first]), None
    )
    return min(own, board.originals.distance(first, second)) if is_follower else own


def earliest(board: Board, block: Block, window: list[int]) -> list[int] | None:
    """Instruction by instruction, as the docstring of `Bounds.earliest` says."""
    bounds = board.bounds
    times: list[int] = []
    at: dict[int, int] = {}
    for k, i in enumerate(window):
        time = times[-1] + bounds.limits[window[k - 1]].stall if times else 0
        time = max(time, bounds.limits[i].head)
        time = max([time, *(at[p] + need for p, need in bounds.incoming[i] if p in at)])
        before = [j for j in window[:k] if bounds.pipe[j] == bounds.pipe[i]]
        if before:
            time = max(time, at[before[-1]] + spacing(board, before[-1], i))
        times.append(time)
        at[i] = time
    tails = [at[i] + bounds.limits[i].tail for i in window]
    times.append(max(times[-1] + bounds.limits[window[-1]].stall, *tails, bounds._least_length(block)))
    for k in range(len(times) - 2, 0, -1):
        times[k] = max(times[k], times[k + 1] - MAX_STALL)
    at = dict(zip(window, times, strict=False))
    for i in window:
        if any(at[i] - at[p] < need for p, need in bounds.incoming[i]):
            return None
    return times if times[0] == 0 and times[1] <= MAX_STALL else None


@pytest.mark.parametrize("name", ["softmax", "gemm_leaky_relu"])
def test_compiled_times_are_those_of_the_plain_rules(name: str) -> None:
    board, rng = Board(traced(name).listing), random.Random(0)
    compared = 0
    while compared < 60:
        i = rng.randrange(len(board.code))
        block = board.blocks[board.block_of[i]]
        board.move(i, rng.choice(board.reach(i)))
        window = board.order[block.start : block.end]
        wanted = earliest(board, block, window)
        if wanted is not None:
            assert board.bounds.earliest(block, window) == wanted
            compared += 1


def test_the_reach_of_an_instruction_ends_at_what_it_depends_on() -> None:
    board, rng = Board(traced("softmax").listing), random.Random(1)
    for _ in range(40):
        i = rng.randrange(len(board.code))
        board.move(i, rng.choice(board.reach(i)))
    for block in board.blocks:
        graph = board.graphs[block.number]
        low, high = board.reaches(block)
        for i in range(block.start, block.end):
            first, last = int(low[i - block.start]), int(high[i - block.start])
            passed = {board.order[p] for p in range(first, last + 1)} - {i}
            assert not passed & (set(graph.predecessors[i]) | set(graph.successors[i]))
            assert not board.fixed[i] or first == last == board.position[i]
            if not board.fixed[i] and first > block.start:
                above = board.order[first - 1]
                assert above in graph.predecessors[i] or board.fixed[above]
