"""The board of the game: one kernel's present schedule with everything needed to judge a move quickly.

Every legal move keeps all dependences of the original at a distance of at least min(original, required),
keeps every scoreboard's protection, and keeps blocks, pinned instructions and padding where they are.
"""

from bisect import bisect
from collections.abc import Iterable, Iterator, Mapping
from functools import cache

from cuasmrl.sass import MAX_STALL, Control, Distances, Instruction, Listing, Order, distances
from cuasmrl.sass.control import LONGEST_STALL_WITHOUT_YIELD
from cuasmrl.schedule.blocks import Block, control_flow
from cuasmrl.schedule.bounds import Bounds
from cuasmrl.schedule.dependences import Graph, Originals, Reason, build_graph
from cuasmrl.schedule.pins import glued_units, leaves_kernel
from cuasmrl.schedule.schedule import Schedule


class Board:
    """A mutable schedule. Instructions are named by their original index, places by position."""

    def __init__(self, listing: Listing, table: Distances | None = None):
        self.listing = listing
        self.code: tuple[Instruction, ...] = listing.instructions
        self.table = table or distances(listing.kernel.arch)
        self.blocks: tuple[Block, ...] = control_flow(listing)
        self.originals = Originals.of(self.blocks, self.code, self.table)
        self._bounds = Bounds(self.blocks, self.originals)
        self.block_of = self._bounds.block_of
        kernel = listing.kernel
        self.is_opaque = bool(kernel.unknown_records()) or kernel.has_relocations or leaves_kernel(self.code)
        """Something in the kernel is not understood: nothing in it may change."""
        self._fixed = self._fixed_places()
        self._glued = glued_units(self.code, self.blocks)
        self.graphs: list[Graph] = []
        self._inherited = False
        self.reset()

    def reset(self) -> None:
        """Back to the original schedule."""
        n = len(self.code)
        self.order = list(range(n))
        self.position = list(range(n))
        self.stall = [i.control.stall for i in self.code]
        self.wait_mask = [i.control.wait_mask for i in self.code]
        self.yields = [i.control.yield_ for i in self.code]
        self.keeps_reuse = [True] * n
        self.time = list(self.originals.times)
        self.length = list(self._bounds.length)
        if not self.graphs or self._inherited:
            controls = {i.index: i.control for i in self.code}
            self.graphs = [self._graph(block, controls) for block in self.blocks]
        self._inherited = False
        self.controls = [i.control for i in self.code]
        """Present control bits by instruction."""
        self.slack_in = [0] * n
        self.slack_out = [0] * n
        self._mask = bytearray(n)
        self._stale = set(range(len(self.blocks)))
        for block in self.blocks:
            self._bounds.index(block, self.graphs[block.number])

    # ---- reading ----

    def schedule(self) -> Schedule:
        return Schedule(self.listing, tuple(self.order), tuple(self.controls))

    @property
    def mask(self) -> bytearray:
        """Positions whose instruction may change places with the next."""
        for number in self._stale:
            self._refresh(self.blocks[number])
        self._stale.clear()
        return self._mask

    def reuse(self, i: int) -> int:
        """Operand-cache flags stay only while the next instruction is the one they were meant for."""
        if not self.keeps_reuse[i] or self.yields[i]:
            return 0
        place = self.position[i] + 1
        follows = place < len(self.order) and self.order[place] == i + 1
        return self.code[i].control.reuse if follows else 0

    def legal_swaps(self) -> list[int]:
        """Positions p such that the instructions at p and p + 1 may change places."""
        return [p for p, legal in enumerate(self.mask) if legal]

    def inheritable_swaps(self) -> list[int]:
        """Further swaps that become legal when the lower instruction copies wait bits of the upper one."""
        return [p for p in range(len(self.order) - 1) if not self.mask[p] and self.inherited_bits(p)]

    def is_fixed(self, i: int) -> bool:
        """Pinned: control flow, fences, fillers, unknown opcodes and all of an unknown opcode's block."""
        return self._fixed[i]

    def reach(self, i: int) -> list[int]:
        """Positions an instruction may take in its block with recomputed stalls, its dependences allowing."""
        place = self.position[i]
        if self._fixed[i] or i in self._glued:
            return [place]
        graph = self.graphs[self.block_of[i]]
        block = self.blocks[self.block_of[i]]
        above, below = graph.predecessors[i], graph.successors[i]
        low = high = place
        while low > block.start and not self._fixed[self.order[low - 1]] and self.order[low - 1] not in above:
            low -= 1
        while (
            high + 1 < block.end
            and not self._fixed[self.order[high + 1]]
            and self.order[high + 1] not in below
        ):
            high += 1
        return [to for to in range(low, high + 1) if not self._splits_unit(place, to)]

    def _splits_unit(self, place: int, to: int) -> bool:
        """Would an instruction taken from one place to another stand inside a padding unit?"""
        if place == to:
            return False
        upper, lower = (to - 1, to) if to < place else (to, to + 1)
        return (
            upper >= 0 and lower < len(self.order) and self._glued.get(self.order[upper]) == self.order[lower]
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
        self._after_swap(a, b, p)
        self._renew(self.order[max(0, p - 1) : p + 3])
        return True

    def inherited_bits(self, p: int) -> int:
        """Wait bits with which the instruction at p + 1 may leave the shelter of the one at p, else 0."""
        a, b = self.order[p], self.order[p + 1]
        if self._fixed[a] or self._fixed[b] or a in self._glued or b in self._glued:
            return 0
        if self.block_of[a] != self.block_of[b]:
            return 0
        graph = self.graphs[self.block_of[a]]
        edge = graph.successors[a].get(b)
        if edge is None or edge.reasons != {Reason.WAIT}:
            return 0
        bits = graph.inherits[a, b]
        return bits if bits and self._has_time(p) else 0

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
        if not self.mask[p] or self.slack_in[b] < 0:
            self.wait_mask[b] = before
            self._rebuild(block)
            return False
        return self.swap(p)

    def move(self, i: int, to: int) -> bool:
        """Take an instruction to another position of its block and recompute the block's stalls."""
        if to not in self.reach(i):
            return False
        block = self.blocks[self.block_of[i]]
        window = self.order[block.start : block.end]
        window.remove(i)
        window.insert(to - block.start, i)
        return self._arrange(block, window)

    def reorder(self, number: int, window: list[int]) -> bool:
        """Give a block any order its dependences allow, with the smallest stalls for that order."""
        block = self.blocks[number]
        place = {i: p for p, i in enumerate(window, block.start)}
        if sorted(place) != sorted(self.order[block.start : block.end]) or len(window) != len(block):
            return False
        graph = self.graphs[number]
        for i, p in place.items():
            if self._fixed[i] and p != self.position[i]:
                return False
            if self._glued.get(i, i) != i and place[self._glued[i]] != p + 1:
                return False
            if any(place[c] < p for c in graph.successors[i]):
                return False
        return self._crosses_no_pin(block, place) and self._arrange(block, window)

    def _crosses_no_pin(self, block: Block, place: Mapping[int, int]) -> bool:
        """Nothing may pass a pinned instruction, whether or not they depend on each other."""
        pins = [p for p in range(block.start, block.end) if self._fixed[self.order[p]]]
        return all(bisect(pins, self.position[i]) == bisect(pins, p) for i, p in place.items())

    def _arrange(self, block: Block, window: list[int]) -> bool:
        times = None if self.is_opaque else self._bounds.earliest(block, window)
        if times is None:
            return False
        self.order[block.start : block.end] = window
        for p in range(block.start, block.end):
            self.position[self.order[p]] = p
        self._set_times(block, times)
        return True

    def retime(self, number: int) -> bool:
        """The smallest stalls for a block's present order."""
        block = self.blocks[number]
        return self._arrange(block, self.order[block.start : block.end])

    def set_stall(self, i: int, stall: int) -> bool:
        """Edit one stall count; a long one makes the instruction yield."""
        if self.is_opaque or not self._bounds.limits[i].stall <= stall <= MAX_STALL or stall == self.stall[i]:
            return False
        block = self.blocks[self.block_of[i]]
        delta = stall - self.stall[i]
        times = [self.time[j] + (delta if self.position[j] > self.position[i] else 0)
                 for j in self.order[block.start : block.end]]  # fmt: skip
        times.append(self.length[block.number] + delta)
        if not self._bounds.hold(block, self.order[block.start : block.end], times):
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

    def _fixed_places(self) -> list[bool]:
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
        self.graphs[block.number] = self._graph(block, {i: self.controls[i] for i in window})
        self._inherited = True
        self._bounds.index(block, self.graphs[block.number])
        self._stale.add(block.number)

    def _renew(self, instructions: Iterable[int]) -> None:
        """Bring the control bits of instructions up to date."""
        for i in instructions:
            control = self.code[i].control
            self.controls[i] = _control(
                self.stall[i],
                self.yields[i],
                control.write_barrier,
                control.read_barrier,
                self.wait_mask[i],
                self.reuse(i),
            )

    def _refresh(self, block: Block) -> None:
        """Recompute slacks and the swap mask of one block."""
        for i in self.order[block.start : block.end]:
            self._update_slack(i)
        for p in range(block.start, block.end):
            self._mask[p] = self._can_swap(p)

    def _update_slack(self, i: int) -> None:
        self._update_slack_in(i)
        self._update_slack_out(i)

    def _update_slack_in(self, i: int) -> None:
        time, now = self.time, self.time[i]
        slack = now - self._bounds.limits[i].head
        for p, need in self._bounds.incoming[i]:
            found = now - time[p] - need
            slack = min(slack, found)
        self.slack_in[i] = slack

    def _update_slack_out(self, i: int) -> None:
        time, now = self.time, self.time[i]
        slack = self.length[self.block_of[i]] - now - self._bounds.limits[i].tail
        for c, need in self._bounds.outgoing[i]:
            found = time[c] - now - need
            slack = min(slack, found)
        self.slack_out[i] = slack

    def _can_swap(self, p: int) -> bool:
        if p + 1 >= len(self.order):
            return False
        a, b = self.order[p], self.order[p + 1]
        if self._fixed[a] or self._fixed[b] or self.block_of[a] != self.block_of[b]:
            return False
        if a in self._glued or b in self._glued or b in self.graphs[self.block_of[a]].successors[a]:
            return False
        return self._has_time(p)

    def _has_time(self, p: int) -> bool:
        """Would every distance hold if p and p + 1 changed places with their control codes?"""
        a, b = self.order[p], self.order[p + 1]
        if self.slack_in[b] < self.stall[a] or self.slack_out[a] < self.stall[b]:
            return False
        start = self.time[a]
        same = self._bounds.pipe[a] == self._bounds.pipe[b]
        if same and self.stall[b] < self._bounds.limits[b].spacing:
            return False
        before = self._neighbour(p - 1, -1, self._bounds.pipe[b], start)
        if before is not None and start - self.time[before] < self._bounds.limits[before].spacing:
            return False
        later = start + self.stall[b]
        after = self._neighbour(p + 2, 1, self._bounds.pipe[a], later)
        return after is None or self.time[after] - later >= self._bounds.limits[a].spacing

    def _neighbour(self, place: int, step: int, pipe: str, time: int) -> int | None:
        """The nearest instruction of a pipe in the block, looking no farther than a spacing can matter."""
        order, times, pipes, number = self.order, self.time, self._bounds.pipe, self.block_of
        home = number[order[place - step]]
        while 0 <= place < len(order):
            i = order[place]
            if number[i] != home or abs(times[i] - time) > self._bounds.longest_spacing:
                return None
            if pipes[i] == pipe:
                return i
            place += step
        return None

    def _after_swap(self, a: int, b: int, p: int) -> None:
        touched = {a, b}
        for i in (a, b):
            self._update_slack(i)
            for c, _ in self._bounds.outgoing[i]:
                self._update_slack_in(c)
                touched.add(c)
            for q, _ in self._bounds.incoming[i]:
                self._update_slack_out(q)
                touched.add(q)
        places = {self.position[i] for i in touched}
        places |= {place - 1 for place in places}
        places |= set(self._window(p))
        for place in places:
            if place >= 0:
                self._mask[place] = self._can_swap(place)

    def _window(self, p: int) -> Iterator[int]:
        """Positions whose pipe spacing the pair at p can influence."""
        now, number = self.time[self.order[p]], self.block_of[self.order[p]]
        block = self.blocks[number]
        # A neighbour's own exchange shifts it by up to a stall count.
        reach = self._bounds.longest_spacing + 2 * MAX_STALL
        for step in (-1, 1):
            place = p
            while block.start <= place < block.end and abs(self.time[self.order[place]] - now) <= reach:
                yield place
                place += step

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
        self._stale.add(block.number)


@cache
def _control(
    stall: int, yields: bool, write: int | None, read: int | None, wait_mask: int, reuse: int
) -> Control:
    """Few different ones occur, and the game asks for them all the time."""
    return Control(stall, yields, write, read, wait_mask, reuse)
