"""Products of a warpgroup in flight: whose registers nobody touches, and between which instructions.

The products between a WARPGROUP.ARRIVE and the one that closes their group run beside the warp until a
WARPGROUP.DEPBAR lets no more groups run than were begun behind theirs. All of these keep their order among
themselves, so the groups that a DEPBAR awaits stay the same. What is left is that whoever else touches the
registers of a product stays on its side of each ARRIVE that stands before the product, and of each DEPBAR
that may find it in flight.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from cuasmrl.binary.sass import Access, Distances, File, Hazard, Instruction, file_of
from cuasmrl.schedule.blocks import Block
from cuasmrl.schedule.boundaries import HORIZON, Boundaries
from cuasmrl.schedule.flow import Flow
from cuasmrl.schedule.graph import Graph, Reason

if TYPE_CHECKING:
    from cuasmrl.schedule.dependences import Originals


@dataclass(frozen=True)
class Registers:
    """Of products: nobody else touches what they write, nor writes what they read."""

    written: frozenset[int] = frozenset()
    read: frozenset[int] = frozenset()

    def __or__(self, other: Registers) -> Registers:
        return Registers(self.written | other.written, self.read | other.read)

    def meets(self, instruction: Instruction) -> bool:
        reads = any(use.register in self.written for use in instruction.uses)
        return reads or bool(self.written_by(instruction))

    def written_by(self, instruction: Instruction) -> Sequence[Access]:
        return [d for d in instruction.defs if d.register in self.written or d.register in self.read]


Bearings = Mapping[int, Registers]
"""By ARRIVE or DEPBAR: the registers of the products that it stands before, or may find in flight."""


def bearings(blocks: Sequence[Block], code: Sequence[Instruction], flow: Flow) -> Bearings:
    if not any(i.is_product for i in code):
        return {}
    found: dict[int, Registers] = {}
    states = [_State()] * len(flow)

    def leave(node: int) -> _State:
        state = states[node]
        for i in code[blocks[node].start : blocks[node].end] if node < len(blocks) else ():
            state = state.step(i, found)
        return state

    def enter(node: int, arriving: _State) -> bool:
        before = states[node]
        states[node] = before.joined(arriving)
        return states[node] != before

    flow.forwards(leave, enter)
    return found


class _State(NamedTuple):
    arrivals: frozenset[int] = frozenset()
    """Each may be the last before what comes next."""
    groups: tuple[Registers, ...] = (Registers(),)
    """Products that may be in flight: of the group that is open, then of the others from the youngest on."""

    def step(self, instruction: Instruction, found: dict[int, Registers]) -> _State:
        """Notes in `found` what an ARRIVE or a DEPBAR bears on."""
        i, (arrivals, groups) = instruction.index, self
        if instruction.is_product:
            registers = _registers(instruction)
            for arrival in arrivals:
                found[arrival] = found.get(arrival, Registers()) | registers
            groups = (groups[0] | registers, *groups[1:])
            if instruction.closes_group and not instruction.is_conditional:
                groups = (Registers(), *groups)
        elif instruction.groups_left is not None:
            for group in groups:
                found[i] = found.get(i, Registers()) | group
            if not instruction.is_conditional:
                groups = groups[: 1 + instruction.groups_left]
        elif instruction.is_arrival:
            arrivals = arrivals | {i} if instruction.is_conditional else frozenset((i,))
        return _State(arrivals, _few(groups))

    def joined(self, other: _State) -> _State:
        longer, shorter = sorted((self.groups, other.groups), key=len, reverse=True)
        both = tuple(a | b for a, b in zip(longer, shorter, strict=False))
        return _State(self.arrivals | other.arrivals, both + longer[len(shorter) :])


_MOST = 8
"""Groups that are told apart; wgmma.wait_group has been seen with 0 to 2."""


def _few(groups: tuple[Registers, ...]) -> tuple[Registers, ...]:
    """A loop that awaits nothing would have ever more: of those, the youngest stands for all."""
    if len(groups) <= _MOST:
        return groups
    oldest = groups[_MOST - 1]
    for group in groups[_MOST:]:
        oldest |= group
    return (*groups[: _MOST - 1], oldest)


def _registers(product: Instruction) -> Registers:
    written = frozenset(d.register for d in product.defs)
    read = frozenset(u.register for u in product.uses if file_of(u.register) is File.R)
    return Registers(written, read - written)


def product_edges(graph: Graph, order: Sequence[int], originals: Originals) -> None:
    """Whoever touches the registers of products stays on its side of what these wait at."""
    for w in order:
        registers = originals.products.get(w)
        if registers is None:
            continue
        for i in order:
            instruction = originals.code[i]
            if i == w or instruction.is_product or not registers.meets(instruction):
                continue
            if i < w:
                need = _need_before(instruction, originals.code[w], registers, originals.table)
                graph.add(i, w, min(need, originals.distance(i, w)), Reason.PRODUCT)
            else:
                # Behind a DEPBAR its own stall is enough.
                graph.add(w, i, 0, Reason.PRODUCT)


def _need_before(writer: Instruction, waiter: Instruction, registers: Registers, table: Distances) -> int:
    """Results of fixed latency are there when the products begin; others have a scoreboard."""
    if writer.is_variable or not waiter.is_arrival:
        return 0
    needs = [
        table.required(Hazard.RAW, writer, waiter, access.register, access.role)
        for access in registers.written_by(writer)
    ]
    return max((HORIZON if need is None else need for need in needs), default=0)


def keep_products(
    boundaries: Boundaries, code: Sequence[Instruction], products: Bearings, table: Distances
) -> None:
    """What an ARRIVE needs, across the borders of blocks."""
    for w, registers in products.items():
        for i in code:
            need = 0 if i.is_product else _need_before(i, code[w], registers, table)
            if need:
                boundaries.tail[i.index] = max(boundaries.tail[i.index], need)
                boundaries.head[w] = max(boundaries.head[w], need)
