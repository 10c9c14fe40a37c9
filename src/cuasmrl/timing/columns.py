"""Columns of the tables that the replay works on: instructions, warps, sub-cores, the SM.

Compiled code reads whole rows of plain numbers, so records are rows of 64-bit integers and fields are
columns. Times are cycles; those of tensor cores are sixteenths of a cycle, as their intervals are not whole.
"""

from enum import IntEnum

SUB_CORES = 4
BOARDS = 6
GROUPS = 60
"""Groups of copies that a warp can have in flight, as scoreboards count to 63."""
SIXTEENTH = 16
SLOTS = 3
"""Operand slots of an instruction, each up to two registers wide."""
FAR = 1 << 60


class Kind(IntEnum):
    """What becomes of an instruction after issue."""

    FIXED = 0
    QUEUED = 1
    UNIT = 2
    TENSOR = 3
    BRANCH = 4
    BARRIER = 5
    EXIT = 6
    DEPBAR = 7
    GROUP = 8


class Way(IntEnum):
    """Which way a queued instruction goes."""

    SHARED = 0
    GLOBAL = 1
    COPY = 2
    CONSTANT = 3
    OTHER = 4


class Unit(IntEnum):
    """Functional units of a sub-core."""

    FMA = 0
    FMA_LITE = 1
    INT = 2
    HALF = 3
    FP64 = 4
    XU = 5
    UNIFORM = 6
    BRANCH = 7
    TENSOR = 8
    NONE = 9


class Row(IntEnum):
    """An instruction of the schedule."""

    ORIGINAL = 0
    """Index in the listing that was traced."""
    KIND = 1
    UNIT = 2
    HOLD = 3
    """Cycles for which its unit takes nothing else."""
    LITE = 4
    """May it use the second FP32 pipe?"""
    STALL = 5
    YIELDS = 6
    WAIT = 7
    WRITE_BOARD = 8
    READ_BOARD = 9
    WAY = 10
    RAW = 11
    """From issue to the earliest consumer on an idle machine; sixteenths for tensor cores."""
    WAR = 12
    """From issue until its sources may be overwritten."""
    LEAST_PASSES = 13
    WORDS = 14
    """Registers per lane that come back from memory."""
    IS_LOAD = 15
    SLOT = 16
    """Its number among the traced instructions of its block; -1 if it has no accesses."""
    DEPBAR_COUNT = 17
    INTERVAL = 18
    """Sixteenths between products of a sub-core."""
    REUSE = 19
    CONSTANT = 20
    """Line of a constant bank that a fixed-latency operand reads; -1 for none."""
    TENSOR_READS = 21
    """Does it read a register that some tensor product writes?"""
    READS = 22
    """Where its general source registers begin in the list of registers; WRITES ends them."""
    WRITES = 23
    END = 24
    SOURCES = 25
    """Six columns: registers by operand slot, -1 for none."""
    WIDTH = 31


class Warp(IntEnum):
    """A warp slot of the SM."""

    TRACED = 0
    """Number of the traced warp whose way it goes."""
    VISIT = 1
    LAST_VISIT = 2
    PLACE = 3
    """Row of its next instruction."""
    READY = 4
    """When that may issue as far as time decides; FAR at a barrier and when there is no warp."""
    LAST_ISSUE = 5
    BORN = 6
    STALL_END = 7
    JUMP_END = 8
    FETCH_END = 9
    COPIES_END = 10
    RELEASE = 11
    WAITING = 12
    GROUPS = 13
    """Groups of copies it has closed."""
    COPIES = 14
    """When the copies issued so far have arrived."""
    BLOCK = 15
    BOARD_DONE = 16
    BOARD_BEFORE = 22
    """What BOARD_DONE was before the last increment, which is not visible at once."""
    BOARD_SET = 28
    BOARD_LONG = 34
    GROUP_DONE = 40
    WIDTH = 100


class Core(IntEnum):
    """A sub-core."""

    LAST_ISSUE = 0
    LAST_WARP = 1
    CONTROL_FREE = 2
    ALLOCATE_FREE = 3
    TENSOR_FREE = 4
    LAST_TENSOR = 5
    QUEUED = 6
    ACCEPTED = 7
    RETURN_FREE = 8
    PORT_FREE = 9
    UNIT_FREE = 11
    CACHED = 21
    """Six columns: register in the reuse cache by slot and bank."""
    CACHED_WARP = 27
    QUEUE = 33
    """When each place of the memory queue becomes free."""
    WIDTH = 65


class Sm(IntEnum):
    """What the sub-cores share."""

    ACCEPTED = 0
    SHARED_FREE = 1
    TAG_FREE = 2
    L2_FREE = 3
    CLOCK = 4
    """Counts accesses, so that the oldest line can leave a cache."""
    STARTED = 5
    """Blocks that have been given a seat."""
    FINISHED = 6
    ISSUED = 7
    WIDTH = 8


class Reason(IntEnum):
    """Why a cycle of a warp or a sub-core passed, in the order in which an instruction meets them."""

    ISSUED = 0
    STALL = 1
    BRANCH = 2
    FETCH = 3
    SHORT_SCOREBOARD = 4
    LONG_SCOREBOARD = 5
    COPY = 6
    BARRIER = 7
    TENSOR_RESULT = 8
    CONSTANT = 9
    TENSOR_BUSY = 10
    UNIT_BUSY = 11
    MEMORY_QUEUE = 12
    REGISTER_PORT = 13
    NOT_SELECTED = 14
    NO_WARP = 15


REASON_NAMES = {reason: reason.name.lower().replace("_", " ") for reason in Reason}
