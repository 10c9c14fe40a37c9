"""List scheduling by critical path, with priorities that are searched, and hill climbing from the result."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, field
from graphlib import TopologicalSorter
from typing import ClassVar

from cuasmrl.agents.greedy import climb
from cuasmrl.agents.proposals import Mix, Walk
from cuasmrl.binary.sass import Instruction, Pipe
from cuasmrl.binary.sass.opcodes import Opcode, Space
from cuasmrl.game import Game
from cuasmrl.schedule import Block, Board
from cuasmrl.schedule.dependences import Reason

_WAITED = {Reason.SCOREBOARD, Reason.WAIT, Reason.QUEUE}
_BUSY = {Pipe.TENSOR: 8, Pipe.XU: 8, Pipe.MEMORY: 4, Pipe.ALU: 2, Pipe.FMA: 2, Pipe.HALF: 2, Pipe.UNIFORM: 2}
"""Cycles for which a warp's pipe takes nothing else: the rates of the chip files, rounded."""
_REPAIRS = 4
_URGENT = 150.0
"""Cycles by which an instruction on a leash is preferred after an order has failed."""


@dataclass(frozen=True)
class Latencies:
    """Cycles to results whose time no stall count knows; they guide the order and prove nothing."""

    shared: int = 33
    """Loads from shared memory."""
    far: int = 300
    """Loads from global memory."""
    tensor: int = 24
    """Matrix products, to anything but the next product of a chain."""
    chained: int = 18
    """Matrix products, to the accumulator of the next."""
    other: int = 22
    """Special functions, shuffles, special registers."""
    sources: int = 12
    """Until the sources of a memory instruction have been read."""
    barrier: int = 14
    """A block barrier whose warps arrive together."""


@dataclass(frozen=True)
class ListScheduling:
    """Orders of the hot blocks from scratch: of the instructions that are ready, the one whose longest way to
    the end of the block is longest. The priorities are then varied, by opcode and by instruction, and the
    fastest order is climbed from."""

    name: ClassVar[str] = "list"

    share: float = 0.15
    """Of the budget, spent on list scheduling."""
    spread: float = 40.0
    """Standard deviation of changes of a priority, in cycles of the critical path."""
    opcodes: float = 0.25
    """Chance of each opcode to get another priority."""
    instructions: float = 0.05
    """Chance of each instruction to get another priority."""
    latencies: Latencies = field(default_factory=Latencies)
    """What it takes the machine to be."""
    patience: int = 400
    """Of the climb, as in `greedy`."""
    aside: int = 4
    """Of the climb, as in `greedy`."""
    mix: Mix = field(default_factory=Mix)
    """The moves of the climb."""

    def play(self, new_game: Callable[[], Game], seed: int) -> None:
        game, rng = new_game(), random.Random(seed)
        walk = Walk(game, rng, self.mix)
        for block in game.scope.blocks:
            self._search(walk, block, rng)
        climb(walk, self.patience, self.aside)

    def _search(self, walk: Walk, block: Block, rng: random.Random) -> None:
        """The best order found for one block, the others as they stand."""
        game, scheduler = walk.game, Scheduler(walk.game.board, block, self.latencies)
        clock = game.clock
        tries = max(1, int(self.share * clock.budget / len(game.scope.blocks)))
        chosen: dict[int, float] = {}
        best: float | None = None
        for number in range(tries):
            priorities = self._varied(chosen, scheduler, rng) if number else {}
            walk.take_back()
            if not scheduler.arrange(priorities):
                continue
            time = clock.time(game.schedule)
            if best is None or time <= best:
                best, chosen = time, priorities
            if time < walk.time:
                walk.go_to(game.schedule)
        walk.take_back()

    def _varied(self, old: Mapping[int, float], scheduler: Scheduler, rng: random.Random) -> dict[int, float]:
        new = dict(old)
        code, instructions = scheduler.board.code, scheduler.instructions
        for opcode in sorted({code[i].opcode for i in instructions}):
            if rng.random() < self.opcodes:
                by = rng.gauss(0, self.spread)
                new |= {i: new.get(i, 0.0) + by for i in instructions if code[i].opcode == opcode}
        for i in instructions:
            if rng.random() < self.instructions:
                new[i] = new.get(i, 0.0) + rng.gauss(0, self.spread)
        return new


