"""Where playing is worth while: the blocks in which the time of a kernel goes."""

from __future__ import annotations

import random
from bisect import bisect
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

from cuasmrl.gpu.profile import Profile
from cuasmrl.schedule import Block, Board

MOST_ROWS = 512
_SHARE = 0.98
"""Of all time spent in instructions; the rest is left alone."""


@dataclass(frozen=True)
class Scope:
    """Blocks in the order of the code, and their instructions that can move."""

    blocks: tuple[Block, ...]
    movable: tuple[int, ...]
    weights: tuple[float, ...]
    """Of each movable instruction: the time spent in its block, shared evenly. Sums to 1."""

    @cached_property
    def _shares(self) -> list[float]:
        return list(accumulate(self.weights))

    def draw(self, rng: random.Random) -> int:
        """A movable instruction by its weight."""
        return self.movable[drawn(rng, self._shares)]

    @property
    def rows(self) -> int:
        """All instructions of the blocks, movable or not."""
        return sum(len(block) for block in self.blocks)


def drawn(rng: random.Random, shares: Sequence[float]) -> int:
    """A number by shares that are summed up; as `random.choices` draws, without its detours."""
    return bisect(shares, rng.random() * shares[-1], 0, len(shares) - 1)


def scope_of(board: Board, profile: Profile, most_rows: int = MOST_ROWS) -> Scope:
    """The blocks that take most of the time, as many as fit."""
    spent = profile.spent
    by_block = {block.number: float(spent[block.start : block.end].sum()) for block in board.blocks}
    movable = {block.number: _movable(board, block) for block in board.blocks}
    chosen: list[Block] = []
    covered = rows = 0.0
    for block in sorted(board.blocks, key=lambda block: -by_block[block.number]):
        fits = rows + len(block) <= most_rows or not chosen
        if movable[block.number] and fits and covered < _SHARE * spent.sum():
            chosen.append(block)
            rows += len(block)
        covered += by_block[block.number]
    chosen.sort(key=lambda block: block.start)
    weights = [by_block[b.number] / len(movable[b.number]) for b in chosen for _ in movable[b.number]]
    total = sum(weights) or 1.0
    return Scope(
        tuple(chosen),
        tuple(i for block in chosen for i in movable[block.number]),
        tuple(weight / total for weight in weights),
    )


def _movable(board: Board, block: Block) -> list[int]:
    """Instructions with anywhere to go, now or after others have moved."""
    return [i for i in range(block.start, block.end) if not board.fixed[i] and i not in board.glued]
