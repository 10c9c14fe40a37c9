"""Tables of distances that are wrong on purpose, and the schedules that a board makes of them."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from itertools import product

from cuasmrl.bench.latencies import table_rows
from cuasmrl.binary.sass import (
    Distances,
    Hazard,
    Instruction,
    Listing,
    distances,
)
from cuasmrl.gpu.timing.comparison import Pair, latency_of
from cuasmrl.gpu.timing.latencies import latencies
from cuasmrl.schedule import Board, Schedule


@lru_cache
def _shipped(arch: int) -> Distances:
    return Distances(arch, table_rows())


class Falsified(Distances):
    """The shipped table, but for some pairs."""

    def __init__(self, arch: int, lies: dict[Pair, int]) -> None:
        vars(self).update(vars(_shipped(arch)))
        self.lies = lies

    def answer(
        self, hazard: Hazard, file: str, producer: str, producer_role: str, consumer: str, consumer_role: str
    ) -> int | None:
        pair = Pair(hazard, file, producer, producer_role, consumer, consumer_role)
        truth = super().answer(*pair)
        return self.lies.get(pair, truth)


def retimed(listing: Listing, lies: dict[Pair, int], blocks: Iterable[int] | None = None) -> Schedule:
    """What a board that believes the lies makes of a kernel by giving its blocks the smallest stalls."""
    board = Board(listing, table=Falsified(listing.kernel.arch, lies))
    for number in range(len(board.blocks)) if blocks is None else blocks:
        board.retime(number)
    return board.schedule()


class _Naming(Distances):
    """Answers nothing, and remembers what it was asked for: the names that the table has for a pair."""

    def __init__(self, arch: int) -> None:
        super().__init__(arch, ())
        self.asked: list[Pair] = []

    def answer(
        self, hazard: Hazard, file: str, producer: str, producer_role: str, consumer: str, consumer_role: str
    ) -> int | None:
        self.asked.append(Pair(hazard, file, producer, producer_role, consumer, consumer_role))
        return None


def pairs_of(first: Instruction, second: Instruction) -> list[Pair]:
    """The hazards between two instructions that distance protects from, as the table names them."""
    table = _Naming(first.arch)
    results = () if first.is_variable else first.defs
    for hazard, early, late in (
        (Hazard.RAW, results, second.uses),
        (Hazard.WAW, results, second.defs),
        (Hazard.WAR, first.uses, second.defs),
    ):
        for a, b in product(early, late):
            if a.register == b.register:
                table.required(hazard, first, second, a.register, a.role, b.role)
    return table.asked


def claimed_pairs(listing: Listing) -> set[tuple[Pair, int]]:
    """Pairs of neighbours in the code that both the table and the model have an answer for."""
    arch = listing.kernel.arch
    times, table = latencies(arch), distances(arch)
    found = set()
    code = listing.instructions
    for i in code:
        for later in code[i.index + 1 : i.index + 8]:
            for pair in pairs_of(i, later):
                latency = latency_of(times, pair)
                if latency is not None and latency > 2 and table.answer(*pair) is not None:
                    found.add((pair, latency))
    return found
