"""Fields of the records that the replay works on: instructions, warps, sub-cores, the SM.

Compiled code works on flat arrays of integers: the code, the work, the state, the tally, the log. A record is
named by the position where it begins, a field is added to it: `state[w + Warp.VISIT]`. Inside the replay the
arrays are bare pointers. That keeps it free of objects and their reference counts, which would cost more than
the model itself. Where nobody asks for a tally and a log they are None, and Numba leaves out what fills them.

Times are cycles; those of tensor cores are sixteenths of a cycle, as their intervals are not whole.
"""

from enum import IntEnum

SUB_CORES = 4
BOARDS = 6
IN_FLIGHT = 60
"""Groups of copies that a warp can have in flight, as scoreboards count to 63."""
SIXTEENTH = 16
PARTS = 256
"""Of a cycle: the grain of what a sector takes from L2 and DRAM, as an SM's share is no whole number."""
OWN_SECTOR = 1 << 60
"""Marks a sector whose line only one of the traced blocks touches."""
SLOTS = 3
"""Operand slots of an instruction, each up to two registers wide."""
FAR = 1 << 60
RESULT_GROUPS = 128
"""Groups of registers that the same tensor products write, so that their values come together: a product
writes at least two registers."""
CONSTANT_LINES = 1024
ACCEPT_RING = 1024
"""Cycles ahead for which turns can be taken: sub-cores with short queues come in between those with long."""
PORT_SPAN = 32
PORT_RING = 128
"""Spans of so many cycles, for turns of the data port: a copy needs some when it comes from afar."""
WARPS_OF_GROUP = 4
PRODUCTS_AHEAD = 128
"""Products that a warp may have issued and another one of its warpgroup not."""
GROUPS_KNOWN = 64
"""Groups of products whose end is known."""
READS, WRITES = 16, 8
"""General registers of an instruction that may be results of tensor products, or are: at most so many."""


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
    PRODUCT = 9
    """Of a warpgroup."""
    PRODUCT_WAIT = 10
    MEET = 11
    """A barrier of the block that is not for all who wait at barrier 0."""
    STORES_WAIT = 12
    """DEPBAR for groups of bulk stores."""
    ARRIVE = 13
    """From here on: through the memory queue, to what runs beside the warps (`phases.py`)."""
    PHASE_WAIT = 14
    COPY_IN = 15
    COPY_OUT = 16
    FLUSH = 17
    """The end of a group of bulk stores."""
    MULTIPLY = 18
    """An order to the tensor core beside the warps (tcgen05)."""
    COMMIT = 19


class Way(IntEnum):
    """Which way a queued instruction goes."""

    SHARED = 0
    GLOBAL = 1
    COPY = 2
    CONSTANT = 3
    OTHER = 4


class Cause(IntEnum):
    """What holds up a result that a scoreboard or a group of copies announces."""

    SHORT = 0
    """A unit, shared memory, or sources that have to be read."""
    LATENCY = 1
    """The way to L1 or L2 and back."""
    L2_SHARE = 2
    """The SM's share of L2 bandwidth, for longer than the way."""
    DRAM = 3
    PRODUCT = 4
    """Products of the warpgroup."""
    MBARRIER = 5
    """Arrivals at an mbarrier."""
    TMA = 6
    """Copies by the engine, for as long as L2 takes on an idle machine and the engine itself."""


class Cached(IntEnum):
    """How an access to global or local memory uses L1."""

    NO = 0
    """It goes to L2: stores, atomics, loads that the device or the system has to see, and most copies."""
    LOADS = 1
    """It looks for its data in L1."""
    KEEPS = 2
    """Local memory: loads look there, and what is stored stays there."""


