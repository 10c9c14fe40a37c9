"""The control flow graph, from the branches alone.

Every edge that can be taken is in it; where a target cannot be known there are more edges than that. A
schedule never moves a branch or a label, so the graph of the original is that of every candidate.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import NamedTuple

from cuasmrl.binary.cubin import WORD_BYTES
from cuasmrl.binary.sass import File, Instruction, Kind, Listing, Order
from cuasmrl.checker.graph import Graph, Worklist

_LEAVES = {"BRA", "BRX", "BRXU", "JMP", "JMX", "JMXU", "EXIT", "KILL", "RTT", "CALL", "RET", "BSYNC"}
"""Without a condition, control does not simply go on to the next instruction."""
_THROUGH_REGISTER = {"BRX", "BRXU", "JMX", "JMXU"}
_FEW = 2
"""A block has at most so many successors of its own; more are looked up in a list that blocks may share."""


@dataclass(frozen=True)
class Block:
    """Instructions `start` to `end` (exclusive), and the blocks control may go on to."""

    start: int
    end: int
    own: tuple[int, ...]
    shared: tuple[int, ...] = ()
    """Successors that other blocks have as well, such as what stands behind every call."""

    @property
    def successors(self) -> tuple[int, ...]:
        return tuple(sorted({*self.own, *self.shared}))


def blocks_of(listing: Listing) -> tuple[Block, ...]:
    return _Flow(listing).blocks()


def graph_of(blocks: Iterable[Block]) -> Graph:
    known = tuple(blocks)
    return Graph([block.own for block in known], [block.shared for block in known])


class _Flow:
    """What is the same for all blocks of a listing: heads, calls, reconvergence points."""

    def __init__(self, listing: Listing):
        self.instructions = listing.instructions
        kernel = listing.kernel
        self.recorded = kernel.branch_targets()
        entries = {offset // WORD_BYTES for offset, _ in kernel.entry_points}
        heads = {0} | entries
        heads |= {target // WORD_BYTES for targets in self.recorded.values() for target in targets}
        for i in self.instructions:
            if i.target is not None:
                heads.add(i.target // WORD_BYTES)
            if _ends_block(i):
                heads.add(i.index + 1)
        starts = sorted(head for head in heads if head < len(self.instructions))
        self.spans = list(zip(starts, [*starts[1:], len(self.instructions)], strict=True))
        self.number = {start: block for block, start in enumerate(starts)}
        self.everything = self._numbers(starts)
        self.entries = self._numbers(entries)
        self.returns = self._numbers(i.index + 1 for i in self.instructions if i.opcode == "CALL")
        meeting = (i.target // WORD_BYTES for i in self.instructions if i.opcode == "BSSY" and i.target)
        self.everywhere = self._numbers(meeting)
        self.barriers = [
            [i for i in self.instructions[start:end] if i.opcode in ("BSSY", "BSYNC")]
            for start, end in self.spans
        ]
        self.origins = [i for i in self.instructions if i.opcode == "BSSY" and i.target is not None]
        self.bit = {origin.index: 1 << bit for bit, origin in enumerate(self.origins)}

    def _numbers(self, instructions: Iterable[int]) -> tuple[int, ...]:
        return tuple(sorted({self.number[t] for t in instructions if t in self.number}))

    def blocks(self) -> tuple[Block, ...]:
        reconvergence: dict[int, int] = {}
        blocks = self._graph(reconvergence)
        if any(i.opcode == "BMOV" and i.text.split()[-2].startswith("B") for i in self.instructions):
            # A barrier register written by other means may hold any of them.
            return blocks
        # Each round only removes edges, and may let the next one see that more cannot be taken.
        while (refined := self._reconvergence(graph_of(blocks))) != reconvergence:
            reconvergence = refined
            blocks = self._graph(reconvergence)
        return blocks

    def _graph(self, reconvergence: dict[int, int]) -> tuple[Block, ...]:
        met = {bits: self._numbers(self._meeting_points(bits)) for bits in set(reconvergence.values())}
        blocks = []
        for start, end in self.spans:
            last = self.instructions[end - 1]
            known = reconvergence.get(last.index)
            own, shared = self._targets(last, None if known is None else met[known])
            if len(shared) <= _FEW:
                own, shared = own | set(shared), ()
            blocks.append(Block(start, end, tuple(sorted(own)), shared))
        return tuple(blocks)

    def _targets(self, last: Instruction, met: tuple[int, ...] | None) -> tuple[set[int], tuple[int, ...]]:
        """Blocks that may follow the last instruction of one: of its own, and shared with others.

        `met` are those behind a BSYNC, where that is known.
        """
        following = set(self._numbers([last.index + 1]))
        own = following if _has_condition(last) or last.opcode not in _LEAVES else set[int]()
        if last.never_executes:
            return own, ()
        if last.opcode == "RET":
            # Its label names the function it is relative to. It returns behind any call.
            return own, self.returns
        if last.opcode == "BSYNC":
            return (own | following, self.everywhere) if met is None else (own, met)
        if last.opcode == "CALL" and last.target is None:
            # Through a register or out of the kernel, from where it comes back.
            return own | following, self.entries
        if last.target is not None and last.opcode != "BSSY":
            own = own | set(self._numbers([last.target // WORD_BYTES]))
        if last.opcode in _THROUGH_REGISTER:
            recorded = self.recorded.get(last.address)
            if recorded is None:
                return own, self.everything
            return own, self._numbers(target // WORD_BYTES for target in recorded)
        return own, ()

    def _meeting_points(self, bits: int) -> Iterable[int]:
        while bits:
            lowest = bits & -bits
            target = self.origins[lowest.bit_length() - 1].target
            assert target is not None
            yield target // WORD_BYTES
            bits ^= lowest

    def _reconvergence(self, graph: Graph) -> dict[int, int]:
        """Where a warp goes on after BSYNC: to the target of each BSSY of that barrier that reaches it.

        By BSYNC: one bit for each such BSSY. The graph may have too many edges, which here only gives too
        many targets. Nothing is claimed where no BSSY is found.
        """
        found: dict[int, int] = {}
        same = self._of_barrier()
        rules = [self._crossing(inside, same, found) for inside in self.barriers]
        reaching = [0] * len(graph)
        work = Worklist(graph)
        while work:
            node = work.pop()
            leaving = reaching[node]
            if node < graph.blocks:
                stopped, begun = rules[node]
                leaving = leaving & ~stopped | begun
            for following in graph.paths[node] if leaving else ():
                if leaving & ~reaching[following]:
                    reaching[following] |= leaving
                    work.push(following)
        for node, inside in enumerate(self.barriers):
            for end in _firsts(inside):
                bits = reaching[node] & same.get(_barrier(end), 0)
                if end.opcode == "BSYNC" and bits:
                    found[end.index] = found.get(end.index, 0) | bits
        return found

    def _of_barrier(self) -> dict[int | None, int]:
        """The BSSY of each barrier register, as bits."""
        same: dict[int | None, int] = {}
        for origin in self.origins:
            same[_barrier(origin)] = same.get(_barrier(origin), 0) | self.bit[origin.index]
        return same

    def _crossing(
        self, inside: list[Instruction], same: dict[int | None, int], found: dict[int, int]
    ) -> tuple[int, int]:
        """BSSY whose warps do not get past a block, those in it whose warps do; notes those met inside."""
        stopped = begun = 0
        for end in _firsts(inside):
            if not _has_condition(end):
                stopped |= same.get(_barrier(end), 0)
        for position, origin in enumerate(inside):
            if origin.opcode != "BSSY" or origin.target is None:
                continue
            bit = self.bit[origin.index]
            rest = inside[position + 1 :]
            met = next((i for i in rest if _barrier(i) == _barrier(origin)), None)
            if met is not None and met.opcode == "BSYNC":
                found[met.index] = found.get(met.index, 0) | bit
            if met is None or _has_condition(met):
                begun |= bit
        return stopped, begun


def leaves_kernel(instructions: tuple[Instruction, ...]) -> int | None:
    """A call or return whose other end is not in this kernel, so that paths through it are not known."""
    called = any(i.opcode == "CALL" for i in instructions)
    for i in instructions:
        if (i.opcode == "CALL" and i.target is None) or (i.opcode == "RET" and not called):
            return i.index
    return None


def _firsts(inside: list[Instruction]) -> list[Instruction]:
    """The first instruction of each barrier register in a block."""
    found: dict[int | None, Instruction] = {}
    for i in inside:
        found.setdefault(_barrier(i), i)
    return list(found.values())


def _ends_block(i: Instruction) -> bool:
    return i.declaration is None or i.declaration.jumps or (i.target is not None and i.opcode != "BSSY")


def _has_condition(i: Instruction) -> bool:
    """By guard, by an operand (`BRA.U !UP0, ..`), or by the state of the warp (`BRA.DIV`)."""
    registers = [operand.register for operand in i.operands if operand.register is not None]
    by_operand = any(register.file in (File.P, File.UP) for register in registers)
    return i.is_conditional or i.never_executes or by_operand or bool({"DIV", "CONV"} & set(i.modifiers))


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
    """Blocks, cut before and after each pinned instruction, and each that has its padding behind it.

    Nothing crosses a pinned instruction. That matters: `__syncwarp()` may be compiled to a bare NOP, the
    only trace of an order between lanes. An unknown opcode pins its whole block.
    """
    regions = []
    for block in blocks:
        inside = instructions[block.start : block.end]
        frozen = any(i.declaration is None for i in inside)
        pads = {i.index for i, following in pairwise(inside) if _is_padded(i, following)}
        pinned_ones = {i.index for i in inside if i.order is Order.PINNED} | pads
        for pinned, run in groupby((i.index for i in inside), pinned_ones.__contains__):
            members = list(run)
            if pinned or frozen:
                regions += [Region(i, i + 1, True) for i in members]
            else:
                regions.append(Region(members[0], members[-1] + 1, False))
    return regions


def _is_padded(instruction: Instruction, following: Instruction) -> bool:
    declaration = instruction.declaration
    return declaration is not None and declaration.padded and following.opcode == "NOP"
