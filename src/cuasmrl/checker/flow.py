"""The control flow graph, from the branches alone.

Every edge that can be taken is in it; where a target cannot be known there are more edges than that. A
schedule never moves a branch or a label, so the graph of the original is that of every candidate.
"""

from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

from cuasmrl.binary.cubin import WORD_BYTES
from cuasmrl.binary.sass import File, Instruction, Kind, Listing, Order

_LEAVES = {"BRA", "BRX", "BRXU", "JMP", "JMX", "JMXU", "EXIT", "KILL", "RTT", "CALL", "RET", "BSYNC"}
"""Without a condition, control does not simply go on to the next instruction."""
_THROUGH_REGISTER = {"BRX", "BRXU", "JMX", "JMXU"}


@dataclass(frozen=True)
class Block:
    """Instructions `start` to `end` (exclusive), and the blocks control may go on to."""

    start: int
    end: int
    successors: tuple[int, ...]


def blocks_of(listing: Listing) -> tuple[Block, ...]:
    instructions, kernel = listing.instructions, listing.kernel
    heads = {0} | {offset // WORD_BYTES for offset, _ in kernel.entry_points}
    heads |= {target // WORD_BYTES for targets in kernel.branch_targets().values() for target in targets}
    for i in instructions:
        if i.target is not None:
            heads.add(i.target // WORD_BYTES)
        if _ends_block(i):
            heads.add(i.index + 1)
    starts = sorted(head for head in heads if head < len(instructions))
    spans = list(zip(starts, [*starts[1:], len(instructions)], strict=True))
    number = {start: block for block, start in enumerate(starts)}

    def graph(reconvergence: dict[int, set[int]]) -> tuple[Block, ...]:
        blocks = []
        for start, end in spans:
            targets = _targets(instructions[end - 1], listing, starts, reconvergence)
            blocks.append(Block(start, end, tuple(sorted({number[t] for t in targets if t in number}))))
        return tuple(blocks)

    # Each round only removes edges, and may let the next one see that more cannot be taken.
    blocks = graph({})
    while (refined := graph(_reconvergence(instructions, blocks))) != blocks:
        blocks = refined
    return blocks


def leaves_kernel(instructions: tuple[Instruction, ...]) -> int | None:
    """A call or return whose other end is not in this kernel, so that paths through it are not known."""
    called = any(i.opcode == "CALL" for i in instructions)
    for i in instructions:
        if (i.opcode == "CALL" and i.target is None) or (i.opcode == "RET" and not called):
            return i.index
    return None


def _ends_block(i: Instruction) -> bool:
    return i.declaration is None or i.declaration.jumps or (i.target is not None and i.opcode != "BSSY")


def _has_condition(i: Instruction) -> bool:
    """By guard, by an operand (`BRA.U !UP0, ..`), or by the state of the warp (`BRA.DIV`)."""
    registers = [operand.register for operand in i.operands if operand.register is not None]
    by_operand = any(register.file in (File.P, File.UP) for register in registers)
    return i.is_conditional or i.never_executes or by_operand or bool({"DIV", "CONV"} & set(i.modifiers))


def _targets(
    last: Instruction, listing: Listing, heads: list[int], reconvergence: dict[int, set[int]]
) -> set[int]:
    """Instructions that may follow the last one of a block."""
    following = last.index + 1
    falls_through = _has_condition(last) or last.opcode not in _LEAVES
    targets = {following} if falls_through else set()
    if last.never_executes:
        return targets
    if last.opcode == "RET":
        # Its label names the function it is relative to. It returns behind any call.
        return targets | {i.index + 1 for i in listing.instructions if i.opcode == "CALL"}
    if last.opcode == "BSYNC":
        everywhere = {i.target // WORD_BYTES for i in listing.instructions if i.opcode == "BSSY" and i.target}
        return targets | reconvergence.get(last.index, everywhere | {following})
    if last.opcode == "CALL" and last.target is None:
        # Through a register or out of the kernel, from where it comes back.
        entries = {offset // WORD_BYTES for offset, _ in listing.kernel.entry_points}
        return targets | {following} | entries
    if last.target is not None and last.opcode != "BSSY":
        targets.add(last.target // WORD_BYTES)
    if last.opcode in _THROUGH_REGISTER:
        recorded = listing.kernel.branch_targets().get(last.address)
        targets |= set(heads) if recorded is None else {target // WORD_BYTES for target in recorded}
    return targets


def _reconvergence(instructions: tuple[Instruction, ...], blocks: tuple[Block, ...]) -> dict[int, set[int]]:
    """Where a warp goes on after BSYNC: to the target of each BSSY of that barrier that reaches it.

    `blocks` may have too many edges, which here only gives too many targets. Nothing is claimed where a
    barrier register is also written by other means (BMOV), or where no BSSY is found.
    """
    if any(i.opcode == "BMOV" and i.text.split()[-2].startswith("B") for i in instructions):
        return {}
    barriers = [
        [i for i in instructions[block.start : block.end] if i.opcode in ("BSSY", "BSYNC")]
        for block in blocks
    ]
    found: dict[int, set[int]] = {}
    for number, inside in enumerate(barriers):
        for position, origin in enumerate(inside):
            if origin.opcode != "BSSY" or origin.target is None:
                continue
            work, seen = [(number, inside[position + 1 :])], set[int]()
            while work:
                at, rest = work.pop()
                end = next((i for i in rest if _barrier(i) == _barrier(origin)), None)
                if end is not None and end.opcode == "BSYNC":
                    found.setdefault(end.index, set()).add(origin.target // WORD_BYTES)
                if end is None or _has_condition(end):
                    fresh = set(blocks[at].successors) - seen
                    seen |= fresh
                    work += [(following, barriers[following]) for following in fresh]
    return found


def _barrier(i: Instruction) -> int | None:
    for operand in i.operands:
        if operand.kind is Kind.REGISTER and operand.register is not None and operand.register.file == "B":
            return operand.register.index
    return None


class Region(NamedTuple):
    """Instructions `start` to `end` (exclusive), which may change places unless they are pinned."""

    start: int
    end: int
    pinned: bool


def regions_of(instructions: tuple[Instruction, ...], blocks: tuple[Block, ...]) -> list[Region]:
    """Blocks, cut before and after each pinned instruction.

    Nothing crosses a pinned instruction. That matters: `__syncwarp()` may be compiled to a bare NOP, the
    only trace of an order between lanes. An unknown opcode pins its whole block.
    """
    regions = []
    for block in blocks:
        inside = instructions[block.start : block.end]
        frozen = any(i.declaration is None for i in inside)
        for pinned, run in groupby(inside, lambda i: i.order is Order.PINNED):
            members = [i.index for i in run]
            if pinned or frozen:
                regions += [Region(i, i + 1, True) for i in members]
            else:
                regions.append(Region(members[0], members[-1] + 1, False))
    return regions
