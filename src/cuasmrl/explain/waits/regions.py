"""Where a kernel spends its cycles: the loop that is hottest, or the block where there is none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cuasmrl.schedule import Block


@dataclass(frozen=True)
class Region:
    blocks: tuple[Block, ...]
    """In code order; the code of a loop need not be in one piece."""
    head: Block
    """Whose executions are the iterations."""
    is_loop: bool

    @property
    def positions(self) -> tuple[int, ...]:
        return tuple(p for block in self.blocks for p in range(block.start, block.end))


def hottest(blocks: Sequence[Block], spent: Sequence[int]) -> Region:
    """The region with most cycles, which are given by position.

    A cycle belongs to the innermost loop around it, so a loop is not hot for the loop that it holds.
    """
    loops = natural_loops(blocks)
    own: dict[int, int] = {}
    for block in blocks:
        around = [head for head, body in loops.items() if block.number in body]
        innermost = min(around, key=lambda head: len(loops[head]), default=block.number)
        own[innermost] = own.get(innermost, 0) + int(sum(spent[block.start : block.end]))
    head = max(own, key=lambda number: own[number])
    body = loops.get(head, frozenset({head}))
    return Region(tuple(b for b in blocks if b.number in body), blocks[head], head in loops)


def natural_loops(blocks: Sequence[Block]) -> dict[int, frozenset[int]]:
    """Head of each loop → numbers of its blocks: all that lead back to it, and to which it leads.

    A branch back to a block that can be gone round, as from code that was set aside, makes no loop.
    """
    before = _predecessors(blocks)
    dominators = _dominators(blocks, before)
    loops: dict[int, frozenset[int]] = {}
    for block in blocks:
        for head in block.successors:
            # The branch to itself behind the last EXIT only fills up the code.
            if head in dominators[block.number] and not (head == block.number and len(block) == 1):
                loops[head] = loops.get(head, frozenset()) | _body(head, block.number, before)
    return loops


def _predecessors(blocks: Sequence[Block]) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {block.number: [] for block in blocks}
    for block in blocks:
        for successor in block.successors:
            found[successor].append(block.number)
    return found


def _dominators(blocks: Sequence[Block], before: dict[int, list[int]]) -> dict[int, set[int]]:
    """For each block those that every way to it goes through, itself among them."""
    every = {block.number for block in blocks}
    entries = {number for number in every if number == 0 or not before[number]}
    found = {number: {number} if number in entries else set(every) for number in every}
    changed = True
    while changed:
        changed = False
        for number in sorted(every - entries):
            common = set.intersection(*(found[p] for p in before[number])) | {number}
            if common != found[number]:
                found[number], changed = common, True
    return found


def _body(head: int, latch: int, before: dict[int, list[int]]) -> frozenset[int]:
    body, waiting = {head, latch}, [latch]
    while waiting:
        number = waiting.pop()
        if number != head:
            new = [p for p in before[number] if p not in body]
            body.update(new)
            waiting += new
    return frozenset(body)
