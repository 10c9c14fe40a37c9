"""The compiled board beside the plain one: the same after every move, and after every way back."""

import random
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from cuasmrl import workloads
from cuasmrl.binary.cubin import Cubin
from cuasmrl.binary.sass import Listing, disassemble_kernel
from cuasmrl.schedule import Board, Schedule, Scoreboards
from tests.schedule.plain_board import PlainBoard

KERNELS = {"softmax": ("w4", 80), "gemm_leaky_relu": ("m32n32k32_w2_s2", 86), "transpose": (None, 90)}
KINDS = {"swap": 30, "inherit": 3, "move": 25, "drag": 25, "retime": 3, "stall": 5, "yield": 6, "reuse": 12}
LISTINGS: dict[str, Listing] = {}
MOVES = 40


def listing_of(name: str) -> Listing:
    if name not in LISTINGS:
        config, arch = KERNELS[name]
        workload = workloads.get(name)
        built = workload.build(workload.config(config) if config else workload.configs[0], arch)
        LISTINGS[name] = disassemble_kernel(Cubin.parse(built.cubin, name))
    return LISTINGS[name]


def a_move(board: Board, rng: random.Random) -> tuple[str, tuple[Any, ...]]:
    """The name of a method of both boards, and what it is asked."""
    kind = rng.choices(tuple(KINDS), tuple(KINDS.values()))[0]
    i = rng.randrange(len(board.code))
    block = board.blocks[board.block_of[i]]
    match kind:
        case "swap":
            legal = board.legal_swaps()
            return "swap", (rng.choice(legal) if legal and rng.random() < 0.9 else i,)
        case "inherit":
            legal = board.inheritable_swaps()
            return ("swap_inheriting", (rng.choice(legal),)) if legal else ("retime", (block.number,))
        case "move":
            return "move", (
                i,
                rng.choice(board.span(i)) if rng.random() < 0.8 else rng.randrange(len(board.code)),
            )
        case "drag":
            return "drag", (i, rng.randrange(max(0, block.start - 1), block.end + 1))
        case "retime":
            return "retime", (block.number,)
        case "stall":
            return "set_stall", (i, rng.randrange(17))
        case "yield":
            return "set_yield", (i, rng.random() < 0.5)
        case _:
            flagged = [i for i in range(len(board.code)) if board.code[i].control.reuse] or [i]
            return "set_reuse", (rng.choice(flagged), rng.random() < 0.5)


def assert_same(board: Board, plain: PlainBoard, rng: random.Random) -> None:
    for name in ("order", "position", "time", "stall", "yields", "wait_mask", "write_barrier", "read_barrier",
                 "keeps_reuse", "controls", "length"):  # fmt: skip
        assert list(getattr(board, name)) == list(getattr(plain, name)), name
    assert board.schedule().key == plain.schedule().key
    exchanges = plain.exchanges
    assert board.mask.astype(bool).tolist() == exchanges.mask
    assert (board.exchanges.slack_in, board.exchanges.slack_out) == (exchanges.slack_in, exchanges.slack_out)
    for i in rng.sample(range(len(board.code)), 8):
        assert board.span(i) == plain.span(i)
        block = board.blocks[board.block_of[i]]
        low, high = (int(limits[i - block.start]) for limits in board.reaches(block))
        if not any(j in board.glued for j in range(block.start, block.end)):
            assert (low, high) == (min(plain.span(i)), max(plain.span(i)))


@pytest.mark.parametrize("scoreboards", Scoreboards)
@pytest.mark.parametrize("name", KERNELS)
@settings(
    max_examples=6,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    # No seed is simpler than another.
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
)
@given(seed=st.integers(0, 2**32))
def test_every_move_does_the_same_on_both_boards(name: str, scoreboards: Scoreboards, seed: int) -> None:
    rng = random.Random(seed)
    board, plain = Board(listing_of(name), scoreboards=scoreboards), PlainBoard(listing_of(name), scoreboards)
    seen: list[Schedule] = [board.schedule()]
    for _ in range(MOVES):
        if rng.random() < 0.15:
            # Mostly one that the journal has, at times another object of the same value.
            there = rng.choice(seen[-6:])
            there = there if rng.random() < 0.7 else there.replaced()
            board.restore(there)
            plain.restore(there)
            assert board.schedule() == there
        else:
            method, arguments = a_move(board, rng)
            assert getattr(board, method)(*arguments) == getattr(plain, method)(*arguments), (
                method,
                arguments,
            )
        assert_same(board, plain, rng)
        if rng.random() < 0.4:
            seen.append(board.schedule())


@pytest.mark.parametrize("scoreboards", Scoreboards)
def test_the_journal_leads_back_to_where_comparing_leads(scoreboards: Scoreboards) -> None:
    """One board gets the schedules it gave out itself, the other copies that its journal does not know."""
    undone, compared = (Board(listing_of("gemm_leaky_relu"), scoreboards=scoreboards) for _ in range(2))
    rng = random.Random(1)
    for _ in range(60):
        start = undone.schedule()
        for _ in range(rng.randrange(1, 5)):
            method, arguments = a_move(undone, rng)
            assert getattr(undone, method)(*arguments) == getattr(compared, method)(*arguments)
        if rng.random() < 0.7:
            undone.restore(start)
            compared.restore(start.replaced())
        assert undone.schedule() == compared.schedule()
        assert (undone.cells == compared.cells).all()
        assert (undone.mask == compared.mask).all()
