"""Basic blocks and the control flow graph of a kernel."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache

from cuasmrl.binary.cubin import WORD_BYTES, Kernel
from cuasmrl.binary.sass import File, Instruction, Kind, Listing, file_of


@dataclass(frozen=True, slots=True)
class Block:
    """Instructions start..end-1 of the listing; control enters at the first and leaves after the last."""

    number: int
    start: int
    end: int
    successors: tuple[int, ...]

    def __len__(self) -> int:
        return self.end - self.start


def control_flow(listing: Listing) -> tuple[Block, ...]:
    """Blocks in code order. A few edges too many are harmless: they only add paths to respect."""
    instructions = listing.instructions
    tables = listing.kernel.branch_targets()
    starts = sorted(_leaders(listing.kernel, instructions, tables))
    ends = [*starts[1:], len(instructions)]
    number_of = {start: number for number, start in enumerate(starts)}
    returns = frozenset(i.index + 1 for i in instructions if i.opcode == "CALL")
    reconvergence = _Reconvergence(instructions)

    @cache
    def numbered(targets: frozenset[int]) -> tuple[int, ...]:
        return tuple(sorted(number_of[t] for t in targets if t in number_of))

    every = frozenset(starts)
    blocks = []
    for number, (start, end) in enumerate(zip(starts, ends, strict=True)):
        near, far = _successors(reconvergence, instructions[end - 1], returns, tables, every)
        # Returns and reconvergences go to the same many places: so these are kept once.
        known = numbered(far) if far.issuperset(near) else numbered(far.union(near))
        blocks.append(Block(number, start, end, known))
    return tuple(blocks)


def loop_depths(blocks: Sequence[Block]) -> list[int]:
    """Of each block: how many jumps backwards span it. Compilers lay a loop out in one piece."""
    depth = [0] * len(blocks)
    for block in blocks:
        for target in block.successors:
            for number in range(target, block.number + 1):
                depth[number] += 1
    return depth


def _leaders(
    kernel: Kernel, instructions: tuple[Instruction, ...], tables: dict[int, tuple[int, ...]]
) -> set[int]:
    leaders = {0} | {offset // WORD_BYTES for offset, _ in kernel.entry_points}
    for instruction in instructions:
        if instruction.target is not None:
            leaders.add(instruction.target // WORD_BYTES)
        if _may_jump(instruction):
            leaders.add(instruction.index + 1)
    leaders |= {target // WORD_BYTES for targets in tables.values() for target in targets}
    return {leader for leader in leaders if leader < len(instructions)}


_NOWHERE: frozenset[int] = frozenset()


def _successors(
    reconvergence: "_Reconvergence",
    last: Instruction,
    returns: frozenset[int],
    tables: dict[int, tuple[int, ...]],
    starts: frozenset[int],
) -> tuple[Iterable[int], frozenset[int]]:
    """Where control goes: a few places of this instruction, and places that it has in common with others."""
    following = last.index + 1
    if not _may_jump(last):
        return [following], _NOWHERE
    fall_through = [following] if _may_fall_through(last) else []
    target = [last.target // WORD_BYTES] if last.target is not None else []
    match last.opcode:
        case "EXIT" | "KILL" | "RTT":
            return fall_through, _NOWHERE
        case "RET":
            return fall_through, returns
        case "BSYNC":
            return [following], reconvergence.behind(last)
        case "BRX" | "BRXU" | "JMX" | "JMXU":
            recorded = tables.get(last.address)
            if not recorded:
                return fall_through, starts
            return [*fall_through, *(t // WORD_BYTES for t in recorded)], _NOWHERE
        case "CALL" if not target:
            return [following], _NOWHERE
    return [*fall_through, *target], _NOWHERE


def _may_jump(instruction: Instruction) -> bool:
    """Branches, and whatever else names a place in the code (WARPSYNC.COLLECTIVE); BSSY only notes one."""
    if instruction.declaration is not None and instruction.declaration.jumps:
        return True
    return instruction.target is not None and instruction.opcode != "BSSY"


class _Reconvergence:
    """Lanes that wait at a BSYNC go on where their BSSY said, which compilers place right behind it.

    In a kernel with calls it is not plain which BSSY was theirs, and with barriers moved about (BMOV) not
    even which barrier: then every one that may be.
    """

    def __init__(self, instructions: tuple[Instruction, ...]) -> None:
        self._moved = any(_moves_barrier(i) for i in instructions)
        self._plain = not self._moved and not any(i.opcode == "CALL" for i in instructions)
        noted = [i for i in instructions if i.opcode == "BSSY" and i.target is not None]
        self._every = frozenset(i.target // WORD_BYTES for i in noted if i.target is not None)
        targets: dict[int, set[int]] = defaultdict(set)
        for i in noted:
            for access in i.defs:
                targets[access.register].add((i.target or 0) // WORD_BYTES)
        self._targets = {barrier: frozenset(places) for barrier, places in targets.items()}
        """Barrier register → where those go on that wait at it."""

    def behind(self, last: Instruction) -> frozenset[int]:
        """Places besides the next instruction."""
        if self._moved:
            return self._every
        barriers = {access.register for access in last.uses}
        places = [self._targets[barrier] for barrier in sorted(barriers) if barrier in self._targets]
        if self._plain and any(last.index + 1 in targets for targets in places):
            return _NOWHERE
        return places[0] if len(places) == 1 else _NOWHERE.union(*places)


def _moves_barrier(instruction: Instruction) -> bool:
    return instruction.opcode == "BMOV" and any(file_of(d.register) is File.B for d in instruction.defs)


def _may_fall_through(instruction: Instruction) -> bool:
    """Conditional by guard, by a predicate operand (`BRA.U UP0, ..`), or by lanes that part (`BRA.DIV`)."""
    if instruction.is_conditional or instruction.declaration is None or not instruction.declaration.jumps:
        return True
    if instruction.never_executes or {"DIV", "CONV"} & set(instruction.modifiers):
        return True
    return any(
        o.kind is Kind.REGISTER and o.register is not None and o.register.index is not None
        and o.register.file in (File.P, File.UP)
        for o in instruction.operands
    )  # fmt: skip
