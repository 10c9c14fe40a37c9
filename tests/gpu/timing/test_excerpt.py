"""Excerpts of traces: which iterations stay, and that what stays is what was there."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from cuasmrl.gpu.timing import Model
from cuasmrl.gpu.timing.excerpt import enough_iterations, excerpt, kept_visits
from cuasmrl.schedule.blocks import control_flow
from tests.traced_kernels import traced


def cut(path: list[int], iterations: int) -> list[int]:
    array = np.array(path, np.int32)
    return [int(block) for block in array[kept_visits(array, iterations)]]


def test_a_loop_keeps_its_first_and_last_turns() -> None:
    kept = kept_visits(np.array([0, *[1] * 10, 2], np.int32), 4)
    assert np.flatnonzero(~kept).tolist() == [3, 4, 5, 6, 7, 8]
    assert cut([0, *[1] * 10, 2], 4) == [0, 1, 1, 1, 1, 2]


def test_a_loop_of_several_blocks_loses_whole_turns() -> None:
    assert cut([0, *[1, 2, 3] * 8, 4], 3) == [0, *[1, 2, 3] * 3, 4]


def test_loops_one_after_the_other_are_cut_each() -> None:
    assert cut([*[1] * 9, 2, *[3, 4] * 9], 2) == [1, 1, 2, 3, 4, 3, 4]


def test_short_loops_stay() -> None:
    assert cut([0, 1, 1, 1, 2], 4) == [0, 1, 1, 1, 2]


@given(st.lists(st.integers(0, 3), max_size=60), st.integers(1, 6))
def test_the_ends_and_the_blocks_visited_stay(path: list[int], iterations: int) -> None:
    short = cut(path, iterations)
    assert set(short) == set(path)
    assert short[:1] == path[:1]
    assert short[-1:] == path[-1:]


def test_turns_are_enough_when_loops_make_up_their_share() -> None:
    kernel = traced("gemm_leaky_relu")
    lengths = np.array([len(block) for block in control_flow(kernel.listing)])
    iterations = enough_iterations(kernel.trace, lengths, 0.5, 1, 1000)
    paths = [kernel.trace.path(warp) for warp in range(kernel.trace.warps)]

    def executed(iterations: int) -> int:
        return sum(int(lengths[path[kept_visits(path, iterations)]].sum()) for path in paths)

    in_an_iteration = executed(2) - executed(1)
    outside = executed(1) - in_an_iteration
    assert iterations * in_an_iteration >= outside > (iterations - 1) * in_an_iteration
    assert enough_iterations(kernel.trace, lengths, 0.99, 1, 3) == 3
    assert enough_iterations(kernel.trace, lengths, 0.01, 2, 3) == 2


def test_an_excerpt_holds_the_accesses_of_the_visits_it_keeps() -> None:
    kernel = traced("gemm_leaky_relu")
    short = excerpt(kernel.trace, 4)
    assert len(short.path_blocks) < len(kernel.trace.path_blocks)
    for warp in range(short.warps):
        path = kernel.trace.path(warp)
        old = np.flatnonzero(kept_visits(path, 4))
        assert short.path(warp).tolist() == path[old].tolist()
        mine, theirs = short.access_warp == warp, kernel.trace.access_warp == warp
        stays = theirs & np.isin(kernel.trace.access_position, old)
        assert old[short.access_position[mine]].tolist() == kernel.trace.access_position[stays].tolist()
        assert short.access_base[mine].tolist() == kernel.trace.access_base[stays].tolist()


def test_an_excerpt_is_timed_like_a_kernel_with_fewer_turns() -> None:
    kernel = traced("gemm_leaky_relu")
    whole = kernel.model.simulate(kernel.original).cycles
    cycles = [
        Model(kernel.original, excerpt(kernel.trace, iterations), kernel.chip, l2=kernel.l2)
        .simulate(kernel.original)
        .cycles
        for iterations in (2, 4, 100)
    ]
    assert cycles[0] < cycles[1] < whole
    assert cycles[2] == whole