class Choice(IntEnum):
    """Which warp a sub-core issues when the one that issued last is not ready."""

    YOUNGEST = 0
    OLDEST = 1
    LEAST_RECENT = 2
    """The one that has not issued for longest."""
    NEXT = 3
    """The next one in turn, even if the last one is ready: of no chip's file, for devices made up to be
    something else."""


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
    """An instruction of the schedule: first what is looked at most often."""

    KIND = 0
    UNIT = 1
    STALL = 2
    YIELDS = 3
    WAIT = 4
    WRITE_BOARD = 5
    READ_BOARD = 6
    LAST = 7
    """Is it the last of its block?"""
    FIRST = 8
    """Is it the first of its line?"""
    LINE = 9
    """Its line of the instruction cache."""
    CONSTANT = 10
    """Line of a constant bank that a fixed-latency operand reads, numbered; -1 for none."""
    HOLD = 11
    """Cycles for which its unit takes nothing else."""
    LITE = 12
    """May it use the second FP32 pipe?"""
    OF_SM = 13
    """Is its unit the only one of the SM?"""
    REUSE = 14
    WAY = 15
    SLOT = 16
    """Its number among the traced instructions of its block; -1 if it has no accesses."""
    RAW = 17
    """From issue to the earliest consumer on an idle machine; sixteenths for tensor cores."""
    WAR = 18
    """From issue until its sources may be overwritten."""
    GATE = 19
    """Field of the sub-core that alone says when its unit or queue lets it in; -1 if more has to be asked."""
    INTERVAL = 20
    """Sixteenths between products of a sub-core, or of a warpgroup; of a kilobyte of a bulk copy. Cycles from
    the end of a phase to who waits for it."""
    SAME_WARP = 21
    """Least cycles from the issue of a product to the next one of the same warp."""
    AHEAD = 22
    """Cycles for which a product may wait at the tensor core after its issue."""
    SOURCE_COUNT = 23
    """Registers that need a read port."""
    SOURCES = 24
    """Six fields: each register, times eight, and its place in the reuse cache, by slot and bank."""
    READ_COUNT = 30
    """Groups of registers it reads that tensor products write."""
    WRITE_COUNT = 31
    """Groups of registers a tensor product writes."""
    READS = 32
    WRITES = 48
    IS_LOAD = 56
    WORDS = 57
    """Registers per lane that come back from memory."""
    LEAST_PASSES = 58
    CACHED = 59
    """How it uses L1: a `Cached`."""
    BANKS = 60
    """Are the passes of its accesses turns of the data port?"""
    ORIGINAL = 61
    """Index in the listing that was traced."""
    DEPBAR_COUNT = 62
    DEPBAR_BOARD = 63
    """The scoreboard a DEPBAR waits for to be zero; -1 if it counts groups of copies."""
    TURNS = 64
    """Turns of the data port that a product of a warpgroup takes to read its tiles; sixteenths of a cycle
    that the copying engine takes for a line."""
    CLOSES = 65
    """Is it the last of its group? Of a wait for stores: must they have arrived?"""
    ALSO = 66
    """Mask of further scoreboards that a DEPBAR names."""
    WIDTH = 67


class Job(IntEnum):
    """The head of the work: where its tables begin."""

    WARPS_PER_BLOCK = 0
    BLOCKS = 1
    """Traced blocks; more are executed by going their ways again."""
    BLOCK_STARTS = 2
    """Record of the first instruction of each block of the code."""
    PATH_STARTS = 3
    """Per traced warp, where its path begins; one more for the end of the last. Each visit on a path has two
    numbers: the block, and where its accesses begin."""
    ACCESSES = 4
    """Per visit and traced instruction of the block: record of the access, or of the events; -1 if no lane
    was active."""
    PHASES = 5
    """Phases of mbarriers that a block has at most."""
    PHASE_EVENTS = 6
    """Where the table of their events begins: how many, by traced block and phase."""
    ORDERS = 7
    """Where the table of all orders to engines begins, with which the work ends: an `Order` each."""
    HEAD = 8


class Access(IntEnum):
    """An access of a warp; its sectors follow."""

    LINES = 0
    PASSES = 1
    SECTORS = 2
    GROUPS = 3
    """Aligned groups of four lines that it touches."""
    FRESH = 4
    """Sectors that nothing else of its block has touched before in the order of the trace."""
    FIRST_SECTOR = 5


class Sm(IntEnum):
    """What the sub-cores share; it stands at the beginning of the state."""

    TAG_FREE = 0
    """In sixteenths."""
    L2_FREE = 1
    """When the port to L2 is free, in parts of a cycle."""
    CLOCK = 2
    """Counts accesses, so that the oldest line can leave a cache."""
    STARTED = 3
    """Blocks that have been given a seat."""
    FINISHED = 4
    ISSUED = 5
    LOG_SIZE = 6
    """Numbers that the log has room for."""
    SEED = 7
    """Of the latency jitter."""
    PORT_END = 8
    """When the data port has done what has been asked of it, but for copies that are on their way."""
    DRAM_DUE = 9
    """When the SM's share of DRAM has moved all that was asked for, in parts of a cycle."""
    CAUSE = 10
    """What the last access to global memory waits for, a `Cause`."""
    START_FREE = 11
    """When the chip gives this SM its next block, in parts of a cycle."""
    L2_DUE = 12
    """As `DRAM_DUE`, of L2."""
    ENGINE_FREE = 13
    """When products of warpgroups that have been issued are done, in sixteenths."""
    VISITS = 14
    """Visits of blocks that warps have ended."""
    LATE = 15
    """How many of the last of them in a row were later than is allowed."""
    ACCEPTS = 16
    """Cycles in which the SM takes over an instruction, each at its number modulo the size of the ring."""
    PORT = 16 + ACCEPT_RING
    """When the data port of shared memory and L1 is taken: for each span its number, and a bit a cycle."""
    WIDTH = 16 + ACCEPT_RING + 2 * PORT_RING


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
    """Six fields: what the reuse cache holds by slot and bank, a register of a warp; -1 for nothing."""
    QUEUE = 27
    """When each of up to 32 places of the memory queue becomes free."""
    TENSOR_FED = 59
    """When the warp that sent the last product may issue another."""
    QUEUE_FREE = 60
    """When the memory queue has room for one more."""
    OPEN = 61
    """Always 0: what needs no unit may pass."""
    CONSTANTS = 62
    """When the lines of the constant cache arrive; FAR if nobody has asked. Behind them, when the lines of
    the L0 instruction cache arrive, and which lines they are."""


