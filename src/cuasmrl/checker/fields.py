"""The control fields of each instruction by itself."""

from collections import Counter
from collections.abc import Iterator

from cuasmrl.binary.sass import Distances, Instruction, Pipe
from cuasmrl.checker.flow import Block
from cuasmrl.checker.program import Arrangement, Program
from cuasmrl.checker.verdict import Fault, Rule


def field_faults(program: Program, candidate: Arrangement, table: Distances) -> Iterator[Fault]:
    for i in program.instructions:
        old, new = i.control, candidate.controls[i.index]
        if new == old and not new.reuse:
            continue
        for what, before, now in (
            ("result", old.write_barrier, new.write_barrier),
            ("sources", old.read_barrier, new.read_barrier),
        ):
            if before != now and not _may_announce(program, i, what, {before, now}):
                message = f"{{c}} must set {_name(before)} for its {what}, not {_name(now)}"
                yield Fault(Rule.BARRIER, i.index, message)
        if old.wait_mask & ~new.wait_mask and i.order.is_strict:
            # Such a wait may stand for memory that has to be settled, which no register shows.
            missing = ", ".join(_name(k) for k in old.waits if k not in new.waits)
            yield Fault(Rule.BARRIER, i.index, f"{{c}} must wait for {missing}")
        if new != old and (reason := new.encoding_fault()) is not None:
            yield Fault(Rule.ENCODING, i.index, f"{{c}}: {reason}")
        least = table.minimum_stall(i)
        needed = old.stall if least is None else min(old.stall, least)
        if new.stall < needed:
            message = f"{{c}} must stall {needed} cycles, not {new.stall}"
            yield Fault(Rule.STALL, i.index, message, needed=needed, found=new.stall)
        yield from _reuse_faults(program, candidate, i.index)


_CROWD = 32
"""A scoreboard counts to 63 (measured, sm_86); half of that is left to what other blocks have under way."""


def crowding_faults(program: Program, candidate: Arrangement, original: Arrangement) -> Iterator[Fault]:
    """In no block is a scoreboard raised more often between two waits than it can count, or than it was."""
    for block in program.blocks:
        most = max(_CROWD, *(count for _, _, count in _raises(program, original, block)), 0)
        for i, board, count in _raises(program, candidate, block):
            if count > most:
                message = (
                    f"{{c}} raises {_name(board)} {count} times without a wait for it, {most} are allowed"
                )
                yield Fault(Rule.SCOREBOARD, i, message, needed=most, found=count)


def _raises(program: Program, arrangement: Arrangement, block: Block) -> Iterator[tuple[int, int, int]]:
    """(instruction, scoreboard, how often it was raised since a wait for it, or since the block began)"""
    counts = Counter[int]()
    for i in arrangement.order[block.start : block.end]:
        for board, left in arrangement.waits[i]:
            counts[board] = min(counts[board], left)
        for board in arrangement.controls[i].sets:
            counts[board] += 1
            yield i, board, counts[board]


def _may_announce(program: Program, i: Instruction, what: str, boards: set[int | None]) -> bool:
    """May it announce this by another scoreboard? Whether all who need it still wait is examined later.

    Not where more than registers may hang on it: what synchronises, what a DEPBAR names, what writes none.
    """
    if not i.is_variable or i.order.is_strict or boards & program.depbar_boards:
        return False
    if what == "result":
        return bool(program.defs[i.index])
    # Compilers give such a barrier to instructions of these pipes only.
    seen = i.declaration is not None and i.declaration.pipe in (Pipe.MEMORY, Pipe.XU)
    return seen and any(program.reads_late(i.index, r) for r in program.uses[i.index])


def _reuse_faults(program: Program, candidate: Arrangement, i: int) -> Iterator[Fault]:
    """A flag may be dropped anywhere; it may stay where the same two instructions still follow each other.

    Whether the hardware tolerates a flag whose register is not read next is unknown, so none is invented.
    """
    old, new = program.instructions[i].control.reuse, candidate.controls[i].reuse
    if new & ~old:
        yield Fault(Rule.REUSE, i, "{c} has a reuse flag that the original does not have")
    following = candidate.position[i] + 1
    if new and following < len(candidate.order) and candidate.order[following] != i + 1:
        yield Fault(Rule.REUSE, i, "{c} keeps a reuse flag although another instruction follows it now")


def _name(board: int | None) -> str:
    return "no scoreboard" if board is None else f"SB{board}"
