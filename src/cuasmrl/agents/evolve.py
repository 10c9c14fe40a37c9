"""A genetic algorithm: schedules are crossed block by block and mutated by random moves."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import ClassVar

from cuasmrl.agents.proposals import Mix, Proposals
from cuasmrl.game import Game
from cuasmrl.schedule import Block, Board, Graph, Schedule

Member = tuple[float, Schedule]
_MOST_BARREN = 2000
"""Children in a row that had all been seen before."""


@dataclass(frozen=True)
class Evolve:
    """Steady state: one child at a time, which takes the place of the slowest if it is not slower."""

    name: ClassVar[str] = "evolve"

    population: int = 16
    """Schedules that are kept."""
    tournament: int = 3
    """Members among which the fastest becomes a parent."""
    crossover: float = 0.3
    """Share of children with two parents."""
    most_mutations: int = 3
    """Random moves that a child gets at most; at least one."""
    lag: int = 3
    """Children that are made before the answer about the one before them is taken."""
    mix: Mix = field(default_factory=Mix)
    """The moves of mutations."""

    def play(self, new_game: Callable[[], Game], seed: int) -> None:
        game, rng = new_game(), random.Random(seed)
        clock, proposals = game.clock, Proposals(game, rng, self.mix)
        members: list[Member] = [(clock.start, game.original)]
        unborn: deque[Schedule] = deque()
        barren = 0
        while not clock.is_over and barren < _MOST_BARREN:
            while len(unborn) <= self.lag:
                unborn.append(self._child(game, proposals, members, rng))
                if len(unborn) <= clock.budget - clock.spent:
                    clock.announce(unborn[-1])
            child = unborn.popleft()
            barren = barren + 1 if clock.has_seen(child) else 0
            if not barren:
                self._admit(members, (clock.time(child), child))

    def _child(self, game: Game, proposals: Proposals, members: list[Member], rng: random.Random) -> Schedule:
        game.back_to(self._parent(members, rng))
        if rng.random() < self.crossover:
            _cross(game.board, game.scope.blocks, self._parent(members, rng), rng)
        for _ in range(rng.randint(1, self.most_mutations)):
            proposals.play()
        return game.schedule

    def _parent(self, members: list[Member], rng: random.Random) -> Schedule:
        drawn = rng.choices(members, k=self.tournament)
        return min(drawn, key=lambda member: member[0])[1]

    def _admit(self, members: list[Member], child: Member) -> None:
        members.append(child)
        if len(members) > self.population:
            # Of equals the older one goes, so that the population drifts along plateaus.
            slowest = max(range(len(members)), key=lambda k: (members[k][0], -k))
            del members[slowest]


def _cross(board: Board, blocks: Sequence[Block], father: Schedule, rng: random.Random) -> None:
    """For each block: the mother's order, the father's, or her beginning and the rest in his order."""
    for block in blocks:
        mine = board.order[block.start : block.end]
        his = list(father.order[block.start : block.end])
        cut = rng.randint(0, len(mine))
        kept = set(mine[:cut])
        window = mine[:cut] + [i for i in his if i not in kept]
        if window != mine:
            board.reorder(block.number, repaired(window, board.graphs[block.number]))


def repaired(window: Sequence[int], graph: Graph) -> list[int]:
    """The order with every instruction behind all it depends on; a legal order stays as it is."""
    rank = {i: k for k, i in enumerate(window)}
    missing = {i: sum(p in rank for p in graph.predecessors[i]) for i in window}
    ready = [rank[i] for i in window if not missing[i]]
    result = []
    while ready:
        i = window[heappop(ready)]
        result.append(i)
        for c in graph.successors[i]:
            if c in missing:
                missing[c] -= 1
                if not missing[c]:
                    heappush(ready, rank[c])
    return result
