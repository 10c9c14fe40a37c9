"""The board of the game: one kernel's present schedule with everything needed to judge a move quickly.

Every legal move keeps all dependences of the original at a distance of at least min(original, required),
keeps every scoreboard's protection, and keeps blocks, pinned instructions and padding where they are.
"""

from bisect import bisect
from collections.abc import Mapping
from functools import partial

import numpy as np

from cuasmrl.binary.sass import MAX_STALL, Control, Distances, Instruction, Listing, distances
from cuasmrl.binary.sass.control import LONGEST_STALL_WITHOUT_YIELD, NO_BARRIER
from cuasmrl.schedule import cells as state
from cuasmrl.schedule.blocks import Block, control_flow
from cuasmrl.schedule.bounds import Bounds
from cuasmrl.schedule.cells import HOLDS, STALL, WAITS, Cell, Int32, View
from cuasmrl.schedule.dependences import Graph, Originals, Reason, build_graph
from cuasmrl.schedule.drags import dragged
from cuasmrl.schedule.exchanges import Bytes, Exchanges
from cuasmrl.schedule.journal import Journal
from cuasmrl.schedule.pins import fixed_positions, glued_units, leaves_kernel
from cuasmrl.schedule.reach import ANYWHERE, Neighbours, find_fillers, find_reaches, other_positions, shifted
from cuasmrl.schedule.reassignment import Arranged, Reassignment, Scoreboards
from cuasmrl.schedule.retiming import Int
from cuasmrl.schedule.schedule import Schedule


