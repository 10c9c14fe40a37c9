"""Orders of a block by instructions that move: any selection is an order, all of them the winner's."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuasmrl.explain.moves.rearrangement import Rearrangement
from cuasmrl.schedule import Board
from tests.explain.moves.schedules import random_schedule
from tests.traced_kernels import traced


@st.composite
def rearrangements(draw: st.DrawFn) -> Rearrangement:
    """Units of one or two instructions in any order; who moves is drawn, but the others keep their order."""
    sizes = draw(st.lists(st.sampled_from((1, 1, 2)), min_size=1, max_size=12))
    starts = [sum(sizes[:k]) for k in range(len(sizes))]
    before = tuple(tuple(range(s, s + n)) for s, n in zip(starts, sizes, strict=True))
    after = tuple(draw(st.permutations(before)))
    moved: set[tuple[int, ...]] = set()
    highest = -1
    for unit in after:
        if unit[0] < highest or draw(st.booleans()):
            moved.add(unit)
        else:
            highest = unit[0]
    return Rearrangement(before, after, frozenset(moved))


def flat(units: tuple[tuple[int, ...], ...]) -> list[int]:
    return [i for unit in units for i in unit]


@given(rearrangements(), st.randoms(use_true_random=False))
def test_a_selection_puts_the_chosen_and_the_staying_in_the_order_of_the_end(
    order: Rearrangement, rng: random.Random
) -> None:
    assert order.window(order.movers) == flat(order.after)
    assert order.window(()) == flat(order.before)
    chosen = [unit for unit in order.movers if rng.random() < 0.5]
    window = order.window(chosen)
    settled = {i for unit in order.before if unit in chosen or unit not in order.moved for i in unit}
    others = {i for unit in order.before if unit not in chosen for i in unit}
    assert [i for i in window if i in settled] == [i for i in flat(order.after) if i in settled]
    assert [i for i in window if i in others] == [i for i in flat(order.before) if i in others]
    assert sorted(window) == flat(order.before)


@pytest.mark.parametrize("seed", range(3))
def test_few_move_and_none_that_is_pinned(seed: int) -> None:
    """One shift is one that moves, whichever way it is looked at."""
    board = Board(traced("gemm_leaky_relu").listing)
    rng = random.Random(seed)
    far = (i for i in rng.sample(range(len(board.code)), 200) if max(board.reach(i)) > i + 8)
    i = next(i for i in far if board.move(i, max(board.reach(i))))
    block = board.blocks[board.block_of[i]]
    assert Rearrangement.of(board, block, board.schedule()).movers == ((i,),)
    winner = random_schedule("gemm_leaky_relu", seed, ("shift", "drag"), 100)
    for block in board.blocks:
        movers = Rearrangement.of(board, block, winner).movers
        assert not any(board.fixed[i] for unit in movers for i in unit)
