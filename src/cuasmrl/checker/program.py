"""A kernel of the original with its register dependences, and the order a candidate puts it in."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from cuasmrl.binary.sass import Control, File, Hazard, Listing, Pipe, file_of, without_control
from cuasmrl.checker.flow import blocks_of, leaves_kernel, regions_of


class Edge(NamedTuple):
    """`consumer` touches `register` after `producer`, and no certain overwrite lies between them."""

    hazard: Hazard
    producer: int
    consumer: int
    register: int


class Pending(NamedTuple):
    """An access that is still of interest when its block ends."""

    producer: int
    register: int
    written: bool


class Program:
    """What no candidate changes. Instructions go by their original index, in every order."""

    def __init__(self, listing: Listing):
        self.listing = listing
        self.kernel = listing.kernel
        self.instructions = listing.instructions
        self.blocks = blocks_of(listing)
        self.leaves_kernel = leaves_kernel(self.instructions)
        self.regions = regions_of(self.instructions, self.blocks)
        self.block_of = [b for b, block in enumerate(self.blocks) for _ in range(block.start, block.end)]
        self.bare = [without_control(i.word) for i in self.instructions]
        live = [not i.never_executes for i in self.instructions]
        self.uses = [_registers(i.uses) if live[i.index] else () for i in self.instructions]
        self.defs = [_registers(i.defs) if live[i.index] else () for i in self.instructions]
        self.edges: list[Edge] = []
        self.exits: list[list[Pending]] = []
        self.exposed: list[dict[int, list[tuple[int, bool]]]] = []
        """Per block and register: accesses that meet what comes from before the block, (index, it writes)."""
        self.kills: list[set[int]] = []
        named = (i.depbar for i in self.instructions if i.depbar is not None)
        self.depbar_boards = {k for first, _, others in named for k in (first, *others)}
        for number in range(len(self.blocks)):
            self._scan(number)

    def _scan(self, number: int) -> None:
        writers: dict[int, list[int]] = defaultdict(list)
        readers: dict[int, list[int]] = defaultdict(list)
        exposed: dict[int, list[tuple[int, bool]]] = defaultdict(list)
        killed: set[int] = set()
        for i in range(self.blocks[number].start, self.blocks[number].end):
            for r in self.uses[i]:
                self.edges += [Edge(Hazard.RAW, p, i, r) for p in writers[r]]
                if r not in killed:
                    exposed[r].append((i, False))
            for r in self.defs[i]:
                self.edges += [Edge(Hazard.WAW, p, i, r) for p in writers[r]]
                self.edges += [Edge(Hazard.WAR, p, i, r) for p in readers[r] if p != i]
                if r not in killed:
                    exposed[r].append((i, True))
                if self.overwrites(i):
                    writers[r], readers[r] = [], []
                    killed.add(r)
                writers[r].append(i)
            for r in self.uses[i]:
                if r not in self.defs[i] or not self.overwrites(i):
                    readers[r].append(i)
        self.exposed.append(exposed)
        self.kills.append(killed)
        self.exits.append(
            [Pending(p, r, True) for r, found in writers.items() for p in found]
            + [Pending(p, r, False) for r, found in readers.items() for p in found]
        )

    def reads_late(self, i: int, register: int) -> bool:
        """May a variable-latency instruction still have to read this source after it was issued?

        Compiler output shows that predicates and uniform registers are read at issue: ptxas overwrites them
        in the next cycle, without any barrier. The engines that run beside the warp read the latter late.
        """
        declaration, file = self.instructions[i].declaration, file_of(register)
        beside = declaration is None or declaration.pipe is Pipe.ASYNC
        return file is File.R or (file is File.UR and beside)

    def overwrites(self, i: int) -> bool:
        """Does it certainly replace what it writes? Under a condition the old value may live on."""
        return not self.instructions[i].is_conditional


def _registers(accesses: tuple[tuple[int, str], ...]) -> tuple[int, ...]:
    return tuple(dict.fromkeys(register for register, _ in accesses))


@dataclass(frozen=True)
class Arrangement:
    """An order of a program's instructions with their control bits, and the times that follow from them."""

    order: list[int]
    """order[position] = instruction"""
    position: list[int]
    """position[instruction] = position"""
    controls: list[Control]
    """Per instruction, not per position."""
    start: list[int]
    """Cycle of issue, counted in stalls from the head of the block."""
    total: list[int]
    """Cycles per block."""

    @property
    def is_original_order(self) -> bool:
        return all(position == i for position, i in enumerate(self.order))


def arrange(program: Program, order: list[int], controls: list[Control]) -> Arrangement:
    position, start, total = [0] * len(order), [0] * len(order), []
    for block in program.blocks:
        cycle = 0
        for p in range(block.start, block.end):
            i = order[p]
            position[i], start[i] = p, cycle
            cycle += controls[i].stall
        total.append(cycle)
    return Arrangement(order, position, controls, start, total)


def as_compiled(program: Program) -> Arrangement:
    controls = [i.control for i in program.instructions]
    return arrange(program, list(range(len(controls))), controls)


def boards_waited(program: Program, arrangement: Arrangement, i: int) -> Iterator[tuple[int, int]]:
    """(scoreboard, the count it may still hold) for each scoreboard that `i` waits for."""
    for k in arrangement.controls[i].waits:
        yield k, 0
    depbar = program.instructions[i].depbar
    if depbar is not None:
        yield depbar[0], depbar[1]
        yield from ((k, 0) for k in depbar[2])
