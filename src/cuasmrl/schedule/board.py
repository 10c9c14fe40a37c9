"""The board of the game: one kernel's present schedule with everything needed to judge a move quickly.

Every legal move keeps all dependences of the original at a distance of at least min(original, required),
keeps every scoreboard's protection, and keeps blocks, pinned instructions and padding where they are.
"""

from bisect import bisect
from collections.abc import Iterable, Mapping, Sequence
from functools import cache

import numpy as np

from cuasmrl.binary.sass import MAX_STALL, Control, Distances, Instruction, Listing, Order, distances
from cuasmrl.binary.sass.control import LONGEST_STALL_WITHOUT_YIELD
from cuasmrl.schedule.blocks import Block, control_flow
from cuasmrl.schedule.bounds import Bounds
from cuasmrl.schedule.dependences import Graph, Originals, Reason, build_graph
from cuasmrl.schedule.drags import dragged
from cuasmrl.schedule.exchanges import Exchanges
from cuasmrl.schedule.pins import glued_units, leaves_kernel
from cuasmrl.schedule.reach import Int, Neighbours
from cuasmrl.schedule.reassignment import Arranged, Reassignment, Scoreboards
from cuasmrl.schedule.schedule import Schedule


class Board:
    """A mutable schedule. Instructions are named by their original index, positions by position."""

    def __init__(
        self, listing: Listing, table: Distances | None = None, scoreboards: Scoreboards = Scoreboards.KEPT
    ):
        self.listing = listing
        self.code: tuple[Instruction, ...] = listing.instructions
        self.table = table or distances(listing.kernel.arch)
        self.blocks: tuple[Block, ...] = control_flow(listing)
        self.originals = Originals.of(self.blocks, self.code, self.table)
        self.bounds = Bounds(self.blocks, self.originals)
        self.block_of = self.bounds.block_of
        kernel = listing.kernel
        self.is_opaque = bool(kernel.unknown_records()) or kernel.has_relocations or leaves_kernel(self.code)
        """Something in the kernel is not understood: nothing in it may change."""
        self.fixed = self._fixed_positions()
        self.glued = glued_units(self.code, self.blocks)
        controls = {i.index: i.control for i in self.code}
        self.order = list(range(len(self.code)))
        self._first_graphs = [self._graph(block, controls) for block in self.blocks]
        self.scoreboards = scoreboards
        self._reassigned: dict[int, Reassignment] = {}
        if scoreboards is Scoreboards.REASSIGNED and not self.is_opaque:
            for block in self.blocks:
                found = Reassignment.of(block, self._first_graphs[block.number], self.bounds)
                if found is not None:
                    self._reassigned[block.number] = found
                    self._first_graphs[block.number] = found.graph
        self._neighbours: dict[int, Neighbours] = {}
        self.reset()

    def reset(self) -> None:
        """Back to the original schedule."""
        n = len(self.code)
        self.order = list(range(n))
        self.position = list(range(n))
        self.stall = [i.control.stall for i in self.code]
        self.wait_mask = [i.control.wait_mask for i in self.code]
        self.write_barrier = [i.control.write_barrier for i in self.code]
        self.read_barrier = [i.control.read_barrier for i in self.code]
        self.yields = [i.control.yield_ for i in self.code]
        self.keeps_reuse = [True] * n
        self.time = list(self.originals.times)
        self.length = list(self.bounds.length)
        self.graphs = list(self._first_graphs)
        self.controls = [i.control for i in self.code]
        """Present control bits by instruction."""
        self.exchanges = Exchanges(self)
        for block in self.blocks:
            self._index(block)

    def restore(self, schedule: Schedule) -> None:
        """To a schedule that moves on this board have led to before."""
        for block in self.blocks:
            here = slice(block.start, block.end)
            order, controls = list(schedule.order[here]), list(schedule.controls[here])
            if order != self.order[here] or controls != self.controls[here]:
                self._restore_block(block, order, schedule)

    def _restore_block(self, block: Block, window: Sequence[int], schedule: Schedule) -> None:
        rebuild, time = False, 0
        self.order[block.start : block.end] = window
        for p, i in enumerate(window, block.start):
            control = schedule.controls[i]
            # A graph with other waits than the original's depends on the order it was built from: this one.
            rebuild |= control.wait_mask != self.wait_mask[i]
            rebuild |= control.wait_mask != self.code[i].control.wait_mask
            self.position[i], self.time[i] = p, time
            self.stall[i], self.yields[i] = control.stall, control.yield_
            self.wait_mask[i] = control.wait_mask
            self.write_barrier[i], self.read_barrier[i] = control.write_barrier, control.read_barrier
            self.keeps_reuse[i] = True
            time += control.stall
        self.length[block.number] = time
        for i in window:
            # Without a flag where it could have one, it was dropped.
            if self.code[i].control.reuse:
                self.keeps_reuse[i] = self.reuse(i) == schedule.controls[i].reuse
        self.controls[block.start : block.end] = schedule.controls[block.start : block.end]
        # The instruction before the block may have lost its follower, or found it again.
        self._renew(self.order[max(0, block.start - 1) : block.start])
        self.exchanges.forget(block)
        if rebuild and not self.reassigns(block.number):
            self._rebuild(block)

    # ---- reading ----

    def schedule(self) -> Schedule:
        return Schedule(self.listing, tuple(self.order), tuple(self.controls))

    @property
    def mask(self) -> bytearray:
        """Positions whose instruction may change places with the next."""
        return self.exchanges.mask

    def reuse(self, i: int) -> int:
        """Operand-cache flags stay only while the next instruction is the one they were meant for."""
        if not self.keeps_reuse[i] or self.yields[i]:
            return 0
        position = self.position[i] + 1
        follows = position < len(self.order) and self.order[position] == i + 1
        return self.code[i].control.reuse if follows else 0

    def reassigns(self, number: int) -> bool:
        """Are the scoreboards of this block reassigned where an order needs it?"""
        return number in self._reassigned

    def legal_swaps(self) -> list[int]:
        """Positions p such that the instructions at p and p + 1 may change places."""
        return [p for p, legal in enumerate(self.mask) if legal]

    def inheritable_swaps(self) -> list[int]:
        """Further swaps that become legal when the lower instruction copies wait bits of the upper one."""
        return [p for p in range(len(self.order) - 1) if not self.mask[p] and self.inherited_bits(p)]

    def is_fixed(self, i: int) -> bool:
        """Pinned: control flow, fences, fillers, unknown opcodes and all of an unknown opcode's block."""
        return self.fixed[i]

    def reach(self, i: int) -> list[int]:
        """Positions that `move` takes an instruction to, the one it has among them."""
        block, here = self.blocks[self.block_of[i]], self.position[i]
        return [to for to in self.span(i) if to == here or self._arranged(block, self._moved(i, to))]

    def span(self, i: int) -> list[int]:
        """Positions that dependences and padding leave an instruction; no stalls may express some of them.

        Worked out for all positions at once, where `reach` tries each.
        """
        position = self.position[i]
        if i in self.glued:
            return [position]
        block = self.blocks[self.block_of[i]]
        low, high = self.reaches(block)
        lowest, highest = int(low[i - block.start]), int(high[i - block.start])
        return [to for to in range(lowest, highest + 1) if not self._splits_unit(position, to)]

    def reaches(self, block: Block) -> tuple[Int, Int]:
        """First and last position that each instruction of a block may take, padding units not considered."""
        order = np.array(self.order[block.start : block.end], np.int64) - block.start
        low, high = self._neighbours[block.number].reaches(order)
        return low + block.start, high + block.start

    def _splits_unit(self, position: int, to: int) -> bool:
        """Would an instruction taken from one position to another stand inside a padding unit?"""
        if position == to:
            return False
        upper, lower = (to - 1, to) if to < position else (to, to + 1)
        return (
            upper >= 0 and lower < len(self.order) and self.glued.get(self.order[upper]) == self.order[lower]
        )

    # ---- moves; each answers whether it was legal, and changes nothing if not ----

    def swap(self, p: int) -> bool:
        """Exchange the instructions at p and p + 1; their control codes travel with them."""
        if not self.mask[p]:
            return False
        a, b = self.order[p], self.order[p + 1]
        start = self.time[a]
        self.order[p], self.order[p + 1] = b, a
        self.position[a], self.position[b] = p + 1, p
        self.time[b] = start
        self.time[a] = start + self.stall[b]
        self.exchanges.after_swap(a, b, p)
        self._renew(self.order[max(0, p - 1) : p + 3])
        return True

    def inherited_bits(self, p: int) -> int:
        """Wait bits with which the instruction at p + 1 may leave the shelter of the one at p, else 0."""
        a, b = self.order[p], self.order[p + 1]
        if self.fixed[a] or self.fixed[b] or a in self.glued or b in self.glued:
            return 0
        if self.block_of[a] != self.block_of[b]:
            return 0
        graph = self.graphs[self.block_of[a]]
        edge = graph.successors[a].get(b)
        if edge is None or edge.reasons != {Reason.WAIT}:
            return 0
        bits = graph.inherits[a, b]
        return bits if bits and self.exchanges.has_time(p) else 0

    def swap_inheriting(self, p: int) -> bool:
        """Exchange p and p + 1 although the lower one relies on the upper one's wait, which it copies."""
        bits = self.inherited_bits(p)
        if not bits:
            return False
        a, b = self.order[p], self.order[p + 1]
        before = self.wait_mask[b]
        block = self.blocks[self.block_of[a]]
        self.wait_mask[b] |= bits
        self._rebuild(block)
        if not self.mask[p] or self.exchanges.slack_in[b] < 0:
            self.wait_mask[b] = before
            self._rebuild(block)
            return False
        return self.swap(p)

    def move(self, i: int, to: int) -> bool:
        """Take an instruction to another position of its block and recompute the block's stalls."""
        if to == self.position[i]:
            return True
        return to in self.span(i) and self._arrange(self.blocks[self.block_of[i]], self._moved(i, to))

    def _moved(self, i: int, to: int) -> list[int]:
        """The order of its block with an instruction at another position."""
        block = self.blocks[self.block_of[i]]
        window = self.order[block.start : block.end]
        window.remove(i)
        window.insert(to - block.start, i)
        return window

    def drag(self, i: int, to: int) -> bool:
        """The same, but dependences do not stop it: what it has to stay behind or ahead of comes along."""
        block = self.blocks[self.block_of[i]]
        if self.fixed[i] or not block.start <= to < block.end:
            return False
        window, here = self.order[block.start : block.end], self.position[i] - block.start
        graph = self.graphs[block.number]
        new = dragged(window, here, to - block.start, graph, self.glued, self.fixed)
        return new is not None and self._arrange(block, new)

    def reorder(self, number: int, window: list[int]) -> bool:
        """Give a block any order its dependences allow, with the smallest stalls for that order."""
        block = self.blocks[number]
        position = {i: p for p, i in enumerate(window, block.start)}
        if sorted(position) != sorted(self.order[block.start : block.end]) or len(window) != len(block):
            return False
        graph = self.graphs[number]
        for i, p in position.items():
            if self.fixed[i] and p != self.position[i]:
                return False
            if self.glued.get(i, i) != i and position[self.glued[i]] != p + 1:
                return False
            if any(position[c] < p for c in graph.successors[i]):
                return False
        return self._crosses_no_pin(block, position) and self._arrange(block, window)

    def _crosses_no_pin(self, block: Block, position: Mapping[int, int]) -> bool:
        """Nothing may pass a pinned instruction, whether or not they depend on each other."""
        pins = [p for p in range(block.start, block.end) if self.fixed[self.order[p]]]
        return all(bisect(pins, self.position[i]) == bisect(pins, p) for i, p in position.items())

    def _arrange(self, block: Block, window: list[int]) -> bool:
        found = self._arranged(block, window)
        if found is None:
            return False
        here = slice(block.start, block.end)
        self.order[here] = window
        if found.scoreboards is not None:
            self.write_barrier[here], self.read_barrier[here], self.wait_mask[here] = found.scoreboards
        for p in range(block.start, block.end):
            self.position[self.order[p]] = p
        self._set_times(block, found.times)
        return True

    def _arranged(self, block: Block, window: list[int]) -> Arranged | None:
        """Issue times for an order, and the scoreboards that go with it; None if nothing expresses it."""
        if self.is_opaque:
            return None
        if self.reassigns(block.number):
            return self._reassigned[block.number].arrange(window)
        times = self.bounds.earliest(block, window)
        return None if times is None else Arranged(times)

    def retime(self, number: int) -> bool:
        """The smallest stalls for a block's present order."""
        block = self.blocks[number]
        return self._arrange(block, self.order[block.start : block.end])

    def set_stall(self, i: int, stall: int) -> bool:
        """Edit one stall count; a long one makes the instruction yield."""
        if self.is_opaque or not self.bounds.limits[i].stall <= stall <= MAX_STALL or stall == self.stall[i]:
            return False
        block = self.blocks[self.block_of[i]]
        if self.reassigns(block.number):
            return False
        delta = stall - self.stall[i]
        times = [self.time[j] + (delta if self.position[j] > self.position[i] else 0)
                 for j in self.order[block.start : block.end]]  # fmt: skip
        times.append(self.length[block.number] + delta)
        if not self.bounds.hold(block, self.order[block.start : block.end], times):
            return False
        self._set_times(block, times)
        return True

    def set_yield(self, i: int, yields: bool) -> bool:
        """Edit the yield hint where the encoding leaves a choice. Yielding drops the reuse flags."""
        choice = 0 < self.stall[i] <= LONGEST_STALL_WITHOUT_YIELD
        if self.is_opaque or yields == self.yields[i] or not choice:
            return False
        self.yields[i] = yields
        self._renew((i,))
        return True

    def set_reuse(self, i: int, keep: bool) -> bool:
        """Drop the operand-cache flags of an instruction, or take them up again where they are valid."""
        if self.is_opaque or keep == self.keeps_reuse[i] or not self.code[i].control.reuse:
            return False
        self.keeps_reuse[i] = keep
        self._renew((i,))
        return True

    # ---- inside ----

    def _fixed_positions(self) -> list[bool]:
        fixed = [self.is_opaque or i.order is Order.PINNED for i in self.code]
        for block in self.blocks:
            if any(self.code[i].declaration is None for i in range(block.start, block.end)):
                fixed[block.start : block.end] = [True] * len(block)
        return fixed

    def _graph(self, block: Block, controls: Mapping[int, Control]) -> Graph:
        order = self.order[block.start : block.end]
        return build_graph(block, order, controls, self.originals)

    def _rebuild(self, block: Block) -> None:
        window = self.order[block.start : block.end]
        self._renew(window)
        # Built from another order a graph can be stricter: the waits of the original get its own graph back.
        is_original = all(self.wait_mask[i] == self.code[i].control.wait_mask for i in window)
        controls = {i: self.controls[i] for i in window}
        number = block.number
        self.graphs[number] = self._first_graphs[number] if is_original else self._graph(block, controls)
        self._index(block)
        self.exchanges.forget(block)

    def _index(self, block: Block) -> None:
        graph = self.graphs[block.number]
        self.bounds.index(block, graph)
        self._neighbours[block.number] = Neighbours.of(block, graph, self.fixed[block.start : block.end])

    def _renew(self, instructions: Iterable[int]) -> None:
        """Bring the control bits of instructions up to date."""
        for i in instructions:
            control = self.code[i].control
            self.controls[i] = _control(
                self.stall[i],
                self.yields[i],
                self.write_barrier[i],
                self.read_barrier[i],
                self.wait_mask[i],
                self.reuse(i) if control.reuse else 0,
            )

    def _set_times(self, block: Block, times: list[int]) -> None:
        """Take over issue times (the last entry is the block's end) as stall counts."""
        window = self.order[block.start : block.end]
        for k, i in enumerate(window):
            self.time[i] = times[k]
            self.stall[i] = times[k + 1] - times[k]
            if not 0 < self.stall[i] <= LONGEST_STALL_WITHOUT_YIELD:
                self.yields[i] = True
        self.length[block.number] = times[-1]
        # The instruction before the block may have lost its follower, or found it again.
        self._renew(self.order[max(0, block.start - 1) : block.end])
        self.exchanges.forget(block)


@cache
def _control(
    stall: int, yields: bool, write: int | None, read: int | None, wait_mask: int, reuse: int
) -> Control:
    """Few different ones occur, and the game asks for them all the time."""
    return Control(stall, yields, write, read, wait_mask, reuse)
