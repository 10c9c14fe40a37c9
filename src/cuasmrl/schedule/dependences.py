"""Which instructions of a block must keep their order, and at what distance."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from cuasmrl.binary.sass import BARRIERS, Control, Distances, Instruction
from cuasmrl.schedule.blocks import Block
from cuasmrl.schedule.boundaries import HORIZON, Boundaries, cross_block_needs, is_pause, issue_times
from cuasmrl.schedule.flow import Flow
from cuasmrl.schedule.graph import Edge, Graph, Reason
from cuasmrl.schedule.machine import Analysis, analyse
from cuasmrl.schedule.orders import OrderOfMemory, Padding, Pauses, weave
from cuasmrl.schedule.products import Bearings, bearings, keep_products, product_edges
from cuasmrl.schedule.registers import between, keep_behind, keep_pauses, register_edges
from cuasmrl.schedule.scoreboards import awaited_boards, awaited_setters, raised_boards
from cuasmrl.schedule.shelters import Shelters, Unexplained, unexplained_in

__all__ = ["Edge", "Graph", "Originals", "Reason", "build_graph", "build_loose_graph"]


Releases: TypeAlias = tuple[int, ...]
"""Scoreboard → cycles from the start of a block until it is seen, whoever before raised it."""


@dataclass(frozen=True)
class Originals:
    """What the original schedule says, which stays the yardstick however far a candidate has moved."""

    code: Sequence[Instruction]
    times: Sequence[int]
    table: Distances
    boundaries: Boundaries
    machine: Analysis
    counted_boards: frozenset[int]
    """Scoreboards on which some DEPBAR counts: their setters keep their order."""
    named_boards: frozenset[int]
    """Scoreboards that some DEPBAR names."""
    awaited: Mapping[int, tuple[int, ...]]
    """Waiting instruction → those of its block that raised what it waits for."""
    waiting: Sequence[int]
    """All that wait, in the order of the code."""
    pauses: Sequence[int]
    """All that may take longer than stall counts say, in the order of the code."""
    products: Bearings
    releases: Sequence[Releases]
    """By block: when scoreboards are seen that earlier blocks have raised."""

    @staticmethod
    def of(blocks: Sequence[Block], code: Sequence[Instruction], table: Distances) -> Originals:
        flow = Flow(blocks)
        machine = analyse(blocks, code, flow)
        boundaries = cross_block_needs(blocks, code, table, flow)
        for p in machine.unexplained_producers:
            boundaries.keep_tail(p)
        for c in machine.unexplained_consumers:
            boundaries.keep_head(c)
        products = bearings(blocks, code, flow)
        keep_products(boundaries, code, products, table)
        awaited = awaited_setters(blocks, code)
        conditions = [i.depbar for i in code if i.depbar is not None]
        return Originals(
            code=code,
            times=issue_times(blocks, code),
            table=table,
            boundaries=boundaries,
            machine=machine,
            counted_boards=frozenset(board for board, count, _ in conditions if count > 0),
            named_boards=frozenset(k for board, _, others in conditions for k in (board, *others)),
            awaited=awaited,
            waiting=sorted(awaited),
            pauses=[i.index for i in code if is_pause(i, i.control.wait_mask)],
            products=products,
            releases=_releases(blocks, code, table, flow),
        )

    def distance(self, first: int, second: int) -> int:
        return self.times[second] - self.times[first]


def build_graph(
    block: Block, order: Sequence[int], control: Mapping[int, Control], originals: Originals
) -> Graph:
    """Dependences of one block in its present order, under its present control bits."""
    graph = Graph()
    is_original = all(
        i == k and control[i] is originals.code[i].control for k, i in enumerate(order, block.start)
    )
    position = {i: q for q, i in enumerate(order)}
    entry = originals.machine.entries[block.number]
    retired = register_edges(graph, order, position, originals)
    _warp_edges(graph, order, originals)
    _sharing_edges(graph, order, originals)
    product_edges(graph, order, originals)
    _board_edges(graph, order, control, originals)
    _first_waits(graph, order, control, originals, originals.releases[block.number])
    exposed: Unexplained = {}
    consumers = originals.machine.unexplained_consumers
    if not is_original or not consumers.isdisjoint(order):
        exposed = unexplained_in(order, control, entry, originals.code, originals.machine)
        _exposed_edges(graph, exposed, position, originals)
    _pause_distances(graph, order, position, originals)
    shelters = Shelters(order, control, entry, originals.code, originals.machine, exposed)
    weave(graph, order, originals.code, retired, *_common(order, originals), shelters)
    return graph


def build_loose_graph(
    block: Block, boards: Sequence[int], originals: Originals, edges: Iterable[tuple[int, int, int, Reason]]
) -> Graph:
    """What holds in every order, whichever scoreboards announce what; only these boards stay as they are."""
    order = range(block.start, block.end)
    position = {i: q for q, i in enumerate(order)}
    graph = Graph()
    retired = register_edges(graph, order, position, originals)
    _warp_edges(graph, order, originals)
    _sharing_edges(graph, order, originals)
    product_edges(graph, order, originals)
    _board_edges(graph, order, {i: originals.code[i].control for i in order}, originals, boards)
    _pause_distances(graph, order, position, originals)
    for first, second, need, reason in edges:
        graph.add(first, second, need, reason)
    weave(graph, order, originals.code, retired, *_common(order, originals))
    return graph


def _common(order: Sequence[int], originals: Originals) -> tuple[OrderOfMemory, Padding, Pauses]:
    """What orders instructions whichever scoreboards announce what."""
    return OrderOfMemory(), Padding(order, originals.code), Pauses(originals.boundaries)


def _warp_edges(graph: Graph, order: Sequence[int], originals: Originals) -> None:
    last: int | None = None
    for i in order:
        declaration = originals.code[i].declaration
        if declaration is not None and declaration.warp_wide:
            if last is not None:
                graph.add(last, i, 0, Reason.WARP)
            last = i


def _sharing_edges(graph: Graph, order: Sequence[int], originals: Originals) -> None:
    """What shares another pipe (a DMMA that of double precision) keeps its order with all of that pipe."""
    sharing: dict[str, int] = {}
    since: dict[str, list[int]] = defaultdict(list)
    for i in order:
        declaration = originals.code[i].declaration
        if declaration is None or originals.code[i].never_executes:
            continue
        pipe, shares = declaration.pipe, declaration.shares
        if pipe in sharing:
            known = originals.table.spacing(originals.code[sharing[pipe]], pipe)
            distance = originals.distance(sharing[pipe], i)
            graph.add(sharing[pipe], i, min(distance, HORIZON if known is None else known), Reason.PIPE)
        since[pipe].append(i)
        if shares is not None:
            for earlier in since.pop(shares, ()):
                graph.add(earlier, i, 0, Reason.PIPE)
            sharing[shares] = i


def _board_edges(
    graph: Graph,
    order: Sequence[int],
    control: Mapping[int, Control],
    originals: Originals,
    boards: Sequence[int] = range(BARRIERS),
) -> None:
    """Raising a scoreboard and waiting for it keep their order, in alternating phases."""
    for board in boards:
        setters: list[int] = []
        waiters: list[int] = []
        earlier_waiters: list[int] = []
        for i in order:
            if board in awaited_boards(originals.code[i], control[i].wait_mask):
                for s in setters:
                    need = _release_need(s, i, board, originals)
                    graph.add(s, i, need, Reason.SCOREBOARD)
                    if waiters and need < _release(s, originals):
                        # It may be so close only because another one has waited before.
                        graph.add(waiters[0], i, 0, Reason.SCOREBOARD)
                waiters.append(i)
            if board not in raised_boards(control[i]):
                continue
            if waiters:
                setters, waiters, earlier_waiters = [], [], waiters
            for w in earlier_waiters:
                if w != i:
                    graph.add(w, i, 0, Reason.SCOREBOARD)
            if setters and board in originals.counted_boards:
                graph.add(setters[-1], i, 0, Reason.SCOREBOARD)
            setters.append(i)


def _release_need(setter: int, waiter: int, board: int, originals: Originals) -> int:
    """As close as the compiler had the two, if it had this wait at all."""
    needed = _release(setter, originals)
    if board in awaited_boards(originals.code[waiter], originals.code[waiter].control.wait_mask):
        return min(originals.distance(setter, waiter), needed)
    return needed


def _release(setter: int, originals: Originals) -> int:
    release = originals.table.release(originals.code[setter])
    return HORIZON if release is None else release


def _releases(
    blocks: Sequence[Block], code: Sequence[Instruction], table: Distances, flow: Flow
) -> list[Releases]:
    """Setters get no nearer to the end of their block than a release, and no block gets so short."""
    entries: list[Releases] = [(0,) * BARRIERS] * len(flow)

    def leave(node: int) -> Releases:
        found, time = list(entries[node]), 0
        for instruction in code[blocks[node].start : blocks[node].end] if node < len(blocks) else ():
            for board in awaited_boards(instruction, instruction.control.wait_mask):
                found[board] = 0
            for board in raised_boards(instruction.control):
                release = table.release(instruction)
                found[board] = max(found[board], time + (HORIZON if release is None else release))
            time += instruction.control.stall
        return tuple(max(0, seen - time) for seen in found)

    def enter(node: int, releases: Releases) -> bool:
        before = entries[node]
        entries[node] = tuple(map(max, before, releases))
        return entries[node] != before

    flow.forwards(leave, enter)
    return entries[: len(blocks)]


def _first_waits(
    graph: Graph,
    order: Sequence[int],
    control: Mapping[int, Control],
    originals: Originals,
    releases: Releases,
) -> None:
    """Who first waits for a scoreboard of an earlier block is as far behind that as whoever did so before.

    So a new wait is not near the start of the block, and one that came second there still does.
    """
    first: dict[int, int] = {}
    for i in sorted(order):
        boards = awaited_boards(originals.code[i], originals.code[i].control.wait_mask)
        for board in awaited_boards(originals.code[i], control[i].wait_mask):
            seen = releases[board]
            if board not in boards:
                graph.heads[i] = max(graph.heads.get(i, 0), seen)
            elif board not in first:
                first[board] = i
            elif originals.times[i] < seen:
                graph.add(first[board], i, 0, Reason.SCOREBOARD)


def _exposed_edges(
    graph: Graph, exposed: Unexplained, position: Mapping[int, int], originals: Originals
) -> None:
    """What neither a wait nor a queue explains keeps its distance."""
    for i, operations in exposed.items():
        for p in operations:
            if p < i and p in position:
                graph.add(p, i, min(originals.distance(p, i), HORIZON), Reason.SCOREBOARD)
                keep_pauses(graph, p, i, between(originals.waiting, p, i), originals)


def _pause_distances(
    graph: Graph, order: Sequence[int], position: Mapping[int, int], originals: Originals
) -> None:
    """Pairs across a border that count on a wait: what it waits for is not issued earlier."""
    needs, end = originals.boundaries, max(order)
    for i in order:
        if i in needs.waits_after:
            for w in sorted(between(originals.pauses, i, end), key=position.__getitem__):
                graph.relied.add(w)
                for s in originals.awaited.get(w, ()):
                    keep_behind(graph, i, s, originals)
    relying = [i for i in order if i in needs.waits_before]
    if relying:
        graph.relied.update(between(originals.pauses, min(order) - 1, max(relying)))
