"""One declaration per opcode, read by every other layer.

A declaration says which pipe executes the opcode, whether its result arrives after a fixed time or is
announced by a scoreboard (this differs between chips), which memory it touches, how freely it may move,
which leading operands are destinations, and which rule gives the widths of its operands.

Pipes and latency classes are inferred from compiler output over seven chips: an opcode counts as
variable-latency on a chip where ptxas protects its result with a scoreboard.
"""

from dataclasses import dataclass
from enum import StrEnum


class Pipe(StrEnum):
    ALU = "alu"
    FMA = "fma"
    HALF = "half"
    FP64 = "fp64"
    XU = "xu"
    TENSOR = "tensor"
    UNIFORM = "uniform"
    MEMORY = "memory"
    BRANCH = "branch"
    ASYNC = "async"
    """Engines that run beside the warp: wgmma, tcgen05, TMA, mbarriers."""


class Order(StrEnum):
    """How an instruction may move inside its block."""

    FREE = "free"
    MEMORY = "memory"
    """Stays in order with conflicting accesses and never crosses a synchronisation."""
    SYNC = "synchronisation"
    """No memory access and no other synchronisation crosses it; arithmetic may."""
    PRODUCT = "warpgroup product"
    """In order with its like, with synchronisation and with what writes shared memory; its registers are
    not touched from its WARPGROUP.ARRIVE to the WARPGROUP.DEPBAR that covers it."""
    PINNED = "pinned"
    """Keeps its position; nothing crosses it."""

    @property
    def is_strict(self) -> bool:
        """Its waits may stand for memory that has to be settled, so it keeps them."""
        return self in (Order.SYNC, Order.PRODUCT, Order.PINNED)


class Space(StrEnum):
    GLOBAL = "global"
    SHARED = "shared"
    LOCAL = "local"
    GENERIC = "generic"
    TENSOR = "tensor memory"


class Shape(StrEnum):
    """Which leading operands are destinations."""

    RESULT = "predicates, one register, predicates"
    PREDICATES_2 = "two predicates"
    ALL_BUT_LAST = "everything but the last operand"
    FIRST = "the first operand"
    NONE = "nothing"


class Widths(StrEnum):
    """How many consecutive registers each operand stands for."""

    SINGLE = "one register each"
    SIZED = "pairs with .64"
    SIZED_SOURCE = "source pairs with .64"
    DOUBLE = "pairs throughout"
    MULTIPLY_ADD = "by .WIDE and .HI"
    CONVERT = "by the two type modifiers"
    MEMORY = "data by .64/.128, address by space"
    MULTIMEM = "data by the packed type, such as F16x8"
    MATRIX_LOAD = "data by the matrix count"
    MATRIX_MOVE = "a pair when bytes come out of nibbles"
    MMA = "by the shape in the mnemonic"
    WARPGROUP_MMA = "accumulators by N, descriptors of four"
    PACKED = "pairs unless marked .F32"
    SPECIAL_TO_REGISTER = "a pair unless .32"
    TENSOR_MEMORY = "data by .xN"
    TENSOR_COPY = "coordinates by dimension"
    BULK_COPY = "addresses by space"
    TENSOR_CORE = "descriptor pairs"
    MBARRIER = "pairs with .64 and TRANS64"
    CODE_ADDRESS = "pairs for code addresses"


