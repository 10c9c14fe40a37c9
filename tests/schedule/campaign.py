"""Random legal moves on a cubin, and everything that must still hold after them."""

import random
import re
from collections import Counter
from dataclasses import dataclass, field

from cuasmrl.binary.cubin import Cubin
from cuasmrl.binary.sass import Listing, disassemble
from cuasmrl.checker import Checker
from cuasmrl.schedule import Board, Scoreboards
from cuasmrl.schedule.random_moves import random_move, random_moves

__all__ = ["Tally", "play", "random_move", "verify"]

_REUSE = re.compile(r"\.reuse")


@dataclass
class Tally:
    moves: Counter[str] = field(default_factory=Counter)
    certified: int = 0
    instructions: int = 0
    records: int = 0

    def __iadd__(self, other: "Tally") -> "Tally":
        self.moves += other.moves
        self.certified += other.certified
        self.instructions += other.instructions
        self.records += other.records
        return self


def play(
    cubin: Cubin,
    rounds: int,
    tries: int,
    rng: random.Random,
    scoreboards: Scoreboards = Scoreboards.KEPT,
) -> Tally:
    """`rounds` times: try random moves on every kernel, then verify the cubin they make."""
    tally = Tally()
    listings = disassemble(cubin)
    checker = Checker(cubin, listings)
    boards = {name: Board(listing, scoreboards=scoreboards) for name, listing in listings.items()}
    for _ in range(rounds):
        candidate = cubin
        for board in boards.values():
            tally.moves += random_moves(board, tries, rng)
            candidate = board.schedule().apply(candidate)
        verify(cubin, candidate, boards, listings)
        checker.check(candidate)
        tally.certified += 1
        tally.instructions += sum(len(listing.instructions) for listing in listings.values())
        tally.records += sum(len(k.record_offsets()) for k in cubin.kernels)
    return tally


def verify(cubin: Cubin, candidate: Cubin, boards: dict[str, Board], listings: dict[str, Listing]) -> None:
    """Disassembled anew, the candidate is exactly the permuted listing, and every record follows."""
    again = disassemble(Cubin.parse(candidate.data, cubin.source))
    for name, board in boards.items():
        before, after = listings[name].instructions, again[name].instructions
        for place, i in enumerate(board.order):
            assert _REUSE.sub("", after[place].text) == _REUSE.sub("", before[i].text), (
                f"{name} position {place}"
            )
            assert after[place].control == board.controls[i]
        old, new = cubin.kernel(name).record_offsets(), candidate.kernel(name).record_offsets()
        assert old.keys() == new.keys()
        for slot, offset in old.items():
            assert new[slot] == 16 * board.position[offset // 16], f"{name}: record slot {slot:#x}"
