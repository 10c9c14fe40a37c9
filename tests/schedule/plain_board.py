"""The board in plain Python, on lists: what the compiled one has to do, move by move.

Dependences and bounds are those of a real board that never moves; everything that changes is here.
"""

from collections.abc import Mapping, Sequence

from cuasmrl.binary.sass import MAX_STALL, Control, Listing
from cuasmrl.binary.sass.control import LONGEST_STALL_WITHOUT_YIELD
from cuasmrl.schedule import Block, Board, Graph, Reason, Schedule, Scoreboards
from cuasmrl.schedule.dependences import build_graph
from cuasmrl.schedule.operations import traffic_of
from cuasmrl.schedule.slots import Slots
from tests.schedule.plain_exchanges import PlainExchanges

Assigned = tuple[list[int], list[list[int]] | None]
"""Issue times with the block's end; write barriers, read barriers and waits by instruction, or None."""


class PlainBoard:
    def __init__(self, listing: Listing, scoreboards: Scoreboards) -> None:
        self.rules = rules = Board(listing, scoreboards=scoreboards)
        self._compilers = Board(listing)
        """On which scoreboards are kept."""
        self.listing, self.code, self.blocks, self.block_of = (
            listing,
            rules.code,
            rules.blocks,
            rules.block_of,
        )
        self.fixed, self.glued, self.bounds = rules.fixed, rules.glued, rules.bounds
        self.graphs: list[Graph] = list(rules.graphs)
        self._first_graphs = list(rules.graphs)
        self._slots: dict[int, Slots] = {}
        for block in self.blocks:
            if rules.reassigns(block.number):
                traffic = traffic_of(block, rules.originals)
                assert traffic is not None
                self._slots[block.number] = Slots(block, traffic, rules.originals)
        n = len(self.code)
        self.order, self.position = list(range(n)), list(range(n))
        self.stall = [i.control.stall for i in self.code]
        self.yields = [i.control.yield_ for i in self.code]
        self.write_barrier = [i.control.write_barrier for i in self.code]
        self.read_barrier = [i.control.read_barrier for i in self.code]
        self.wait_mask = [i.control.wait_mask for i in self.code]
        self.keeps_reuse = [True] * n
        self.time = list(rules.originals.times)

    # ---- reading ----

    @property
    def length(self) -> list[int]:
        last = [self.order[block.end - 1] for block in self.blocks]
        return [self.time[i] + self.stall[i] for i in last]

    @property
    def exchanges(self) -> PlainExchanges:
        return PlainExchanges(self)

    def reassigns(self, number: int) -> bool:
        return number in self._slots

    def valid_reuse(self, i: int) -> int:
        position = self.position[i] + 1
        follows = position < len(self.order) and self.order[position] == i + 1
        return self.code[i].control.reuse if follows and not self.yields[i] else 0

    @property
    def controls(self) -> list[Control]:
        return [
            Control(
                self.stall[i], self.yields[i], self.write_barrier[i], self.read_barrier[i], self.wait_mask[i],
                self.valid_reuse(i) if self.keeps_reuse[i] else 0,
            )
            for i in range(len(self.code))
        ]  # fmt: skip

    def schedule(self) -> Schedule:
        return Schedule(self.listing, self.order, self.controls)

    def span(self, i: int) -> list[int]:
        here = self.position[i]
        if i in self.glued or self.fixed[i]:
            return [here]
        block, graph = self.blocks[self.block_of[i]], self.graphs[self.block_of[i]]
        low = high = here
        while low > block.start and self._lets_pass(self.order[low - 1], graph.predecessors[i]):
            low -= 1
        while high + 1 < block.end and self._lets_pass(self.order[high + 1], graph.successors[i]):
            high += 1
        return [to for to in range(low, high + 1) if not self._splits_unit(here, to)]

    def _lets_pass(self, other: int, tied: Mapping[int, object]) -> bool:
        return not self.fixed[other] and other not in tied

    def _splits_unit(self, here: int, to: int) -> bool:
        if here == to:
            return False
        upper, lower = (to - 1, to) if to < here else (to, to + 1)
        inside = upper >= 0 and lower < len(self.order)
        return inside and self.glued.get(self.order[upper]) == self.order[lower]

    # ---- moves ----

    def restore(self, schedule: Schedule) -> None:
        for block in self.blocks:
            window = schedule.order[block.start : block.end]
            was = [self.wait_mask[i] for i in range(block.start, block.end)]
            differs = list(window) != self.order[block.start : block.end] or any(
                schedule.controls[i] != self.controls[i] for i in window
            )
            if differs:
                self._restore_block(block, window, schedule)
                now = [self.wait_mask[i] for i in range(block.start, block.end)]
                compiled = [i.control.wait_mask for i in self.code[block.start : block.end]]
                if not self.reassigns(block.number) and not was == now == compiled:
                    self._rebuild(block)
        for i, control in enumerate(schedule.controls):
            self.keeps_reuse[i] = self.valid_reuse(i) == control.reuse

    def _restore_block(self, block: Block, window: Sequence[int], schedule: Schedule) -> None:
        time = 0
        self.order[block.start : block.end] = window
        for p, i in enumerate(window, block.start):
            control = schedule.controls[i]
            self.position[i], self.time[i] = p, time
            self.stall[i], self.yields[i], self.wait_mask[i] = (
                control.stall,
                control.yield_,
                control.wait_mask,
            )
            self.write_barrier[i], self.read_barrier[i] = control.write_barrier, control.read_barrier
            time += control.stall

    def swap(self, p: int) -> bool:
        if not self.exchanges.mask[p]:
            return False
        a, b = self.order[p], self.order[p + 1]
        start = self.time[a]
        self.order[p], self.order[p + 1] = b, a
        self.position[a], self.position[b] = p + 1, p
        self.time[b], self.time[a] = start, start + self.stall[b]
        return True

    def swap_inheriting(self, p: int) -> bool:
        a, b = self.order[p], self.order[p + 1]
        block = self.blocks[self.block_of[a]]
        graph = self.graphs[block.number]
        edge = graph.successors[a].get(b)
        loose = not any(self.fixed[i] or i in self.glued for i in (a, b))
        if not loose or edge is None or edge.reasons != {Reason.WAIT} or not graph.inherits[a, b]:
            return False
        if not self.exchanges.has_time(p):
            return False
        before = self.wait_mask[b]
        self.wait_mask[b] |= graph.inherits[a, b]
        self._rebuild(block)
        if not self.exchanges.mask[p] or self.exchanges.slack_in[b] < 0:
            self.wait_mask[b] = before
            self._rebuild(block)
            return False
        return self.swap(p)

    def move(self, i: int, to: int) -> bool:
        if to == self.position[i]:
            return True
        block = self.blocks[self.block_of[i]]
        window = self.order[block.start : block.end]
        window.remove(i)
        window.insert(to - block.start, i)
        return to in self.span(i) and self._arrange(block, window)

    def drag(self, i: int, to: int) -> bool:
        block = self.blocks[self.block_of[i]]
        if self.fixed[i] or not block.start <= to < block.end:
            return False
        window = self.order[block.start : block.end]
        new = self._dragged(
            window, self.position[i] - block.start, to - block.start, self.graphs[block.number]
        )
        return new is not None and self._arrange(block, new)

    def _dragged(self, window: list[int], here: int, to: int, graph: Graph) -> list[int] | None:
        if to == here:
            return None
        is_up = to < here
        low, high = min(to, here), max(to, here)
        span = window[low : high + 1]
        if any(self.fixed[i] for i in span):
            return None
        neighbours = graph.successors if is_up else graph.predecessors
        taken: set[int] = set()
        for i in reversed(span) if is_up else span:
            if i == window[here] or not taken.isdisjoint(neighbours[i]) or self._is_tied(i, taken):
                taken.add(i)
        moved, rest = [i for i in span if i in taken], [i for i in span if i not in taken]
        new = [*window[:low], *(moved + rest if is_up else rest + moved), *window[high + 1 :]]
        torn = any(
            self.glued.get(a, a) != a and self.glued[a] != b for a, b in zip(new, [*new[1:], -1], strict=True)
        )
        return None if torn else new

    def _is_tied(self, i: int, taken: set[int]) -> bool:
        if i not in self.glued:
            return False
        return self.glued[i] in taken or (i - 1 in taken and self.glued.get(i - 1) == i)

    def retime(self, number: int) -> bool:
        block = self.blocks[number]
        return self._arrange(block, self.order[block.start : block.end])

    def set_stall(self, i: int, stall: int) -> bool:
        block = self.blocks[self.block_of[i]]
        if not self.bounds.limits[i].stall <= stall <= MAX_STALL or stall == self.stall[i]:
            return False
        if self.reassigns(block.number):
            return False
        delta = stall - self.stall[i]
        window = self.order[block.start : block.end]
        times = [self.time[j] + (delta if self.position[j] > self.position[i] else 0) for j in window]
        times.append(self.length[block.number] + delta)
        if not self.bounds.hold(block, window, times):
            return False
        self._set_times(block, times)
        return True

    def set_yield(self, i: int, yields: bool) -> bool:
        if yields == self.yields[i] or not 0 < self.stall[i] <= LONGEST_STALL_WITHOUT_YIELD:
            return False
        self.yields[i] = yields
        return True

    def set_reuse(self, i: int, keep: bool) -> bool:
        if keep == self.keeps_reuse[i] or not self.code[i].control.reuse:
            return False
        self.keeps_reuse[i] = keep
        return True

    # ---- inside ----

    def _arrange(self, block: Block, window: list[int]) -> bool:
        found = self._reassigned(block, window) if self.reassigns(block.number) else self._kept(block, window)
        if found is None:
            return False
        times, boards = found
        self.order[block.start : block.end] = window
        for p, i in enumerate(window, block.start):
            self.position[i] = p
            if boards is not None:
                write, read, waits = boards[i - block.start]
                self.write_barrier[i] = None if write < 0 else write
                self.read_barrier[i] = None if read < 0 else read
                self.wait_mask[i] = waits
        self._set_times(block, times)
        return True

    def _kept(self, block: Block, window: list[int]) -> Assigned | None:
        times = self.bounds.earliest(block, window)
        return None if times is None else (times, None)

    def _reassigned(self, block: Block, window: list[int]) -> Assigned | None:
        position = {i: p for p, i in enumerate(window)}
        graph = self._compilers.graphs[block.number]
        if all(position[i] < position[c] for i in window for c in graph.successors.get(i, ())):
            times = self._compilers.bounds.earliest(block, window)
            if times is not None:
                return times, [_boards(i.control) for i in self.code[block.start : block.end]]
        times = self.bounds.earliest(block, window)
        found = None if times is None else self._slots[block.number].assign(window, times)
        return None if times is None or found is None else (times, found.T.tolist())

    def _set_times(self, block: Block, times: list[int]) -> None:
        for k, i in enumerate(self.order[block.start : block.end]):
            self.time[i], self.stall[i] = times[k], times[k + 1] - times[k]
            if not 0 < self.stall[i] <= LONGEST_STALL_WITHOUT_YIELD:
                self.yields[i] = True

    def _rebuild(self, block: Block) -> None:
        window, number = self.order[block.start : block.end], block.number
        controls = self.controls
        if all(self.wait_mask[i] == self.code[i].control.wait_mask for i in window):
            self.graphs[number] = self._first_graphs[number]
        else:
            held = {i: controls[i] for i in window}
            self.graphs[number] = build_graph(block, window, held, self.rules.originals)
        self.bounds.index(block, self.graphs[number])


def _boards(control: Control) -> list[int]:
    write, read = control.write_barrier, control.read_barrier
    return [-1 if write is None else write, -1 if read is None else read, control.wait_mask]
