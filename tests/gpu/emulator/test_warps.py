"""Exchanges between the lanes of a warp, in convergent and in divergent code."""

import numpy as np
import numpy.typing as npt
import pytest

from cuasmrl.gpu.emulator import Fault
from tests.gpu.emulator.kernels import Kernels, Load, numbers

CHIPS = ("sm_75", "sm_80", "sm_90", "sm_120")
LANE = np.arange(64) & 31
WARP = np.arange(64) & 32


@pytest.fixture(scope="module", params=CHIPS)
def lanes(request: pytest.FixtureRequest, load: Load) -> Kernels:
    return load("lanes", request.param)


def run(
    kernels: Kernels, name: str, *arguments: npt.NDArray[np.int32], rows: int = 1
) -> npt.NDArray[np.int32]:
    out = np.zeros((rows, 64), np.int32)
    kernels.run(name, arguments[0], out, *arguments[1:], block=64)
    return out


def bits(members: npt.NDArray[np.bool_]) -> list[int]:
    """For each thread the members in its warp, as int32."""
    words = [sum(1 << k for k in range(32) if members[w + k]) for w in (0, 32)]
    return np.repeat(np.array(words, np.uint32), 32).view(np.int32).tolist()


def test_shuffles(lanes: Kernels) -> None:
    x = numbers(64, -1000, 1000)
    index, up, down, butterfly, free = run(lanes, "shuffles", x, rows=5)
    i = np.arange(64)
    assert (index == x[WARP + 31 - LANE]).all()
    assert (up == x[np.where(LANE >= 3, i - 3, i)]).all()
    assert (down == x[np.where(i % 16 + 5 < 16, i + 5, i) % 64]).all()
    assert (butterfly == x[i ^ 6]).all()
    assert (free == x[WARP + (x & 31)]).all()


def test_votes_in_both_sides_of_a_branch(lanes: Kernels) -> None:
    x = numbers(64, 0, 12)
    x[32:] += 8
    ballot, any_all, shuffled, masks, _ = run(lanes, "votes", x, rows=5)
    i = np.arange(64)
    third = i % 3 == 0
    odd = np.array(bits(third & (x & 1 == 1)))
    assert (ballot[third] == odd[third]).all()
    for first in (0, 32):
        those = third & (first == WARP)
        wanted = int((x[those] == 7).any()) + 2 * int((x[those] > 7).all())
        assert (any_all[those] == wanted).all()
    assert (masks[third] == np.array(bits(third))[third]).all()
    source = WARP + 3 * (i & 7)
    exchanged = third & third[source]
    assert (shuffled[exchanged] == x[source][exchanged]).all()


def test_matches_in_both_sides_of_a_branch(lanes: Kernels) -> None:
    x = numbers(64, 0, 12)
    x[32:] = 5
    match_any, match_all, same, all_of_x, same_x = run(lanes, "votes", x, rows=5)
    others = np.arange(64) % 3 != 0
    for value in range(4):
        holders = others & (x & 3 == value)
        assert (match_any[holders] == np.array(bits(holders))[holders]).all()
    assert (match_all[others] == np.array(bits(others))[others]).all()
    assert (same[others] == 1).all()
    assert (same_x[others] == (WARP[others] == 32)).all()
    assert (all_of_x[others] == np.where(WARP == 32, bits(others), 0)[others]).all()


def test_a_shuffle_that_lanes_reach_from_two_places(lanes: Kernels) -> None:
    x = numbers(64, 0, 1000)
    (out,) = run(lanes, "from_two_places", x)
    odd = x & 1 == 1
    assert (out == np.where(odd, x[WARP + (LANE + 3) % 32] + 1, x[WARP + (LANE + 5) % 32] * 3)).all()


def test_halves_of_a_warp_do_not_wait_for_each_other(lanes: Kernels) -> None:
    x = numbers(64, 0, 1000)
    (out,) = run(lanes, "halves", x)
    i = np.arange(64)
    wanted = sum(
        np.where((i & 16 == 0) | (k < 3), x[(i & ~15) + (i + k) % 16] * (k + 1), 0) for k in range(9)
    )
    assert (out == wanted).all()


def test_the_mask_is_that_of_the_lanes_that_execute(lanes: Kernels) -> None:
    x = numbers(64, 0, 100)
    x[0], x[32] = 2, 4
    odd = x & 1 == 1
    masks = np.array([bits(odd)[0], bits(odd)[32]], np.int32)
    (out,) = run(lanes, "loaded_mask", x, masks)
    i = np.arange(64)
    counts = np.repeat([odd[:32].sum(), odd[32:].sum()], 32)
    assert (out == np.where(odd, counts + np.where(odd[i ^ 2], x[i ^ 2], 0), 0)).all()


def test_waiting_for_lanes_that_never_come(load: Load) -> None:
    """The mask names lane 0 too, which has taken the other way."""
    x = np.arange(64, dtype=np.int32)
    masks = np.array([0xAAAAAAAB, 0xAAAAAAAB], np.uint32).view(np.int32)
    with pytest.raises(
        Fault, match=r"block \(0, 0, 0\), thread \(1, 0, 0\): waits for ever at the conv"
    ) as caught:
        run(load("lanes", "sm_80"), "loaded_mask", x, masks)
    assert caught.value.kernel == "loaded_mask"
    assert "32 of 64 living threads of the block" in str(caught.value)


@pytest.mark.parametrize("chip", CHIPS[1:])
def test_reductions(load: Load, chip: str) -> None:
    x = numbers(64, -1000, 1000)
    first, second, third = run(load("lanes", chip), "reductions", x, rows=3)
    for warp in (0, 32):
        odd = (x & 1 == 1) & (warp == WARP)
        assert (first[odd] == x[odd].sum()).all()
        assert (second[odd] == x[odd].min()).all()
        assert (third[odd] == x[odd].view(np.uint32).max().view(np.int32)).all()
        even = (x & 1 == 0) & (warp == WARP)
        assert (first[even] == np.bitwise_and.reduce(x[even])).all()
        assert (second[even] == np.bitwise_or.reduce(x[even])).all()
        assert (third[even] == np.bitwise_xor.reduce(x[even])).all()


@pytest.mark.parametrize("chip", CHIPS[2:])
def test_reductions_with_two_masks_at_once(load: Load, chip: str) -> None:
    x = numbers(64, 0, 1000)
    sums, most = run(load("lanes", chip), "reductions_of_halves", x, rows=2)
    for first in range(0, 64, 16):
        half = slice(first, first + 16)
        turns = 3 if first & 16 else 9
        assert (sums[half] == x[half].sum()).all()
        assert (most[half] == sum((x[half] ^ k).max() for k in range(turns))).all()


@pytest.mark.parametrize("block", [20, 40])
def test_a_warp_that_is_not_full(load: Load, block: int) -> None:
    """Lanes beyond the block do not exist: nobody waits for them, and no vote counts them."""
    x, out = numbers(64, 0, 1000), np.zeros((1, 64), np.int32)
    load("lanes", "sm_80").run("from_two_places", x, out, block=block)
    i = np.arange(block)
    three, five = WARP[:block] + (i + 3) % 32, WARP[:block] + (i + 5) % 32
    source = np.where(x[:block] & 1, three, five)
    inside = source < block
    wanted = np.where(x[:block] & 1, x[three] + 1, x[five] * 3)
    assert (out[0, :block] == wanted)[inside].all()
    assert not out[0, block:].any()
