"""What scoreboards announce in a block: operations under way, and who must not come before they are over.

The order of all accesses to a register is kept in every schedule, so this is known once and for all, while
who comes first, and hence waits, depends on the order.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from cuasmrl.binary.sass import BARRIERS, Instruction, Order, Pipe
from cuasmrl.schedule.blocks import Block
from cuasmrl.schedule.boundaries import HORIZON, block_length
from cuasmrl.schedule.dependences import Graph, Originals, Reason, build_loose_graph
from cuasmrl.schedule.scoreboards import (
    Outstanding,
    State,
    begun,
    finished,
    in_order,
    is_ordered_by,
    issue,
    own_board,
    own_boards,
    registers_of,
    unprotected,
)

_STRICT = (Order.SYNC, Order.PINNED)
_ANNOUNCING = (Pipe.MEMORY, Pipe.XU)
"""Pipes whose instructions compilers let announce that their sources are read."""


@dataclass(frozen=True)
class Operation:
    """A result to be written, or sources to be read."""

    key: Outstanding
    is_earlier: bool
    """It is under way when the block begins."""
    waiters: frozenset[int]
    """Instructions of the block that need it to be over."""
    board: int | None
    """The compiler's scoreboard for it: its own, or of an earlier one any that others rely on as well."""
    is_left: bool
    """It may be under way when the block ends."""


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
    code = originals.code[block.start : block.end]
    named = [i.depbar for i in originals.code if i.depbar is not None]
    counted = frozenset(k for first, _, others in named for k in (first, *others))
    if block_length(block, originals.code, originals.times) < HORIZON:
        return None
    survey = _survey(block, originals, counted)
    if survey is None:
        return None
    graph = build_loose_graph(block, sorted(counted), originals)
    for p, cover in survey.covers:
        graph.add(p, cover, 0, Reason.QUEUE)
    for operation in survey.operations:
        p = operation.key.index
        if operation.is_earlier:
            continue
        release = originals.table.release(originals.code[p])
        if release is None:
            return None
        for c in operation.waiters:
            graph.add(p, c, release, Reason.ANNOUNCED)
    strict = {i.index for i in code if i.order in _STRICT or i.index in graph.relied}
    frozen = {i.index for i in code if i.order in _STRICT or set(i.control.sets) & counted}
    frozen |= survey.kept | {operation.key.index for operation in survey.operations if operation.key.orders}
    frozen |= {s for w in strict for s in originals.awaited.get(w, ())}
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


_Name: TypeAlias = tuple[Outstanding, bool]
"""An operation, and whether it was under way when the block began: a loop has it twice."""


@dataclass(frozen=True)
class _Survey:
    """A block as compiled."""

    operations: tuple[Operation, ...]
    kept: frozenset[int]
    """Whoever announces, by whatever scoreboard, what is under way at the end: others wait for it."""
    covers: frozenset[tuple[int, int]]
    """(instruction, another one that has to stay behind it to announce it as well)"""


def _survey(block: Block, originals: Originals, counted: frozenset[int]) -> _Survey | None:
    """Who needs each operation to be over, and what other blocks rely on; None if it is not explained."""
    code, entry = originals.code, originals.entries[block.number]

    def is_counted(key: Outstanding) -> bool:
        """A DEPBAR ends it, which keeps its order with all of memory anyway."""
        return key.orders and own_board(code[key.index], key.is_read) in counted

    state: State = {key: dict(guards) for key, guards in entry.items() if not is_counted(key)}
    present: dict[Outstanding, _Name] = {key: (key, True) for key in state}
    registers = {name: set(registers_of(code[key.index], key)) for key, name in present.items()}
    waiters: dict[_Name, set[int]] = {name: set() for name in registers}
    enders: dict[_Name, int] = {}
    covers: dict[_Name, list[int]] = defaultdict(list)
    for instruction in code[block.start : block.end]:
        i = instruction.index
        for key in finished(state, instruction, instruction.control, code):
            name = present.pop(key)
            enders[name] = i
            if instruction.order in _STRICT:
                waiters[name].add(i)
            del state[key]
        if unprotected(state, instruction, code):
            return None
        _meet(instruction, registers, waiters, code)
        for name in enders:
            if is_ordered_by(instruction, name[0], code[name[0].index]):
                waiters[name].add(i)
        own = begun(instruction)
        if any(key in state and not key.orders for key in own):
            return None
        for key in issue(state, instruction, instruction.control, code):
            covers[present[key]].append(i)
        for key in own:
            if is_counted(key):
                del state[key]
            else:
                name = present[key] = key, False
                registers[name], waiters[name] = set(registers_of(instruction, key)), set()
    for name, needing in waiters.items():
        result = Outstanding(name[0].index, False), name[1]
        if not needing and name in enders and not waiters.get(result):
            # Somebody in another block needs it to be over.
            needing.add(enders[name])
    left = {
        name: state[key].keys() & originals.covered.get(key, frozenset()) for key, name in present.items()
    }
    relied = {
        (name, i) for name, boards in left.items() for i in covers[name] if boards & set(code[i].control.sets)
    }
    operations = tuple(
        Operation(*name, frozenset(needing), _board(name, entry, counted, originals), name in left)
        for name, needing in waiters.items()
    )
    return _Survey(
        operations,
        frozenset({i for _, i in relied} | {key.index for key, is_earlier in left if not is_earlier}),
        frozenset((key.index, i) for (key, is_earlier), i in relied if not is_earlier),
    )


def _board(name: _Name, entry: State, counted: frozenset[int], originals: Originals) -> int | None:
    """The reading of sources is announced by the result as well, as that comes later."""
    key, is_earlier = name
    control = originals.code[key.index].control
    if is_earlier:
        guards = entry[key].keys() - counted
        own = guards & own_boards(originals.code[key.index], key.is_read)
        # Other blocks keep those that somebody relies on.
        return min(own or guards & originals.covered.get(key, frozenset()), default=None)
    if key.is_read and control.read_barrier is not None:
        return control.read_barrier
    return control.write_barrier


def _meet(
    instruction: Instruction,
    registers: Mapping[_Name, set[int]],
    waiters: Mapping[_Name, set[int]],
    code: Sequence[Instruction],
) -> None:
    """Note whose operations an instruction has to find over; what it overwrites nobody behind it meets."""
    if instruction.never_executes:
        return
    reads = {a.register for a in instruction.uses}
    writes = {a.register for a in instruction.defs}
    for name, left in registers.items():
        key = name[0]
        if left & (writes if key.is_read else writes | reads):
            reads_result = not key.is_read and bool(left & reads)
            if not in_order(code[key.index], instruction, key.is_read, reads_result):
                waiters[name].add(instruction.index)
        if not instruction.is_conditional:
            left.difference_update(writes)