class Board:
    """A mutable schedule. Instructions are named by their original index, positions by position.

    What changes stands in `cells`, for compiled code; lists such as `order` and `stall` follow it.
    """

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
        self.fixed = fixed_positions(self.code, self.blocks, self.is_opaque)
        """Pinned: control flow, fences, fillers, unknown opcodes and all of an unknown opcode's block."""
        self.glued = glued_units(self.code, self.blocks)
        self._original = state.original(self.code, self.originals.times)
        self._reuse: Int32 = self._original[Cell.BITS] >> 17
        self._block_numbers = np.array(self.block_of, np.int64)
        self._windows = [np.empty(len(block), np.int64) for block in self.blocks]
        """Of each block: where a new order is worked out."""
        self.cells: Int32 = self._original.copy()
        self._show(self.cells)
        controls = {i.index: i.control for i in self.code}
        self._first_graphs = [self._graph(block, controls) for block in self.blocks]
        self.scoreboards = scoreboards
        self._reassigned: dict[int, Reassignment] = {}
        if scoreboards is Scoreboards.REASSIGNED and not self.is_opaque:
            for block in self.blocks:
                found = Reassignment.of(block, self._first_graphs[block.number], self.bounds)
                if found is not None:
                    self._reassigned[block.number] = found
                    self._first_graphs[block.number] = found.graph
        names = {opcode: n for n, opcode in enumerate({i.opcode: None for i in self.code})}
        self.opcodes: Int = np.array([names[i.opcode] for i in self.code], np.int64)
        """Instruction → a number that tells its opcode from others."""
        self.neighbours: dict[int, Neighbours] = {}
        """What keeps the instructions of each block in order, for compiled code."""
        self.reset()

    def _show(self, cells: Int32) -> None:
        self.order = View(cells[Cell.ORDER], int)
        """Position → instruction."""
        self.position = View(cells[Cell.POSITION], int)
        """Instruction → position."""
        self.time = View(cells[Cell.TIME], int)
        """Instruction → cycles from the start of its block to its issue."""
        bits = cells[Cell.BITS]
        self.controls = View(bits, Control.of)
        """Present control bits by instruction, and each of them alone:"""
        self.stall = View(bits, lambda value: value & STALL)
        self.yields = View(bits, lambda value: not value & HOLDS)
        self.write_barrier = View(bits, lambda value: _barrier(value >> 5 & 7))
        self.read_barrier = View(bits, lambda value: _barrier(value >> 8 & 7))
        self.wait_mask = View(bits, lambda value: (value & WAITS) >> 11)
        self.keeps_reuse = View(cells[Cell.KEEPS_REUSE], bool)

    def reset(self) -> None:
        """Back to the original schedule."""
        self.cells[:] = self._original
        self.graphs = list(self._first_graphs)
        self._rebuilt: set[int] = set()
        """Blocks with other waits than the original's, hence another graph."""
        self.journal = Journal()
        self.exchanges = Exchanges(self.cells, self.bounds.longest_spacing)
        for block in self.blocks:
            self._index(block)

    def restore(self, schedule: Schedule) -> None:
        """To a schedule that moves on this board have led to before.

        What was done since is undone if the journal has it. Either way only the schedule decides what the
        board is like: a graph with other waits comes from the order it is built from, which is this one.
        """
        if self._rebuilt or not self.journal.rewind(schedule):
            self._take_over(schedule)
        state.forgive(self.cells)

    def _take_over(self, schedule: Schedule) -> None:
        self.journal.forget()
        changes = schedule.bits ^ self.cells[Cell.BITS]
        differs = (changes != 0) | (schedule.indices != self.cells[Cell.ORDER])
        blocks = [self.blocks[number] for number in np.unique(self._block_numbers[differs])]
        waits = (changes | schedule.bits ^ self._original[Cell.BITS]) & WAITS
        starts = np.array([block.start for block in blocks], np.int64)
        ends = np.array([block.end for block in blocks], np.int64)
        state.take_over(self.cells, self._reuse, starts, ends, schedule.indices, schedule.bits)
        for block in blocks:
            self.exchanges.forget(block)
            if not self.reassigns(block.number) and waits[block.start : block.end].any():
                self._rebuild(block)
        if np.array_equal(self.cells[Cell.BITS], schedule.bits):
            self.journal.mark(schedule)

    # ---- reading ----

    def schedule(self) -> Schedule:
        present = self.journal.present
        if present is None:
            order, bits = self.cells[Cell.ORDER].copy(), self.cells[Cell.BITS].copy()
            present = Schedule.of_arrays(self.listing, order, bits)
            self.journal.mark(present)
        return present

    @property
    def length(self) -> list[int]:
        """Cycles of each block."""
        last = [self.order[block.end - 1] for block in self.blocks]
        return [self.time[i] + self.stall[i] for i in last]

    @property
    def mask(self) -> Bytes:
        """Positions whose instruction may change places with the next."""
        return self.exchanges.mask

    def reuse(self, i: int) -> int:
        """Operand-cache flags stay only while the next instruction is the one they were meant for."""
        return self.controls[i].reuse

    def reassigns(self, number: int) -> bool:
        """Are the scoreboards of this block reassigned where an order needs it?"""
        return number in self._reassigned

    def legal_swaps(self) -> list[int]:
        """Positions p such that the instructions at p and p + 1 may change places."""
        return [p for p, legal in enumerate(self.mask.tolist()) if legal]

    def inheritable_swaps(self) -> list[int]:
        """Further swaps that become legal when the lower instruction copies wait bits of the upper one."""
        mask = self.mask.tolist()
        return [p for p in range(len(self.order) - 1) if not mask[p] and self.inherited_bits(p)]

    def is_fixed(self, i: int) -> bool:
        return self.fixed[i]

    def reach(self, i: int) -> list[int]:
        """Positions that `move` takes an instruction to, the one it has among them."""
        block, here = self.blocks[self.block_of[i]], self.position[i]
        return [to for to in self.span(i) if to == here or self._arranged(block, self._moved(i, to))]

    def span(self, i: int) -> list[int]:
        """Positions that dependences and padding leave an instruction; no stalls may express some of them.

        Worked out for all positions at once, where `reach` tries each.
        """
        return sorted([self.position[i], *self.others(i).tolist()])

    def others(self, i: int, farthest: int = ANYWHERE) -> Int:
        """Its span, at most so far away, without the position that it has."""
        number = self.block_of[i]
        found, start = self._windows[number], self.blocks[number].start
        count = other_positions(self.cells, self.neighbours[number], i - start, farthest, found)
        return found[:count].copy()

    def reaches(self, block: Block) -> tuple[Int, Int]:
        """First and last position that each instruction of a block may take, padding units not considered."""
        low, high = np.empty(len(block), np.int64), np.empty(len(block), np.int64)
        find_reaches(self.cells, self.neighbours[block.number], low, high)
        return low, high

    def fillers(self, block: Block, gap: int) -> Int:
        """Instructions of a block that may go elsewhere to stand in front of the one at a position."""
        found = self._windows[block.number]
        return found[: find_fillers(self.cells, self.neighbours[block.number], gap, found)].copy()

    def alike(self, i: int, most: int) -> list[int]:
        """An instruction and the next ones of its opcode in its block."""
        behind = self.cells[Cell.ORDER, self.position[i] : self.blocks[self.block_of[i]].end]
        found: list[int] = behind[self.opcodes[behind] == self.opcodes[i]][:most].tolist()
        return found

    # ---- moves; each answers whether it was legal, and changes nothing if not ----

    def swap(self, p: int) -> bool:
        """Exchange the instructions at p and p + 1; their control codes travel with them."""
        if not self.mask[p]:
            return False
        block = self.blocks[self.block_of[p]]
        self.journal.note(partial(self._exchange, block, p))
        self._exchange(block, p)
        return True

    def inherited_bits(self, p: int) -> int:
        """Wait bits with which the instruction at p + 1 may leave the shelter of the one at p, else 0."""
        a, b = self.order[p : p + 2]
        block = self.blocks[self.block_of[a]]
        if self.fixed[a] or self.fixed[b] or a in self.glued or b in self.glued:
            return 0
        if self.block_of[b] != block.number or self.reassigns(block.number):
            return 0
        graph = self.graphs[block.number]
        edge = graph.successors[a].get(b)
        if edge is None or edge.reasons != {Reason.WAIT}:
            return 0
        bits = graph.inherits[a, b]
        return bits if bits and self.exchanges.has_time(block, p) else 0

    def swap_inheriting(self, p: int) -> bool:
        """Exchange p and p + 1 although the lower one relies on the upper one's wait, which it copies."""
        bits = self.inherited_bits(p)
        if not bits:
            return False
        b = self.order[p + 1]
        before = int(self.cells[Cell.BITS, b])
        block = self.blocks[self.block_of[b]]
        self.journal.forget()
        self.cells[Cell.BITS, b] |= bits << 11
        self._rebuild(block)
        if not self.mask[p] or self.exchanges.slack_in[b] < 0:
            self.cells[Cell.BITS, b] = before
            self._rebuild(block)
            return False
        return self.swap(p)

    def move(self, i: int, to: int) -> bool:
        """Take an instruction to another position of its block and recompute the block's stalls."""
        if to == self.position[i]:
            return True
        window = self._moved(i, to)
        return window is not None and self._arrange(self.blocks[self.block_of[i]], window)

    def _moved(self, i: int, to: int) -> Int | None:
        """The order of its block with an instruction at another position; None if it may not go there."""
        number = self.block_of[i]
        window, start = self._windows[number], self.blocks[number].start
        fits = shifted(self.cells, self.neighbours[number], i - start, to - start, window)
        return window if fits else None

    def drag(self, i: int, to: int) -> bool:
        """The same, but dependences do not stop it: what it has to stay behind or ahead of comes along."""
        number = self.block_of[i]
        window, start = self._windows[number], self.blocks[number].start
        fits = dragged(self.cells, self.neighbours[number], i - start, to - start, window)
        return fits and self._arrange(self.blocks[number], window)

    def reorder(self, number: int, window: list[int]) -> bool:
        """Give a block any order its dependences allow, with the smallest stalls for that order."""
        block, old = self.blocks[number], self.position[:]
        position = {i: p for p, i in enumerate(window, block.start)}
        if sorted(position) != list(range(block.start, block.end)) or len(window) != len(block):
            return False
        graph = self.graphs[number]
        for i, p in position.items():
            if self.fixed[i] and p != old[i]:
                return False
            if self.glued.get(i, i) != i and position[self.glued[i]] != p + 1:
                return False
            if any(position[c] < p for c in graph.successors[i]):
                return False
        # Nothing may pass a pinned instruction, whether or not they depend on each other.
        pins = [old[i] for i in range(block.start, block.end) if self.fixed[i]]
        pins.sort()
        if any(bisect(pins, old[i]) != bisect(pins, p) for i, p in position.items()):
            return False
        return self._arrange(block, np.array(window, np.int64) - block.start)

    def _arrange(self, block: Block, window: Int) -> bool:
        found = self._arranged(block, window)
        if found is None:
            return False
        self._note(block)
        if found.scoreboards is not None:
            state.announce(self.cells, block.start, found.scoreboards)
        state.settle(self.cells, self._reuse, block.start, window, found.times)
        self.exchanges.forget(block)
        return True

    def _arranged(self, block: Block, window: Int | None) -> Arranged | None:
        """Issue times for an order, and the scoreboards that go with it; None if nothing expresses it."""
        if self.is_opaque or window is None:
            return None
        if self.reassigns(block.number):
            return self._reassigned[block.number].arrange(window)
        times = self.bounds.arrays[block.number].earliest(window)
        return None if times is None else Arranged(times)

    def retime(self, number: int) -> bool:
        """The smallest stalls for a block's present order."""
        return self._arrange(self.blocks[number], self._window(self.blocks[number]))

    def set_stall(self, i: int, stall: int) -> bool:
        """Edit one stall count; a long one makes the instruction yield."""
        if self.is_opaque or not self.bounds.limits[i].stall <= stall <= MAX_STALL or stall == self.stall[i]:
            return False
        block = self.blocks[self.block_of[i]]
        if self.reassigns(block.number):
            return False
        window = self._window(block)
        times = np.append(self.cells[Cell.TIME, block.start + window], self.length[block.number]).astype(
            np.int64
        )
        times[self.position[i] - block.start + 1 :] += stall - self.stall[i]
        if not self.bounds.arrays[block.number].hold(window, times):
            return False
        self._note(block)
        state.settle(self.cells, self._reuse, block.start, window, times)
        self.exchanges.forget(block)
        return True

    def set_yield(self, i: int, yields: bool) -> bool:
        """Edit the yield hint where the encoding leaves a choice. Yielding drops the reuse flags."""
        choice = 0 < self.stall[i] <= LONGEST_STALL_WITHOUT_YIELD
        if self.is_opaque or yields == self.yields[i] or not choice:
            return False
        self._edit(i, Cell.BITS, self.cells[Cell.BITS, i] ^ HOLDS)
        return True

    def set_reuse(self, i: int, keep: bool) -> bool:
        """Drop the operand-cache flags of an instruction, or take them up again where they are valid."""
        if self.is_opaque or keep == self.keeps_reuse[i] or not self._reuse[i]:
            return False
        self._edit(i, Cell.KEEPS_REUSE, keep)
        return True

    # ---- inside ----

    def _graph(self, block: Block, controls: Mapping[int, Control]) -> Graph:
        order = self.order[block.start : block.end]
        return build_graph(block, order, controls, self.originals)

    def _rebuild(self, block: Block) -> None:
        """The graph of a block whose waits have changed."""
        here, number = slice(block.start, block.end), block.number
        # Built from another order a graph can be stricter: the waits of the original get its own graph back.
        if not ((self.cells[Cell.BITS, here] ^ self._original[Cell.BITS, here]) & WAITS).any():
            self.graphs[number] = self._first_graphs[number]
            self._rebuilt.discard(number)
        else:
            self.graphs[number] = self._graph(block, {i: self.controls[i] for i in self.order[here]})
            self._rebuilt.add(number)
        self._index(block)

    def _index(self, block: Block) -> None:
        graph = self.graphs[block.number]
        arrays = self.bounds.index(block, graph)
        self.neighbours[block.number] = Neighbours.of(block, graph, self.fixed, self.glued)
        if not self.reassigns(block.number):
            self.exchanges.index(block, self.neighbours[block.number], arrays)

    def _window(self, block: Block) -> Int:
        """The present order of a block, counted from its first instruction."""
        return self.cells[Cell.ORDER, block.start : block.end].astype(np.int64) - block.start

    def _exchange(self, block: Block, p: int) -> None:
        state.exchange(self.cells, self._reuse, p)
        self.exchanges.after_swap(block, p)

    def _edit(self, i: int, row: Cell, value: int) -> None:
        """One number of an instruction, and the flags that follow from it."""
        self.journal.note(partial(self._put, i, row, int(self.cells[row, i])))
        self._put(i, row, value)

    def _put(self, i: int, row: Cell, value: int) -> None:
        self.cells[row, i] = value
        position = self.position[i]
        state.renew_reuse(self.cells, self._reuse, position, position + 1)

    def _note(self, block: Block) -> None:
        """All of a block as it is now."""
        old = self.cells[:, block.start : block.end].copy()
        self.journal.note(partial(self._put_back, block, old), old.size)

    def _put_back(self, block: Block, old: Int32) -> None:
        self.cells[:, block.start : block.end] = old
        state.renew_reuse(self.cells, self._reuse, block.start - 1, block.start)
        self.exchanges.forget(block)


def _barrier(number: int) -> int | None:
    return None if number == NO_BARRIER else number
