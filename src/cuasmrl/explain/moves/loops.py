"""Loops of a kernel, as far as words need them: where in the code a block stands."""

from __future__ import annotations

from collections.abc import Sequence

from cuasmrl.schedule import Block


def loops_of(blocks: Sequence[Block]) -> tuple[range, ...]:
    """Each loop as the numbers of its blocks: from where a branch leads back to, up to the branch."""
    return tuple(
        range(target, block.number + 1)
        for block in blocks
        for target in block.successors
        # The branch to itself behind the last EXIT is no loop.
        if target <= block.number and not (target == block.number and len(block) == 1)
    )


def where(number: int, loops: Sequence[range]) -> str:
    """Of a block, in words."""
    if not loops:
        return "in straight code"
    if any(number in loop for loop in loops):
        return "in the loop" if len(loops) == 1 else "in a loop"
    if number < min(loop.start for loop in loops):
        return "before the loop" if len(loops) == 1 else "before the loops"
    if number >= max(loop.stop for loop in loops):
        return "after the loop" if len(loops) == 1 else "after the loops"
    return "between loops"
