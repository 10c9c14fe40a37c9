"""Schedules of small kernels: random ones by every kind of move, and one by a good move and useless ones."""

import random
from functools import lru_cache

from cuasmrl.explain.moves.judge import Judge, of_model
from cuasmrl.gpu.devices import VirtualTimer
from cuasmrl.gpu.traced import TracedKernel
from cuasmrl.schedule import Board, Schedule, Scoreboards
from tests.traced_kernels import traced

KINDS = ("shift", "drag", "swap", "inherit", "stall", "yield", "reuse")
SEEDS = (101, 102, 103)


def random_schedule(
    name: str, seed: int, kinds: tuple[str, ...], moves: int, scoreboards: Scoreboards = Scoreboards.KEPT
) -> Schedule:
    board, rng = Board(traced(name).listing, scoreboards=scoreboards), random.Random(seed)
    for _ in range(moves):
        _random_move(board, rng, rng.choice(kinds))
    return board.schedule()


def _random_move(board: Board, rng: random.Random, kind: str) -> None:
    i = rng.randrange(len(board.code))
    block = board.blocks[board.block_of[i]]
    match kind:
        case "shift":
            board.move(i, rng.choice(board.reach(i)))
        case "drag":
            board.drag(i, rng.randrange(block.start, block.end))
        case "swap" if places := board.legal_swaps():
            board.swap(rng.choice(places))
        case "inherit" if places := board.inheritable_swaps():
            board.swap_inheriting(rng.choice(places))
        case "stall":
            board.set_stall(i, rng.randrange(1, 16))
        case "yield":
            board.set_yield(i, rng.random() < 0.5)
        case "reuse":
            board.set_reuse(i, rng.random() < 0.5)


def timer(name: str) -> VirtualTimer:
    return VirtualTimer(traced(name), members=2)


def judge(name: str, winner: Schedule) -> Judge:
    """Of the whole kernel under few seeds."""
    kernel = traced(name)
    return Judge(of_model(kernel.model, SEEDS), kernel.original, winner)


@lru_cache
def planted(name: str = "gemm_leaky_relu") -> tuple[int, tuple[int, ...], Schedule]:
    """A load of the loop that helps most at the top of its reach, others whose moves do nothing; all done."""
    kernel, rng = traced(name), random.Random(0)
    board, sample = Board(kernel.listing), of_model(kernel.model, SEEDS)
    good = _best_load(board, kernel)
    block = board.blocks[board.block_of[good]]
    times, useless = tuple(sample(board.schedule())), list[int]()
    while len(useless) < 6:
        i, before = rng.randrange(block.start, block.end), board.schedule()
        if i in (good, *useless) or not board.move(i, rng.choice(board.reach(i))):
            continue
        if board.schedule().order != before.order and tuple(sample(board.schedule())) == times:
            useless.append(i)
        else:
            board.restore(before)
    return good, tuple(useless), board.schedule()


def _best_load(board: Board, kernel: TracedKernel) -> int:
    sample = of_model(kernel.model, SEEDS)
    loop = max(board.blocks, key=lambda block: len(block) * (block.number in block.successors))
    start, found = board.schedule(), []
    for i in range(loop.start, loop.end):
        if board.code[i].opcode == "LDSM" and board.move(i, min(board.reach(i))):
            found.append((sum(sample(board.schedule())), i))
            board.restore(start)
    _, good = min(found)
    board.move(good, min(board.reach(good)))
    return good
