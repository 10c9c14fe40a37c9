"""A kernel of the original with its register dependences, and the order a candidate puts it in."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from cuasmrl.binary.sass import Control, File, Listing, Pipe, file_of, without_control
from cuasmrl.checker.dependences import Dependences, Roles, roles_of
from cuasmrl.checker.flow import blocks_of, graph_of, leaves_kernel, regions_of

_BOARDS = [tuple(k for k in range(6) if mask >> k & 1) for mask in range(64)]
"""Scoreboards of each wait mask."""


class Program:
    """What no candidate changes. Instructions go by their original index, in every order."""

    def __init__(self, listing: Listing):
        self.listing = listing
        self.kernel = listing.kernel
        self.instructions = listing.instructions
        self.blocks = blocks_of(listing)
        self.graph = graph_of(self.blocks)
        self.leaves_kernel = leaves_kernel(self.instructions)
        self.regions = regions_of(self.instructions, self.blocks)
        self.block_of = [b for b, block in enumerate(self.blocks) for _ in range(block.start, block.end)]
        self.bare = [without_control(i.word) for i in self.instructions]
        self.words = set(self.bare)
        live = [not i.never_executes for i in self.instructions]
        self.use_roles: list[Roles] = [roles_of(i.uses) if live[i.index] else {} for i in self.instructions]
        self.def_roles: list[Roles] = [roles_of(i.defs) if live[i.index] else {} for i in self.instructions]
        self.uses = [tuple(roles) for roles in self.use_roles]
        self.defs = [tuple(roles) for roles in self.def_roles]
        named = (i.depbar for i in self.instructions if i.depbar is not None)
        self.depbar_boards = {k for first, _, others in named for k in (first, *others)}
        self.certain = [self.overwrites(i.index) for i in self.instructions]
        self.dependences = Dependences(self.blocks, self.uses, self.defs, self.certain)

    @cached_property
    def definitions(self) -> dict[int, list[int]]:
        """Instructions that write each register."""
        found: dict[int, list[int]] = {}
        for i, defs in enumerate(self.defs):
            for r in defs:
                found.setdefault(r, []).append(i)
        return found

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
    waits: list[tuple[tuple[int, int], ...]]
    """Per instruction: (scoreboard, the count it may still hold) for each scoreboard that it waits for."""

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        return np.array(self.start, dtype=np.int64)

    @cached_property
    def positions(self) -> NDArray[np.int64]:
        return np.array(self.position, dtype=np.int64)


def arrange(program: Program, order: list[int], controls: list[Control]) -> Arrangement:
    position, start, total = [0] * len(order), [0] * len(order), []
    for block in program.blocks:
        cycle = 0
        for p in range(block.start, block.end):
            i = order[p]
            position[i], start[i] = p, cycle
            cycle += controls[i].stall
        total.append(cycle)
    waits = [tuple(boards_waited(program, control, i)) for i, control in enumerate(controls)]
    return Arrangement(order, position, controls, start, total, waits)


def as_compiled(program: Program) -> Arrangement:
    controls = [i.control for i in program.instructions]
    return arrange(program, list(range(len(controls))), controls)


def boards_waited(program: Program, control: Control, i: int) -> Iterator[tuple[int, int]]:
    """(scoreboard, the count it may still hold) for each scoreboard that `i` waits for with these bits."""
    for k in _BOARDS[control.wait_mask]:
        yield k, 0
    depbar = program.instructions[i].depbar
    if depbar is not None:
        yield depbar[0], depbar[1]
        yield from ((k, 0) for k in depbar[2])
