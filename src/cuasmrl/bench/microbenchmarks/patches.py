"""Changes in the words of a compiled kernel, where the compiler does not give the stream that was measured.

Control bits are edited. Registers are renamed in words of the same kernel, and what nvdisasm makes of the
result is compared with what was wanted: nothing is assembled.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from cuasmrl.bench.streams import parse_line
from cuasmrl.binary.cubin import Cubin
from cuasmrl.binary.sass import MAX_STALL, Control, Instruction, Listing, disassemble_kernel
from cuasmrl.errors import CuasmrlError
from cuasmrl.schedule import Schedule

_BARE = Control(stall=1, yield_=False, write_barrier=None, read_barrier=None, wait_mask=0, reuse=0)
_BOARD = 0
_REGISTER = re.compile(r"\bR(\d+)\b")
_FIELDS = (16, 24, 32, 64)
"""Where a word of plain arithmetic names its destination and its sources, in bits."""
CLOCK = "CS2R.32 R0, SR_CLOCKLO"


def patched(cubin: Cubin, listing: Listing, patch: str) -> Listing:
    """The kernel as its patched words read."""
    what, _, rest = patch.partition(" ")
    match what:
        case "result":
            return _watch(listing, rest, replace(_BARE, stall=2, write_barrier=_BOARD))
        case "sources":
            return _watch(listing, rest, replace(_BARE, stall=2, read_barrier=_BOARD))
        case "bare":
            return _bare(listing, rest)
        case "stream":
            return _stream(cubin, listing, rest)
    raise CuasmrlError(f"the bench does not know the patch {patch!r}.")


def watched(listing: Listing, opcode: str) -> int:
    """The last instruction of an opcode: the one that the experiment is about."""
    found = [i.index for i in listing.instructions if i.opcode == opcode and not i.never_executes]
    if not found:
        raise CuasmrlError(f"{listing.kernel.name} has no {opcode}.")
    return found[-1]


def _watch(listing: Listing, opcode: str, control: Control) -> Listing:
    """The instruction finds the memory queue empty, and the next one waits for nothing but it."""
    position = watched(listing, opcode)
    return _controlled(
        listing,
        {
            position - 1: replace(_BARE, stall=MAX_STALL, yield_=True),
            position: control,
            position + 1: replace(_BARE, wait_mask=1 << _BOARD),
        },
    )


def _bare(listing: Listing, opcode: str) -> Listing:
    """Instructions of an opcode behind the barrier follow each other as fast as they can."""
    barrier = watched(listing, "BAR")
    chosen = [i for i in listing.instructions if i.opcode == opcode and i.index > barrier]
    return _controlled(
        listing, {i.index: replace(i.control, stall=1, yield_=False, wait_mask=0) for i in chosen}
    )


def _controlled(listing: Listing, changes: Mapping[int, Control]) -> Listing:
    old = Schedule.original(listing)
    controls = tuple(changes.get(index, control) for index, control in enumerate(old.controls))
    return old.replaced(controls=controls).arranged()


def _lines(text: str) -> list[str]:
    """Lines between two clocks: `NOP; FADD R1, R2, R3`, or `64 times FADD R1, R2, R3`."""
    times, found, line = text.partition(" times ")
    between = [line] * int(times) if found else text.split("; ")
    return [CLOCK, *between, CLOCK]


def _stream(cubin: Cubin, listing: Listing, text: str) -> Listing:
    """Other instructions from the first clock on, and the end behind them."""
    old = listing.kernel.words
    start = next(i.index for i in listing.instructions if "SR_CLOCKLO" in i.text)
    lines = [parse_line(line) for line in _lines(text)]
    new = [control.encode(_renamed(wanted, listing)) for control, wanted in lines]
    end = listing.instructions[watched(listing, "EXIT")].word
    words = (*old[:start], *new, end, *old[start + len(new) + 1 :])
    result = disassemble_kernel(cubin.with_words(listing.kernel, words, {}), listing.kernel.name)
    for i, (_, wanted) in zip(result.instructions[start:], lines, strict=False):
        if _plain(i) != wanted:
            raise CuasmrlError(f"{wanted!r} became {i.text!r}: its registers stand elsewhere in the word.")
    return result


def _renamed(wanted: str, listing: Listing) -> bytes:
    """A word that reads as wanted, made from one of the same opcode."""
    opcode = wanted.split(maxsplit=1)[0]
    donor = next((i for i in listing.instructions if _plain(i).split(maxsplit=1)[0] == opcode), None)
    if donor is None:
        raise CuasmrlError(f"{listing.kernel.name} has no {opcode} to make {wanted!r} from.")
    bits = int.from_bytes(donor.word, "little")
    registers = [int(n) for n in _REGISTER.findall(wanted)]
    if _REGISTER.sub("R", _plain(donor)) != _REGISTER.sub("R", wanted):
        raise CuasmrlError(f"{wanted!r} cannot be made from {donor.text!r}.")
    for position, register in zip(_FIELDS, registers, strict=False):
        bits = bits & ~(0xFF << position) | register << position
    return bits.to_bytes(16, "little")


def _plain(i: Instruction) -> str:
    return i.text.replace(".reuse", "")
