"""Words back to schedules: any schedule is found again, and what is none is refused by address."""

import random
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cuasmrl.binary.cubin import Cubin
from cuasmrl.binary.sass import Listing, disassemble_kernel, without_control
from cuasmrl.errors import CuasmrlError
from cuasmrl.schedule import Board, Schedule, control_flow, schedule_of
from tests.assembly import listing
from tests.schedule.campaign import random_move

TWO_BLOCKS = """
B------:R-:W-:-:S01  FADD R1, R8, R9
B------:R-:W-:-:S02  FADD R2, R8, R9
B------:R-:W-:-:S04  FADD R3, R8, R9
B------:R-:W-:-:S05  @P0 BRA `(.L_x)
B------:R-:W-:-:S01  FADD R4, R8, R9
.L_x:
B------:R-:W-:-:S05  EXIT
"""


@pytest.fixture(scope="module")
def code(built: Callable[[str, str, int], Cubin]) -> Listing:
    return disassemble_kernel(built("gemm_leaky_relu", "m64n64k32_w4_s3", 80))


def test_the_original(code: Listing) -> None:
    assert schedule_of(code, code.kernel.words) == Schedule.original(code)


@given(seed=st.integers(0, 2**32), moves=st.integers(1, 80))
@settings(max_examples=20, deadline=None)
def test_words_of_random_legal_moves(code: Listing, seed: int, moves: int) -> None:
    board, rng = Board(code), random.Random(seed)
    for _ in range(moves):
        random_move(board, rng)
    wanted = board.schedule()
    found = schedule_of(code, wanted.words)
    assert found.words == wanted.words
    # Only instructions with equal words may have changed names.
    bare = [without_control(i.word) for i in code.instructions]
    assert [bare[i] for i in found.order] == [bare[i] for i in wanted.order]
    moved = {i for i, j in zip(found.order, wanted.order, strict=True) if i != j}
    assert all(bare.count(bare[i]) > 1 for i in moved)


@given(st.randoms(use_true_random=False))
@settings(max_examples=20, deadline=None)
def test_any_order_inside_blocks(code: Listing, rng: random.Random) -> None:
    order: list[int] = []
    for block in control_flow(code):
        order += rng.sample(range(block.start, block.end), len(block))
    wanted = Schedule(code, tuple(order), Schedule.original(code).controls)
    assert schedule_of(code, wanted.words).words == wanted.words


def test_equal_words_keep_their_order() -> None:
    base = listing(TWO_BLOCKS)
    words = list(base.kernel.words)
    twins = Schedule.original(base).controls[1].encode(words[0])
    pair = listing(TWO_BLOCKS)
    instructions = list(pair.instructions)
    object.__setattr__(instructions[1], "word", twins)
    words[1] = twins
    found = schedule_of(Listing(pair.kernel, tuple(instructions)), [words[2], words[1], words[0], *words[3:]])
    assert found.order[:3] == (2, 0, 1)
    # Names follow the order of the listing, control bits the words.
    assert [found.controls[i].stall for i in found.order[:3]] == [4, 2, 1]


def test_a_word_of_another_block_is_named() -> None:
    base = listing(TWO_BLOCKS)
    words = list(base.kernel.words)
    words[1], words[4] = words[4], words[1]
    with pytest.raises(
        CuasmrlError, match=r"x\.cubin, kernel by_hand: the word at 0x0010 \(FADD R4, .*outside"
    ):
        schedule_of(base, words, "x.cubin")


def test_a_word_too_many_is_named() -> None:
    base = listing(TWO_BLOCKS)
    words = list(base.kernel.words)
    words[1] = words[0]
    with pytest.raises(CuasmrlError, match=r"0x0010 \(FADD R1, .*more often"):
        schedule_of(base, words)


def test_a_foreign_word_is_named() -> None:
    base = listing(TWO_BLOCKS)
    words = list(base.kernel.words)
    words[2] = bytes([255] * 16)
    with pytest.raises(CuasmrlError, match=r"0x0020 is no instruction of the original"):
        schedule_of(base, words)


def test_a_kernel_of_another_length() -> None:
    base = listing(TWO_BLOCKS)
    with pytest.raises(CuasmrlError, match="it has 5 instructions, the original 6"):
        schedule_of(base, base.kernel.words[:-1])
