"""What scoreboards announce in a block: operations under way, and who must not come before they are over.

The order of all accesses to a register is kept in every schedule, so this is known once and for all, while
who comes first, and hence waits, depends on the order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from cuasmrl.sass import BARRIERS, Instruction, Order, Pipe
from cuasmrl.schedule.blocks import Block
from cuasmrl.schedule.boundaries import HORIZON, block_length
from cuasmrl.schedule.dependences import Graph, Originals, Reason, build_loose_graph
from cuasmrl.schedule.scoreboards import (
    Guards,
    Outstanding,
    State,
    finished,
    in_order,
    issue,
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


@dataclass(frozen=True)
class Traffic:
    """What has to be announced in a block whose scoreboards may be given out anew."""

    operations: tuple[Operation, ...]
    boards: frozenset[int]
    """Scoreboards that may be given out."""
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
    survey = _survey(block, originals)
    if survey is None or not _is_announced(survey.outside, counted, originals):
        return None
    graph = build_loose_graph(block, sorted(counted), originals)
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
    frozen |= {key.index for key in survey.left}
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


def _is_announced(
    outside: Sequence[tuple[Outstanding, Guards]], counted: frozenset[int], originals: Originals
) -> bool:
    """Does whoever waits for these operations in another block rely on their own scoreboards only?

    Or on those that a DEPBAR counts: their setters stay behind the operations, as synchronisation does.
    """
    for key, guards in outside:
        own = own_boards(originals.code[key.index], key.is_read)
        if not own or own & counted or (key in originals.covered and guards.keys() - own - counted):
            return False
    return True


_Name: TypeAlias = tuple[Outstanding, bool]
"""An operation, and whether it was under way when the block began: a loop has it twice."""


@dataclass(frozen=True)
class _Survey:
    operations: tuple[Operation, ...]
    left: frozenset[Outstanding]
    """Under way at the end of the block."""
    outside: tuple[tuple[Outstanding, Guards], ...]
    """Those, and those it begins with, and what guards them."""


def _survey(block: Block, originals: Originals) -> _Survey | None:
    """The block as compiled: who needs each operation to be over. None if something is not explained."""
    code, entry = originals.code, originals.entries[block.number]
    state: State = {key: dict(guards) for key, guards in entry.items()}
    present: dict[Outstanding, _Name] = {key: (key, True) for key in state}
    registers = {name: set(registers_of(code[key.index], key)) for key, name in present.items()}
    waiters: dict[_Name, set[int]] = {name: set() for name in registers}
    enders: dict[_Name, int] = {}
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
        own = [Outstanding(i, False), Outstanding(i, True)]
        if not state.keys().isdisjoint(own):
            return None
        issue(state, instruction, instruction.control, code)
        for key in own:
            if key in state:
                name = present[key] = key, False
                registers[name], waiters[name] = set(registers_of(instruction, key)), set()
    for name, needing in waiters.items():
        result = Outstanding(name[0].index, False), name[1]
        if not needing and name in enders and not waiters.get(result):
            # Somebody in another block needs it to be over.
            needing.add(enders[name])
    operations = tuple(Operation(*name, frozenset(needing)) for name, needing in waiters.items())
    return _Survey(operations, frozenset(state), (*state.items(), *entry.items()))


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