ALL_ARCHS = frozenset((75, 80, 86, 87, 88, 89, 90, 100, 103, 110, 120, 121))
NO_ARCHS: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Opcode:
    name: str
    pipe: Pipe
    variable: frozenset[int] = NO_ARCHS
    """Chips on which the result is announced by a scoreboard."""
    by_assembler: frozenset[int] = NO_ARCHS
    """Chips of these where it depends on the ptxas: 13.0 counts cycles, 13.4 uses scoreboards."""
    queue: str = ""
    """Queue in which it waits for its unit; those of one queue read their sources in the order of issue."""
    predicate_with_sources: bool = False
    """Its predicate is known once the sources have been read, so the read barrier announces it."""
    order: Order = Order.FREE
    reads: Space | None = None
    writes: Space | None = None
    shape: Shape = Shape.RESULT
    widths: Widths = Widths.SINGLE
    keyed_by: tuple[str, ...] = ()
    """Modifiers that change the timing and therefore belong to the timing key."""
    jumps: bool = False
    """Ends a basic block."""
    warp_wide: bool = False
    """Exchanges values between lanes."""
    settles: bool = False
    """Whoever waits for its result may want memory settled for the tensor core, and no register shows it."""
    padded: bool = False
    """A NOP behind it belongs to it."""
    fence: bool = False
    """A wait for its scoreboard orders memory, and no register shows it."""
    shares: Pipe | None = None
    """Another pipe that it keeps busy besides its own."""
    returns_apart: bool = False
    """Compilers give its result a scoreboard of its own, whatever others of its queue may do."""
    seldom_in_order: bool = False
    """They leave it out now and then: too seldom for a proof to count on, too often for an alarm."""
    reads_apart: bool = False
    """Reads operands at another time than others of its pipe: as a consumer it is a class of its own."""

    def is_variable(self, arch: int) -> bool:
        return arch in self.variable

    def returns_in_order(self, arch: int) -> bool:
        """Do results of its queue come back in the order of issue on this chip?

        Only where compilers leave out scoreboards because of it; a load from global memory has its own.
        """
        return not self.returns_apart and self.may_return_in_order(arch)

    def may_return_in_order(self, arch: int) -> bool:
        """Has a compiler been seen to count on it, however seldom?"""
        is_apart = self.returns_apart and not self.seldom_in_order
        return not is_apart and arch in _IN_ORDER.get(self.queue, NO_ARCHS)

    @property
    def reader_class(self) -> str:
        """Consumers that read their operands at the same time, as far as compiler output tells."""
        return self.name if self.reads_apart or self.warp_wide else self.pipe


_UNTIL_89 = frozenset((75, 80, 86, 87, 88, 89))
_SM_10X = frozenset((100, 103, 110))
_IN_ORDER = {"shared": ALL_ARCHS, "xu": ALL_ARCHS, "fp64": ALL_ARCHS, "tensor": ALL_ARCHS,
             "uniform special": ALL_ARCHS - _UNTIL_89, "tmem": _SM_10X}  # fmt: skip
"""Queues whose results come back in the order of issue, with the chips that compilers show it on."""
_DOUBLES = ALL_ARCHS - {90}


def _many(names: str, pipe: Pipe, **common: object) -> list[Opcode]:
    return [Opcode(name, pipe, **common) for name in names.split()]  # type: ignore[arg-type]


def _announced(names: str, pipe: Pipe, queue: str, **common: object) -> list[Opcode]:
    """Results announced by a scoreboard on every chip."""
    return _many(names, pipe, **({"variable": ALL_ARCHS, "queue": queue} | common))


def _load(names: str, queue: str, reads: Space, **common: object) -> list[Opcode]:
    return _announced(
        names, Pipe.MEMORY, queue, reads=reads, order=Order.MEMORY, **({"widths": Widths.MEMORY} | common)
    )


def _store(names: str, queue: str, writes: Space, **common: object) -> list[Opcode]:
    return _announced(names, Pipe.MEMORY, queue, writes=writes, order=Order.MEMORY, shape=Shape.NONE,
                      **({"widths": Widths.MEMORY} | common))  # fmt: skip


def _pinned(names: str, pipe: Pipe, **common: object) -> list[Opcode]:
    return _many(names, pipe, order=Order.PINNED, **({"shape": Shape.NONE} | common))


def _engine(names: str, queue: str, **common: object) -> list[Opcode]:
    """Orders to an engine beside the warp: their operands are read late. Most are never moved."""
    defaults = {"variable": ALL_ARCHS, "order": Order.PINNED, "shape": Shape.NONE}
    return _many(names, Pipe.ASYNC, queue=queue, **(defaults | common))


