"""Findings in one cubin, without an original to compare with.

A *hazard* is something no compiler emits: a result read sooner than it can have arrived. A *note* is
room for improvement: stalls longer than anything needs, fillers that only pass time.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import Any

from cuasmrl.binary.sass import File, Instruction, Listing, distances, file_of, name_of
from cuasmrl.schedule import Block, Board
from cuasmrl.schedule.machine import Ledger, Machine, at_entry, bits
from cuasmrl.schedule.mining import mutually_executed, stall_clock


class Rule(StrEnum):
    UNPROTECTED_DISTANCE = "unprotected distance"
    UNPROTECTED_RESULT = "unprotected result"
    WASTED_STALL = "wasted stall"
    PINNED_FILLER = "pinned filler"
    UNKNOWN_OPCODE = "unknown opcode"
    UNKNOWN_RECORD = "unknown record"


HAZARDS = frozenset((Rule.UNPROTECTED_DISTANCE, Rule.UNPROTECTED_RESULT))


@dataclass(frozen=True)
class Finding:
    rule: Rule
    kernel: str
    address: int
    sentence: str
    cycles: int = 0
    """For a wasted stall: what it costs each time the instruction issues."""

    @property
    def is_hazard(self) -> bool:
        return self.rule in HAZARDS

    def as_dict(self) -> dict[str, Any]:
        return asdict(self) | {"hazard": self.is_hazard}


def lint(listing: Listing) -> list[Finding]:
    """All findings of a kernel, in code order."""
    board = Board(listing)
    found = [
        *_unknown(listing),
        *_short_distances(listing, board),
        *_unprotected_results(listing, board),
        *_fillers(listing, board),
        *_wasted_stalls(listing, board),
    ]
    return sorted(found, key=lambda finding: (finding.address, finding.rule))


def _unknown(listing: Listing) -> Iterator[Finding]:
    name = listing.kernel.name
    for instruction in listing.unknown:
        sentence = f"{instruction} is not known; its block will not be touched"
        yield Finding(Rule.UNKNOWN_OPCODE, name, instruction.address, sentence)
    for record in listing.kernel.unknown_records():
        sentence = (
            f"record {record.name} is not known and might name instructions; the kernel will not be touched"
        )
        yield Finding(Rule.UNKNOWN_RECORD, name, 0, sentence)


def _short_distances(listing: Listing, board: Board) -> Iterator[Finding]:
    """Fixed-latency results read closer than any compiler has been seen to do."""
    table = distances(listing.kernel.arch)
    for block in board.blocks:
        code = listing.instructions[block.start : block.end]
        times, pauses = stall_clock(code)
        writers: dict[int, list[int]] = defaultdict(list)
        for j, consumer in enumerate(code):
            for use in consumer.uses if consumer.declaration else ():
                for i in writers[use.register]:
                    producer, distance = code[i], times[j] - times[i]
                    floor = table.floor(producer, consumer, use.register, use.role)
                    if distance < floor and pauses[i] == pauses[j] and mutually_executed(producer, consumer):
                        sentence = (
                            f"{consumer} reads {name_of(use.register)} {distance} cycles after {producer}; "
                            f"no compiler goes below {floor}"
                        )
                        yield Finding(
                            Rule.UNPROTECTED_DISTANCE, listing.kernel.name, consumer.address, sentence
                        )
            for result in consumer.defs:
                if not consumer.is_conditional:
                    writers[result.register].clear()
                if consumer.declaration and not consumer.is_variable and not consumer.never_executes:
                    writers[result.register].append(j)


def _unprotected_results(listing: Listing, board: Board) -> Iterator[Finding]:
    """Results of loads and other variable-latency instructions touched without waiting for them.

    Silent wherever it might be wrong: behind a call the callee may have waited, a result may be covered by a
    later one of its queue, under another guard or where compilers seldom count on it (FRND), and different
    guards may exclude each other.
    """
    if board.is_opaque:
        return
    code = listing.instructions
    ledger = Ledger(code, is_lenient=True)
    entries = at_entry(_on_certain_paths(board.blocks, code), ledger)
    for block in board.blocks:
        machine = Machine(ledger, entries[block.number])
        for consumer in code[block.start : block.end]:
            machine.end(machine.finished(consumer, consumer.control))
            # An unknown opcode counts as reading everything, which is no finding.
            reads = {access.register for access in consumer.uses} if consumer.declaration else set()
            met = 0
            for register in reads:
                met |= ledger.results.get(register, 0)
            for n in bits(met & machine.out):
                starter = code[ledger.keys[n].index]
                # One of fixed latency that raises a scoreboard has its distance as well.
                if not starter.is_variable or not mutually_executed(starter, consumer):
                    continue
                for register in sorted(_whole_results(ledger.registers[n] & reads)):
                    sentence = f"{consumer} reads {name_of(register)} without waiting for {starter}"
                    yield Finding(Rule.UNPROTECTED_RESULT, listing.kernel.name, consumer.address, sentence)
            machine.issue(consumer, consumer.control)


def _on_certain_paths(blocks: Sequence[Block], code: Sequence[Instruction]) -> list[Block]:
    """Without the edges that may be none: what is under way behind them is not known.

    A RET goes back behind one call, not behind all; a BSYNC, where barriers are moved about or in a kernel
    with calls, to one of the places that some BSSY names.
    """
    found = []
    for block in blocks:
        last = code[block.end - 1].opcode
        is_open = last == "RET" or (last == "BSYNC" and len(block.successors) > 1)
        found.append(replace(block, successors=()) if is_open else block)
    return found


def _whole_results(registers: Iterable[int]) -> set[int]:
    """Only these: the predicate of an atomic, for one, comes back sooner than its value."""
    return {register for register in registers if file_of(register) in (File.R, File.UR)}


def _fillers(listing: Listing, board: Board) -> Iterator[Finding]:
    """Code behind the last EXIT is alignment, not delay."""
    last_exit = max((i.index for i in listing.instructions if i.opcode == "EXIT"), default=0)
    for instruction in listing.instructions[:last_exit]:
        if instruction.is_filler or instruction.opcode == "NOP":
            sentence = (
                f"{instruction} only passes {instruction.control.stall} cycles and is kept in its place"
            )
            yield Finding(Rule.PINNED_FILLER, listing.kernel.name, instruction.address, sentence)


def _wasted_stalls(listing: Listing, board: Board) -> Iterator[Finding]:
    """Stall counts that nothing known requires, in the order as it is."""
    board.reset()
    for block in board.blocks:
        if not board.retime(block.number):
            continue
        for instruction in listing.instructions[block.start : block.end]:
            waste = instruction.control.stall - board.stall[instruction.index]
            if waste > 0 and not board.is_fixed(instruction.index):
                sentence = (
                    f"{instruction} stalls {instruction.control.stall} cycles where "
                    f"{board.stall[instruction.index]} suffice"
                )
                yield Finding(Rule.WASTED_STALL, listing.kernel.name, instruction.address, sentence, waste)
