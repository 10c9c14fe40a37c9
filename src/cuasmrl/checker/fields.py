"""The control fields of each instruction by itself."""

from collections.abc import Iterator

from cuasmrl.checker.program import Arrangement, Program
from cuasmrl.checker.verdict import Fault, Rule
from cuasmrl.sass import Distances, Order


def field_faults(program: Program, candidate: Arrangement, table: Distances) -> Iterator[Fault]:
    for i in program.instructions:
        old, new = i.control, candidate.controls[i.index]
        if new == old and not new.reuse:
            continue
        if (new.write_barrier, new.read_barrier) != (old.write_barrier, old.read_barrier):
            boards = [
                _name(k) for k in (old.write_barrier, old.read_barrier, new.write_barrier, new.read_barrier)
            ]
            message = "{{c}} must set {} for its result and {} for its sources, not {} and {}".format(*boards)
            yield Fault(Rule.BARRIER, i.index, message)
        if old.wait_mask & ~new.wait_mask and i.order in (Order.SYNC, Order.PINNED):
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