class Warp(IntEnum):
    """A warp slot of the SM."""

    BLOCK = 0
    SEAT = 1
    """Record of the block it belongs to."""
    VISIT = 2
    LAST_VISIT = 3
    POSITION = 4
    """Record of its next instruction."""
    READY = 5
    """Where it stands when that may issue as far as time decides; FAR at a barrier and without a warp."""
    LAST_ISSUE = 6
    BORN = 7
    STALL_END = 8
    JUMP_END = 9
    FETCH_END = 10
    COPIES_END = 11
    RELEASE = 12
    WAITING = 13
    GROUPS = 14
    """Groups of copies it has closed."""
    COPIES = 15
    """When the copies issued so far have arrived."""
    BOARD_DONE = 16
    BOARD_BEFORE = 22
    """What BOARD_DONE was before the last increment, which is not visible at once."""
    BOARD_SET = 28
    BOARD_CAUSE = 34
    NUMBER = 40
    """Its number in the block."""
    COPIES_CAUSE = 41
    """Of the copy that arrives last of those issued so far."""
    COPIES_END_CAUSE = 42
    GROUP_DONE = 43
    GROUP_CAUSE = 43 + IN_FLIGHT
    RESULTS = 43 + 2 * IN_FLIGHT
    """When groups of registers hold the results of tensor products, in sixteenths."""
    WIDTH = 43 + 2 * IN_FLIGHT + RESULT_GROUPS


class Seat(IntEnum):
    """A block that is resident."""

    ALIVE = 0
    ARRIVED = 1
    """Warps that wait at its barrier."""
    WARPS = 2
    """Record of its first warp."""
    WIDTH = 3


class Squad(IntEnum):
    """A warpgroup. Lists have a field for each of its warps."""

    MEMBERS = 0
    BEGUN = 1
    """Products that all of its warps have issued."""
    CLOSED = 2
    """Groups of which that is true."""
    ISSUED = 3
    """Products that each warp has issued."""
    SENT = 3 + WARPS_OF_GROUP
    """Groups that each warp has closed."""
    AWAITED = 3 + 2 * WARPS_OF_GROUP
    """How many groups must be done for a parked warp; 0 for one that is not."""
    ARRIVED = 3 + 3 * WARPS_OF_GROUP
    """Warps that have issued a product, by its number modulo PRODUCTS_AHEAD."""
    DONE = 3 + 3 * WARPS_OF_GROUP + PRODUCTS_AHEAD
    """When groups are done, by their number modulo GROUPS_KNOWN."""
    WIDTH = 3 + 3 * WARPS_OF_GROUP + PRODUCTS_AHEAD + GROUPS_KNOWN


class Tally(IntEnum):
    """What is counted: cycles by reason of all warps, of the units, of each sub-core, of each instruction."""

    WARPS = 0
    UNITS = 21
    CORES = 37
    ROWS = 121
    REASONS = 21


class Note(IntEnum):
    """What is written down of an issue: the only record that reports and the sanitizer read."""

    CYCLE = 0
    BLOCK = 1
    WARP = 2
    """Its number in the block."""
    POSITION = 3
    """Its position in the schedule."""
    COMPLETE = 4
    """When its result is there; for fixed latencies the cycle of issue, as their latency is not modelled."""
    FREED = 5
    """When its sources may be overwritten."""
    CAUSE = 6
    """What holds its result up, a `Cause`."""
    WIDTH = 7


class Reason(IntEnum):
    """Why a cycle of a warp or a sub-core passed, in the order in which an instruction meets them."""

    ISSUED = 0
    STALL = 1
    BRANCH = 2
    FETCH = 3
    SHORT_SCOREBOARD = 4
    LONG_SCOREBOARD = 5
    COPY = 6
    TMA = 7
    """Copies by the engine, or stores by it."""
    L2_SHARE = 8
    """A load or copy that has its SM's share of L2 bandwidth to wait for."""
    DRAM = 9
    """A load or copy whose data comes from DRAM."""
    BARRIER = 10
    MBARRIER = 11
    """Arrivals of other warps at an mbarrier."""
    TENSOR_RESULT = 12
    TENSOR_ENGINE = 13
    """Products of the warpgroup that have to be done."""
    CONSTANT = 14
    TENSOR_BUSY = 15
    UNIT_BUSY = 16
    MEMORY_QUEUE = 17
    REGISTER_PORT = 18
    NOT_SELECTED = 19
    NO_WARP = 20


_WRITTEN = {name: name for name in ("L2", "DRAM", "TMA")}
REASON_NAMES = {
    reason: " ".join(_WRITTEN.get(word, word.lower()) for word in reason.name.split("_")) for reason in Reason
}
