"""What scoreboards announce in a block: operations under way, and who must not come before they are over.

The order of all accesses to a register is kept in every schedule, so this is known once and for all, while
who comes first, and hence waits, depends on the order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cuasmrl.binary.sass import BARRIERS, Pipe
from cuasmrl.schedule.blocks import Block
from cuasmrl.schedule.boundaries import HORIZON, block_length
from cuasmrl.schedule.dependences import Graph, Originals, Reason, build_loose_graph
from cuasmrl.schedule.survey import Operation, Survey

_ANNOUNCING = (Pipe.MEMORY, Pipe.XU)
"""Pipes whose instructions compilers let announce that their sources are read."""


@dataclass(frozen=True)
class Traffic:
    """What has to be announced in a block whose scoreboards may be reassigned."""

    operations: tuple[Operation, ...]
    boards: frozenset[int]
    """Scoreboards that may be reassigned."""
    frozen: frozenset[int]
    """Instructions that keep their scoreboards, because somebody counts on them for more than registers."""
    kept_waits: Mapping[int, int]
    """Wait bits that stay: for memory to be settled, or because they pass time that somebody needs."""
    graph: Graph
    """Which instructions must keep their order whatever the scoreboards are."""


def traffic_of(block: Block, originals: Originals) -> Traffic | None:
    """None for a block that has to keep its scoreboards: short, or of a form that nothing here explains."""
    code, counted = originals.code[block.start : block.end], originals.named_boards
    if block_length(block, originals.code, originals.times) < HORIZON:
        return None
    survey = Survey(block, originals).taken()
    if survey is None:
        return None
    edges = [(p, cover, 0, Reason.QUEUE) for p, cover in survey.covers]
    for operation in survey.operations:
        p = operation.key.index
        if operation.is_earlier:
            continue
        release = originals.table.release(originals.code[p])
        if release is None:
            return None
        edges += [(p, c, release, Reason.ANNOUNCED) for c in operation.waiters]
        if operation.key.orders:
            edges += [(i, p, 0, Reason.WAIT) for i in range(block.start, p)]
    graph = build_loose_graph(block, sorted(counted), originals, edges)
    strict = {i.index for i in code if i.order.is_strict or i.index in graph.relied}
    frozen = {i.index for i in code if i.order.is_strict or set(i.control.sets) & counted}
    frozen |= survey.kept | {operation.key.index for operation in survey.operations if operation.key.orders}
    frozen |= {s for w in strict for s in originals.awaited.get(w, ())}
    frozen |= {i.index for i in code if i.control.sets and not i.is_variable}
    frozen |= {
        i.index for i in code if i.is_variable and i.declaration and i.declaration.pipe not in _ANNOUNCING
    }
    return Traffic(
        operations=survey.operations,
        boards=frozenset(range(BARRIERS)) - counted,
        frozen=frozenset(frozen),
        kept_waits={i.index: i.control.wait_mask for i in code if i.index in strict},
        graph=graph,
    )
