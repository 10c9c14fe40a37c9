"""What warps do to each other and to engines beside them: the second table of a trace.

Times are not in it. A wait is one event, whatever the order in which warps execute, and names the phase that
it waits for; who arrives, and what copies bring, names the phase to which it belongs. So a replay needs no
counts: a phase has ended when all of its events have happened.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

import numpy as np
import numpy.typing as npt

from cuasmrl.binary.sass import Instruction
from cuasmrl.binary.sass import Kind as Form

LINE_BYTES, SECTOR_BYTES, TURN_BYTES = 128, 32, 128
TENSOR_ORDERS = frozenset(("UTCHMMA", "UTCIMMA", "UTCQMMA", "UTCBAR"))
_SYNCHRONISING = frozenset(("SYNCS", "ARRIVES"))
COPIES_IN = frozenset(("UTMALDG", "UBLKCP"))
COPIES_OUT = frozenset(("UTMASTG", "UTMAREDG", "UBLKCP"))
Numbers = npt.NDArray[np.int64]


class Event(IntEnum):
    """What happens."""

    ARRIVE = 0
    """Arrivals at an mbarrier, and bytes announced to it (negative: brought)."""
    ARRIVE_WITH_COPIES = 1
    """The same, when the copies of the warp's lanes (LDGSTS) have landed."""
    WAIT = 2
    """Until the phase of an mbarrier has ended."""
    COPY_IN = 3
    """An order to an engine: bytes into shared memory, of which an mbarrier is told."""
    COPY_OUT = 4
    """Bytes out of shared memory. They belong to the warp's next group of stores."""
    MEET = 5
    """A barrier of the block by its number, for so many threads; 0 for all."""
    PASS = 6
    """An arrival at such a barrier, which waits for nobody."""
    PRODUCT = 7
    """An order to the tensor core (tcgen05): rows in the place of a phase, columns in that of a count, and
    bytes that it reads from shared memory."""
    COMMIT = 8
    """An arrival at an mbarrier when all products that the warp has ordered are done."""


COLUMNS = ("warp", "position", "instruction", "kind", "barrier", "phase", "count", "bytes")
"""Of the table; in a trace they begin with `event_`."""


def copies_in(instruction: Instruction) -> bool:
    """Does it order bytes from global to shared memory?"""
    return instruction.opcode in COPIES_IN and instruction.modifiers[:1] != ("G",)


def copies_out(instruction: Instruction) -> bool:
    return instruction.opcode in COPIES_OUT and instruction.modifiers[:1] != ("S",)


def is_eventful(instruction: Instruction) -> bool:
    """May a trace have events of it?"""
    if instruction.opcode == "BAR":
        return not is_plain_barrier(instruction)
    synchronises = instruction.opcode in _SYNCHRONISING or instruction.opcode in TENSOR_ORDERS
    return synchronises or copies_in(instruction) or copies_out(instruction)


def is_plain_barrier(instruction: Instruction) -> bool:
    """Barrier 0 for all threads of the block, who wait there."""
    if "ARV" in instruction.modifiers:
        return False
    numbers = [o for o in instruction.operands if not o.is_predicate]
    return len(numbers) == 1 and numbers[0].kind is Form.IMMEDIATE and not numbers[0].value


@dataclass(frozen=True)
class Traffic:
    """What a copy by an engine touches in global memory: an access of its warp."""

    warp: int
    position: int
    instruction: int
    sectors: Numbers
    """Numbers of the sectors, each once, in rising order."""
    turns: int
    """Of the data port of shared memory."""

    @property
    def lines(self) -> int:
        return len(np.unique(self.sectors * SECTOR_BYTES // LINE_BYTES))


@dataclass
class Events:
    """Collects them while slabs execute; warps are numbered over all slabs."""

    rows: list[Numbers] = field(default_factory=list)
    traffic: list[Traffic] = field(default_factory=list)

    def note(
        self, kind: Event, instruction: int, warps: Numbers, positions: npt.NDArray[np.int32], barrier: int,
        phases: Numbers | int = 0, counts: Numbers | int = 0, moved: Numbers | int = 0,
    ) -> None:  # fmt: skip
        """One event of each of these warps."""
        row = np.empty((len(warps), len(COLUMNS)), np.int64)
        values = (warps, positions, instruction, int(kind), barrier, phases, counts, moved)
        for k, value in enumerate(values):
            row[:, k] = value
        self.rows.append(row)

    def table(self) -> dict[str, npt.NDArray[Any]]:
        """Columns of a trace, sorted by warp, position and instruction; events of one keep their order."""
        rows = np.concatenate([np.zeros((0, len(COLUMNS)), np.int64), *self.rows])
        rows = rows[np.lexsort((rows[:, 2], rows[:, 1], rows[:, 0]))]
        return {f"event_{name}": rows[:, k].astype(np.int32) for k, name in enumerate(COLUMNS)}


def sectors_between(starts: Numbers, size: int) -> Numbers:
    """Sectors that stretches of so many bytes touch."""
    first, last = starts // SECTOR_BYTES, (starts + size - 1) // SECTOR_BYTES
    most = int((last - first).max(initial=-1)) + 1
    every = first[:, None] + np.arange(most)
    return np.asarray(np.unique(every[every <= last[:, None]]))
