"""Records of what runs beside the warps: phases of mbarriers, copies by an engine, barriers with a number.

They stand in the work and in the state only if the trace has such events.
"""

from enum import IntEnum

from cuasmrl.gpu.timing.records import BOARDS

GROUPS_OF_STORES = 64
"""Groups whose end is known, as scoreboards count to 63."""
NUMBERS = 16
"""Barriers of a block."""
CHUNK = 64
"""Sectors of a copy that go to L2 together."""


class Happening(IntEnum):
    """An event of the trace, in the work; those of one execution follow their number."""

    KIND = 0
    """An `Event`."""
    PHASE = 1
    """Its number in the block; -1 for none. Rows of a product."""
    NUMBER = 2
    """Of the barrier of the block."""
    COUNT = 3
    """For how many warps that barrier waits, 0 for all; columns of a product."""
    BYTES = 4
    ACCESS = 5
    """Record of what a copy touches; -1 for none."""
    WIDTH = 6


class Phase(IntEnum):
    """A phase of an mbarrier."""

    LEFT = 0
    """Events that have not been issued yet."""
    END = 1
    """When the last one happens of those that have."""
    CAUSE = 2
    """What that one waits for."""
    WIDTH = 3


class Side(IntEnum):
    """What a warp has under way beside it."""

    PENDING = 0
    """Mask of the scoreboards that wait for a phase of which nobody knows when it ends."""
    MEETING = 1
    """It stands at a barrier of this number; 0 for none, and else one more."""
    READ = 2
    """When the stores so far have read shared memory, and when they have arrived."""
    ARRIVED = 3
    GROUPS = 4
    WAKE = 5
    """From the end of a phase until who waits for it knows."""
    PRODUCTS = 6
    """When the products so far are done."""
    WAITS = 7
    """By scoreboard: the events that it waits for."""
    NOTES = 7 + BOARDS
    """By scoreboard: which issue of the log is the wait."""
    GROUP_READ = 7 + 2 * BOARDS
    GROUP_ARRIVED = 7 + 2 * BOARDS + GROUPS_OF_STORES
    WIDTH = 7 + 2 * BOARDS + 2 * GROUPS_OF_STORES


class Meet(IntEnum):
    """A barrier of a block."""

    ARRIVED = 0
    """Warps."""
    EXPECTED = 1
    """0 for all that live."""
    WIDTH = 2


class Engine(IntEnum):
    """The engine that copies (TMA), one for each SM."""

    FREE = 0
    """When it is through with what has been ordered, in sixteenths."""
    WIDTH = 1


class Order(IntEnum):
    """An order to an engine, in the table of all that traced blocks give."""

    BLOCK = 0
    INSTRUCTION = 1
    """Its index in the listing."""
    BYTES = 2
    ACCESS = 3
    """Record of what it touches; -1 for products."""
    KIND = 4
    """An `Event`."""
    AWAITED = 5
    """Does somebody wait for its phase?"""
    COLUMNS = 6
    WIDTH = 7