class Scheduler:
    """The dependences of one block with latencies, for list scheduling."""

    def __init__(self, board: Board, block: Block, latencies: Latencies) -> None:
        self.board, self.block = board, block
        self.instructions = range(block.start, block.end)
        self.before: dict[int, dict[int, int]] = {i: {} for i in self.instructions}
        self.behind: dict[int, dict[int, int]] = {i: {} for i in self.instructions}
        for i in self.instructions:
            for p, edge in board.graphs[block.number].predecessors[i].items():
                cycles = latency(board.code[p], board.code[i], edge.need, edge.reasons, latencies)
                self._tie(p, i, cycles)
        for i in reversed(self.instructions):
            # A padding unit is placed in one go, so its first member waits for what the others need.
            if board.glued.get(i, i) != i:
                for p, cycles in self.before[board.glued[i]].items():
                    if p != i:
                        self._tie(p, i, cycles)
        self._keep_leashes()
        self._backwards = tuple(TopologicalSorter(self.behind).static_order())
        """Nobody before what depends on it."""
        self._section = self._sections()

    def arrange(self, changes: Mapping[int, float]) -> bool:
        """Reorder the block on the board by changed priorities; False if no stalls express that."""
        changes = dict(changes)
        for _ in range(_REPAIRS):
            if self.board.reorder(self.block.number, self._order(self._priorities(changes))):
                return True
            for first, _, _ in self.board.graphs[self.block.number].leashes:
                changes[first] = changes.get(first, 0.0) + _URGENT
        return False

    def _keep_leashes(self) -> None:
        """Where one instruction may precede another by little at most, it is put behind it if it can."""
        for first, second, _ in self.board.graphs[self.block.number].leashes:
            if not self._leads_to(second, first):
                self._tie(first, second, 1)

    def _leads_to(self, start: int, end: int) -> bool:
        seen, waiting = {start}, [start]
        while waiting:
            for i in self.behind[waiting.pop()]:
                if i == end:
                    return True
                if i not in seen:
                    seen.add(i)
                    waiting.append(i)
        return False

    def _tie(self, first: int, second: int, cycles: int) -> None:
        cycles = max(cycles, self.before[second].get(first, 0))
        self.before[second][first] = self.behind[first][second] = cycles

    def _sections(self) -> dict[int, int]:
        """Pinned instructions part a block into sections that nothing leaves."""
        found, number = {}, 0
        for i in self.instructions:
            number += self.board.fixed[i]
            found[i] = number
            number += self.board.fixed[i]
        return found

    def _priorities(self, changes: Mapping[int, float]) -> dict[int, float]:
        """The longest way to the end, changed; nobody is preferred to what it waits for."""
        way: dict[int, int] = {}
        found: dict[int, float] = {}
        for i in self._backwards:
            way[i] = max((cycles + way[c] for c, cycles in self.behind[i].items()), default=0)
            found[i] = max([way[i] + changes.get(i, 0.0), *(found[c] for c in self.behind[i])])
        return found

    def _order(self, priorities: Mapping[int, float]) -> list[int]:
        board = self.board
        missing = {i: len(self.before[i]) for i in self.instructions}
        earliest = {i: board.bounds.limits[i].head for i in self.instructions}
        free: dict[Pipe, int] = {}
        ready = {i for i in self.instructions if not missing[i]}
        order: list[int] = []
        now, following = 0, -1
        while ready:
            section = min(self._section[i] for i in ready)
            waiting = {i: max(earliest[i], free.get(board.bounds.pipe[i], 0)) for i in ready}
            among = [following] if following in ready else [i for i in ready if self._section[i] == section]
            limit = max(now, min(waiting[i] for i in among))
            i = max((i for i in among if waiting[i] <= limit), key=lambda i: (priorities[i], -i))
            time = max(now, waiting[i])
            ready.remove(i)
            order.append(i)
            free[board.bounds.pipe[i]] = time + _BUSY.get(board.bounds.pipe[i], 1)
            now = time + 1
            following = board.glued.get(i, -1)
            for c, cycles in self.behind[i].items():
                missing[c] -= 1
                earliest[c] = max(earliest[c], time + cycles)
                if not missing[c]:
                    ready.add(c)
        return order


def latency(
    first: Instruction, second: Instruction, need: int, reasons: Set[Reason], latencies: Latencies
) -> int:
    """Cycles from one instruction to another that depends on it, as far as they can be told beforehand."""
    control, mask = first.control, second.control.wait_mask
    declaration = first.declaration
    if declaration is None:
        return max(1, need)
    if Reason.ANNOUNCED in reasons:
        touched = {access.register for access in (*second.uses, *second.defs)}
        if touched.isdisjoint(access.register for access in first.defs):
            return max(need, latencies.sources)
        return max(need, _result_latency(declaration, latencies))
    if reasons & _WAITED and control.write_barrier is not None and mask >> control.write_barrier & 1:
        return max(need, _result_latency(declaration, latencies))
    if reasons & _WAITED and control.read_barrier is not None and mask >> control.read_barrier & 1:
        return max(need, latencies.sources)
    if declaration.pipe is Pipe.TENSOR and Reason.REGISTER in reasons:
        is_product = second.declaration is not None and second.declaration.pipe is Pipe.TENSOR
        return max(need, latencies.chained if is_product else latencies.tensor)
    if first.opcode == "BAR":
        return max(need, latencies.barrier)
    return max(1, need)


def _result_latency(declaration: Opcode, latencies: Latencies) -> int:
    known = {None: latencies.other, Space.SHARED: latencies.shared, Space.TENSOR: latencies.shared}
    return known.get(declaration.reads, latencies.far)