def _copying(names: str, queue: str, **common: object) -> list[Opcode]:
    """Orders to copy or to multiply, and barriers that tell of it: in order with memory and each other."""
    return _engine(names, queue, order=Order.SYNC, **common)


def _product(names: str, **common: object) -> list[Opcode]:
    """Products of a warpgroup, and what begins and awaits them."""
    return _many(names, Pipe.ASYNC, order=Order.PRODUCT, **common)


_DECLARATIONS = [
    # integer and logic
    *_many("IADD3 LOP3 SHF LEA PRMT SGXT IABS VIMNMX3 BMSK VABSDIFF VABSDIFF4", Pipe.ALU),
    *_many("P2R", Pipe.ALU, reads_apart=True),
    *_many("IADD MOV SEL VIADDMNMX IMNMX VIMNMX", Pipe.ALU, widths=Widths.SIZED, keyed_by=("64",)),
    *_many("ISETP FSETP", Pipe.ALU, shape=Shape.PREDICATES_2, widths=Widths.SIZED),
    *_many("PLOP3", Pipe.ALU, shape=Shape.PREDICATES_2, widths=Widths.SIZED, reads_apart=True),
    *_many("FSEL FMNMX FMNMX3 FSET F2FP F2IP I2FP I2I I2IP VHMNMX", Pipe.ALU),
    *_many("R2P", Pipe.ALU, shape=Shape.FIRST, reads_apart=True),
    *_many("VOTE ELECT", Pipe.ALU, shape=Shape.ALL_BUT_LAST, warp_wide=True),
    *_many("CS2R", Pipe.ALU, widths=Widths.SPECIAL_TO_REGISTER, keyed_by=("32",), reads_apart=True),
    # multiply-add
    *_many("FADD FMUL FFMA FHADD FHFMA VIADD IDP", Pipe.FMA),
    *_many("IMAD", Pipe.FMA, widths=Widths.MULTIPLY_ADD, keyed_by=("WIDE", "HI")),
    *_many("FADD2 FMUL2 FFMA2", Pipe.FMA, widths=Widths.PACKED),
    *_many("HADD2 HMUL2 HFMA2 HMNMX2 HSET2", Pipe.HALF, keyed_by=("MMA",)),
    *_many("HSETP2", Pipe.HALF, shape=Shape.PREDICATES_2),
    # double precision
    *_many("DADD DMUL DFMA", Pipe.FP64, variable=_DOUBLES, by_assembler=_SM_10X, queue="fp64",
           widths=Widths.DOUBLE),
    *_many("DSETP", Pipe.FP64, variable=_DOUBLES, by_assembler=_SM_10X, queue="fp64", widths=Widths.DOUBLE,
           shape=Shape.PREDICATES_2),
    *_announced("DMMA", Pipe.TENSOR, "fp64", widths=Widths.MMA, keyed_by=("*",), shares=Pipe.FP64),
    # special functions and conversions
    *_announced("MUFU POPC FLO", Pipe.XU, "xu"),
    *_announced("BREV", Pipe.XU, "xu", returns_apart=True),
    *_announced("FCHK", Pipe.XU, "xu", shape=Shape.FIRST),
    *_announced("F2F F2I I2F", Pipe.XU, "xu", widths=Widths.CONVERT),
    # Of some 3,700 FRND in libraries two have none of their own; eleven times one announces an I2F or F2I.
    *_announced("FRND", Pipe.XU, "xu", widths=Widths.CONVERT, returns_apart=True, seldom_in_order=True),
    # tensor cores
    *_many("HMMA BMMA", Pipe.TENSOR, variable=frozenset((75,)), queue="tensor", widths=Widths.MMA,
           keyed_by=("*",)),
    *_many("IMMA", Pipe.TENSOR, variable=_SM_10X | {75}, by_assembler=_SM_10X, queue="tensor",
           widths=Widths.MMA, keyed_by=("*",)),
    *_many("QMMA OMMA", Pipe.TENSOR, widths=Widths.MMA, keyed_by=("*",)),
    *_product("HGMMA IGMMA QGMMA BGMMA", widths=Widths.WARPGROUP_MMA),
    *_product("WARPGROUP", shape=Shape.NONE, keyed_by=("ARRIVE", "DEPBAR")),
    *_copying("UTCHMMA UTCIMMA UTCQMMA UTCOMMA UTCCP", "async", widths=Widths.TENSOR_CORE),
    *_copying("UTCBAR", "async", widths=Widths.TENSOR_CORE, padded=True),
    *_engine("UTCSHIFT", "async", widths=Widths.TENSOR_CORE),
    *_engine("UTCATOMSWS", "async", shape=Shape.RESULT),
    *_engine("LDTM", "tmem", shape=Shape.ALL_BUT_LAST, widths=Widths.TENSOR_MEMORY, order=Order.MEMORY,
             reads=Space.TENSOR, settles=True),
    *_engine("STTM", "tmem", widths=Widths.TENSOR_MEMORY, order=Order.MEMORY, writes=Space.TENSOR),
    *_copying("UTMALDG UTMASTG UTMAREDG UTMACCTL UTMACMDFLUSH UTMAPF", "async", widths=Widths.TENSOR_COPY),
    *_copying("UBLKCP UBLKRED UBLKPF", "async", widths=Widths.BULK_COPY),
    *_engine("UGETNEXTWORKID", "async"),
    *_copying("SYNCS", "shared", shape=Shape.RESULT, widths=Widths.MBARRIER, returns_apart=True),
    *_engine("STAS", "shared", widths=Widths.MEMORY),
    # uniform datapath
    *_many("UIADD3 USEL UMOV UVIMNMX UIMNMX", Pipe.UNIFORM, widths=Widths.SIZED, keyed_by=("64",)),
    *_many("ULOP3 USHF ULEA UPRMT UBMSK UBREV USGXT UFLO UPOPC UFADD UFMUL UFFMA UFSEL UI2FP UF2FP UF2IP",
           Pipe.UNIFORM),
    *_many("UP2UR", Pipe.UNIFORM, reads_apart=True),
    *_many("UR2UP", Pipe.UNIFORM, shape=Shape.FIRST, reads_apart=True),
    *_many("UI2F UF2I", Pipe.UNIFORM, widths=Widths.CONVERT),
    *_many("UIMAD", Pipe.UNIFORM, widths=Widths.MULTIPLY_ADD, keyed_by=("WIDE", "HI")),
    *_many("UISETP UFSETP", Pipe.UNIFORM, shape=Shape.PREDICATES_2, widths=Widths.SIZED),
    *_many("UPLOP3", Pipe.UNIFORM, shape=Shape.PREDICATES_2, widths=Widths.SIZED, reads_apart=True),
    *_many("ULDC", Pipe.UNIFORM, widths=Widths.MEMORY),
    *_many("VOTEU", Pipe.UNIFORM, shape=Shape.ALL_BUT_LAST, warp_wide=True),
    *_many("CS2UR", Pipe.UNIFORM, widths=Widths.SPECIAL_TO_REGISTER),
    *_many("R2UR", Pipe.UNIFORM, variable=_UNTIL_89, queue="xu", warp_wide=True, returns_apart=True),
    *_many("CREDUX", Pipe.UNIFORM, warp_wide=True),
    # reads of special registers, constants, other lanes
    *_announced("S2R", Pipe.MEMORY, "special", reads_apart=True),
    *_announced("S2UR", Pipe.MEMORY, "uniform special", reads_apart=True),
    *_announced("LDC", Pipe.MEMORY, "constant", widths=Widths.MEMORY),
    *_announced("LDCU", Pipe.MEMORY, "uniform constant", widths=Widths.MEMORY),
    *_announced("SHFL", Pipe.MEMORY, "shared", warp_wide=True),
    *_announced("MATCH", Pipe.MEMORY, "match", widths=Widths.SIZED_SOURCE, warp_wide=True),
    *_announced("MOVM", Pipe.MEMORY, "shared", widths=Widths.MATRIX_MOVE, warp_wide=True),
    *_announced("REDUX", Pipe.MEMORY, "xu", warp_wide=True),
    *_announced("B2R", Pipe.MEMORY, "barrier", order=Order.SYNC),
    *_announced("QSPC", Pipe.MEMORY, "global"),
    # memory
    *_load("LDG", "global", Space.GLOBAL),
    *_load("LD", "global", Space.GENERIC),
    *_load("LDL", "global", Space.LOCAL),
    *_load("LDGMC", "global", Space.GLOBAL, widths=Widths.MULTIMEM),
    *_load("LDS", "shared", Space.SHARED),
    *_load("LDSM", "shared", Space.SHARED, widths=Widths.MATRIX_LOAD),
    *_load("ATOMG", "global", Space.GLOBAL, writes=Space.GLOBAL),
    *_load("ATOM", "global", Space.GENERIC, writes=Space.GENERIC, predicate_with_sources=True),
    *_load("ATOMS", "shared", Space.SHARED, writes=Space.SHARED, returns_apart=True),
    *_store("STG", "global", Space.GLOBAL),
    *_store("ST", "global", Space.GENERIC),
    *_store("STL", "global", Space.LOCAL),
    *_store("STS", "shared", Space.SHARED),
    *_store("STSM", "shared", Space.SHARED, widths=Widths.MATRIX_LOAD),
    *_store("RED", "global", Space.GENERIC, reads=Space.GENERIC),
    *_store("REDG", "global", Space.GLOBAL, reads=Space.GLOBAL),
    *_store("LDGSTS", "global", Space.SHARED, reads=Space.GLOBAL),
    # synchronisation; from sm_90 on ptxas gives BAR a read barrier when its operands are registers
    *_many("BAR", Pipe.MEMORY, variable=ALL_ARCHS - _UNTIL_89, queue="barrier", order=Order.SYNC,
           shape=Shape.NONE),
    *_many("DEPBAR", Pipe.MEMORY, order=Order.SYNC, shape=Shape.NONE),
    *_announced("LDGDEPBAR", Pipe.MEMORY, "global", order=Order.SYNC, shape=Shape.NONE),
    *_many("MEMBAR FENCE", Pipe.BRANCH, variable=ALL_ARCHS, fence=True, order=Order.SYNC, shape=Shape.NONE),
    *_pinned("CCTL ARRIVES", Pipe.BRANCH, variable=ALL_ARCHS, fence=True),
    *_pinned("ERRBAR CGAERRBAR UCGABAR_ARV UCGABAR_WAIT PREEXIT ACQBULK ENDCOLLECTIVE BPT NANOSLEEP YIELD "
             "NOP UVIRTCOUNT", Pipe.BRANCH),
    *_pinned("USETMAXREG", Pipe.BRANCH, shape=Shape.RESULT, variable=ALL_ARCHS),
    # control flow
    *_pinned("BRA BRX BRXU JMP JMX JMXU EXIT KILL RTT", Pipe.BRANCH, jumps=True, widths=Widths.CODE_ADDRESS),
    *_pinned("CALL RET", Pipe.BRANCH, jumps=True, widths=Widths.CODE_ADDRESS),
    *_pinned("BSSY", Pipe.BRANCH, shape=Shape.FIRST),
    *_pinned("BSYNC", Pipe.BRANCH, jumps=True),
    *_pinned("BREAK WARPSYNC", Pipe.BRANCH),
    *_pinned("LEPC RPCMOV", Pipe.BRANCH, shape=Shape.FIRST, widths=Widths.CODE_ADDRESS),
    *_pinned("BMOV", Pipe.BRANCH, shape=Shape.FIRST, variable=ALL_ARCHS, queue="barrier"),
]  # fmt: skip

OPCODES: dict[str, Opcode] = {opcode.name: opcode for opcode in _DECLARATIONS}
