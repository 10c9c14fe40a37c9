"""Random legal play on a board, for campaigns that try what the rules allow."""

import random
from collections import Counter

from cuasmrl.schedule.board import Board

_SHARES = {"swap": 50, "inherit": 2, "move": 30, "stall": 8, "yield": 5, "reuse": 5}


def random_move(board: Board, rng: random.Random) -> str | None:
    """One random move of a random kind; its name if it was legal."""
    kind = rng.choices(tuple(_SHARES), tuple(_SHARES.values()))[0]
    i = rng.randrange(len(board.code))
    legal = False
    if kind == "swap":
        swaps = board.legal_swaps()
        legal = bool(swaps) and board.swap(rng.choice(swaps))
    elif kind == "inherit":
        swaps = board.inheritable_swaps()
        legal = bool(swaps) and board.swap_inheriting(rng.choice(swaps))
    elif kind == "move":
        reach = board.reach(i)
        legal = len(reach) > 1 and board.move(i, rng.choice(reach))
    elif kind == "stall":
        legal = board.set_stall(i, rng.randrange(16))
    elif kind == "yield":
        legal = board.set_yield(i, rng.random() < 0.5)
    else:
        legal = board.set_reuse(i, rng.random() < 0.5)
    return kind if legal else None


def random_moves(board: Board, tries: int, rng: random.Random) -> Counter[str]:
    """So many tries from the present schedule, now and then from the original; the legal moves by kind."""
    if rng.random() < 0.3:
        board.reset()
    return Counter(kind for _ in range(tries) if (kind := random_move(board, rng)) is not None)
