"""Distances across block borders, split into a part for each side.

A pair with its producer in one block and its consumer in another keeps its distance if the producer
stays as far from the end of its block, the consumer as far from the start of its own, and no block gets
shorter, each up to what the pair needs.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from cuasmrl.binary.sass import Access, Distances, Hazard, Instruction, Order
from cuasmrl.schedule.blocks import Block
from cuasmrl.schedule.scoreboards import is_read_late

HORIZON = 96
"""No fixed latency comes near it; beyond it nothing has to be kept."""


@dataclass
class Boundaries:
    """By instruction: what its pairs in other blocks need, and whether a wait in between matters to them."""

    head: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    tail: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    waits_before: set[int] = field(default_factory=set)
    waits_after: set[int] = field(default_factory=set)

    def keep_distance(self, producer: int, consumer: int) -> None:
        """Neither gets closer to a border of its block, and the waits on the way stay."""
        self.tail[producer] = self.head[consumer] = HORIZON
        self.waits_after.add(producer)
        self.waits_before.add(consumer)


@dataclass(frozen=True, slots=True)
class _Earlier:
    index: int
    access: Access
    is_read: bool


_State = dict[_Earlier, int]


def cross_block_needs(blocks: Sequence[Block], code: Sequence[Instruction], table: Distances) -> Boundaries:
    """Every fixed-latency dependence that crosses a border within the horizon."""
    times = issue_times(blocks, code)
    entry: list[_State] = [{} for _ in blocks]
    work = [block.number for block in blocks]
    while work:
        number = work.pop()
        exits = _leave(blocks[number], code, times, entry[number])
        for successor in blocks[number].successors:
            if _merge(entry[successor], exits):
                work.append(successor)
    found = Boundaries()
    for block in blocks:
        _collect(block, code, times, entry[block.number], table, found)
    return found


def issue_times(blocks: Sequence[Block], code: Sequence[Instruction]) -> list[int]:
    """Issue time of every instruction by stall counts alone, from the start of its block."""
    times = []
    for block in blocks:
        time = 0
        for instruction in code[block.start : block.end]:
            times.append(time)
            time += instruction.control.stall
    return times


def block_length(block: Block, code: Sequence[Instruction], times: Sequence[int]) -> int:
    return times[block.end - 1] + code[block.end - 1].control.stall


def _leave(block: Block, code: Sequence[Instruction], times: Sequence[int], entry: _State) -> _State:
    """Whatever of the entry and of the block is still visible at its end, and for how long."""
    length = block_length(block, code, times)
    by_register: dict[int, _State] = defaultdict(dict)
    for key, elapsed in entry.items():
        by_register[key.access.register][key] = min(HORIZON, elapsed + length)
    for i in range(block.start, block.end):
        instruction = code[i]
        if not instruction.is_conditional:
            for access in instruction.defs:
                by_register.pop(access.register, None)
        if instruction.never_executes:
            continue
        elapsed = min(HORIZON, length - times[i])
        if not instruction.is_variable:
            for access in instruction.defs:
                by_register[access.register][_Earlier(i, access, False)] = elapsed
        for access in instruction.uses:
            if not is_read_late(instruction, access.register):
                by_register[access.register][_Earlier(i, access, True)] = elapsed
    return {key: elapsed for keys in by_register.values() for key, elapsed in keys.items()}


def _merge(target: _State, incoming: _State) -> bool:
    changed = False
    for key, elapsed in incoming.items():
        if elapsed < target.get(key, HORIZON + 1):
            target[key] = elapsed
            changed = True
    return changed


def _collect(
    block: Block,
    code: Sequence[Instruction],
    times: Sequence[int],
    entry: _State,
    table: Distances,
    found: Boundaries,
) -> None:
    by_register: dict[int, list[tuple[_Earlier, int]]] = defaultdict(list)
    for key, elapsed in entry.items():
        by_register[key.access.register].append((key, elapsed))
    for i in range(block.start, block.end):
        consumer = code[i]
        for is_write, accesses in ((False, consumer.uses), (True, consumer.defs)):
            for access in accesses:
                for key, elapsed in by_register.get(access.register, ()):
                    if key.is_read and not is_write:
                        continue
                    hazard = Hazard.RAW if not is_write else Hazard.WAR if key.is_read else Hazard.WAW
                    need = table.required(
                        hazard, code[key.index], consumer, access.register, key.access.role, access.role
                    )
                    if elapsed + times[i] < (HORIZON if need is None else need):
                        found.waits_after.add(key.index)
                        found.waits_before.add(i)
                    need = HORIZON if need is None else need
                    found.head[i] = max(found.head[i], need)
                    found.tail[key.index] = max(found.tail[key.index], need)
        if not consumer.is_conditional:
            for access in consumer.defs:
                by_register.pop(access.register, None)


def is_pause(instruction: Instruction, wait_mask: int) -> bool:
    """May this instruction take longer than its predecessor's stall count says?"""
    return bool(wait_mask) or instruction.order is Order.SYNC
