"""From instruction words back to the schedule they are: which instruction stands where."""

from collections import defaultdict, deque
from collections.abc import Sequence

from cuasmrl.binary.cubin import WORD_BYTES
from cuasmrl.binary.sass import Control, Listing, without_control
from cuasmrl.errors import CuasmrlError
from cuasmrl.schedule.blocks import Block, control_flow
from cuasmrl.schedule.schedule import Schedule


def schedule_of(listing: Listing, words: Sequence[bytes], source: str = "the candidate") -> Schedule:
    """The schedule of `listing` whose words these are: every block holds its own instructions in some order.

    Instructions of one block with equal words are interchangeable, and taken in the order of the listing.
    Whether the order is legal is for the checker to say.
    """
    code = listing.instructions
    where = f"{source}, kernel {listing.kernel.name}"
    if len(words) != len(code):
        raise CuasmrlError(f"{where}: it has {len(words)} instructions, the original {len(code)}")
    order: list[int] = []
    for block in control_flow(listing):
        waiting: dict[bytes, deque[int]] = defaultdict(deque)
        for i in range(block.start, block.end):
            waiting[without_control(code[i].word)].append(i)
        for position in range(block.start, block.end):
            left = waiting[without_control(words[position])]
            if not left:
                raise CuasmrlError(_stranger(listing, block, words, position, where))
            order.append(left.popleft())
    controls = dict(zip(order, map(Control.decode, words), strict=True))
    return Schedule(listing, tuple(order), tuple(controls[i] for i in range(len(code))))


def _stranger(listing: Listing, block: Block, words: Sequence[bytes], position: int, where: str) -> str:
    """The sentence about a word that has no counterpart left in its block."""
    bare = without_control(words[position])
    at = f"{where}: the word at {WORD_BYTES * position:#06x}"
    same = [i for i in listing.instructions if without_control(i.word) == bare]
    span = f"{WORD_BYTES * block.start:#06x} to {WORD_BYTES * (block.end - 1):#06x}"
    if not same:
        return f"{at} is no instruction of the original, so this is not another schedule of it"
    if any(block.start <= i.index < block.end for i in same):
        return f"{at} ({same[0].text}) occurs more often than in the original's block {span}"
    return f"{at} ({same[0].text}) comes from outside the block {span}, which no schedule allows"
