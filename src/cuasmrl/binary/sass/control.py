"""The 21 control bits that ptxas puts into every instruction word: bits 105..125 from sm_75 to sm_120."""

from dataclasses import dataclass, field
from functools import cache

NO_BARRIER = 7
BARRIERS = 6
MAX_STALL = 15
LONGEST_STALL_WITHOUT_YIELD = 11

_SHIFT = 105
_BITS = 21
CONTROL_MASK = ((1 << _BITS) - 1) << _SHIFT


@dataclass(frozen=True, slots=True)
class Control:
    stall: int
    """Cycles before the warp may issue its next instruction."""
    yield_: bool
    """The scheduler should prefer another warp next: bit 109 *clear*."""
    write_barrier: int | None
    """Scoreboard released when the result is written."""
    read_barrier: int | None
    """Scoreboard released when the source registers have been read."""
    wait_mask: int
    """Scoreboards that must be zero before issue, one bit each."""
    reuse: int
    """Operand-cache flags, one bit per register-file read port."""
    bits: int = field(init=False, repr=False, compare=False)
    """All of them as they stand in the word."""

    def __post_init__(self) -> None:
        write = NO_BARRIER if self.write_barrier is None else self.write_barrier
        read = NO_BARRIER if self.read_barrier is None else self.read_barrier
        bits = self.stall | (not self.yield_) << 4 | write << 5 | read << 8
        object.__setattr__(self, "bits", bits | self.wait_mask << 11 | self.reuse << 17)

    @staticmethod
    def decode(word: bytes) -> "Control":
        return Control.of(int.from_bytes(word, "little") >> _SHIFT & (1 << _BITS) - 1)

    @staticmethod
    @cache
    def of(bits: int) -> "Control":
        """From the bits of the word. Few different ones occur, millions of times."""
        write, read = bits >> 5 & 7, bits >> 8 & 7
        return Control(
            stall=bits & 15,
            yield_=not bits >> 4 & 1,
            write_barrier=None if write == NO_BARRIER else write,
            read_barrier=None if read == NO_BARRIER else read,
            wait_mask=bits >> 11 & 63,
            reuse=bits >> 17 & 15,
        )

    def encode(self, word: bytes) -> bytes:
        """The same word with these control bits."""
        return (int.from_bytes(word, "little") & ~CONTROL_MASK | self.bits << _SHIFT).to_bytes(16, "little")

    @property
    def waits(self) -> tuple[int, ...]:
        return tuple(k for k in range(BARRIERS) if self.wait_mask >> k & 1)

    @property
    def sets(self) -> tuple[int, ...]:
        """Scoreboards this instruction raises at issue."""
        return tuple({k for k in (self.write_barrier, self.read_barrier) if k is not None})

    def encoding_fault(self) -> str | None:
        """Why no compiler would emit these bits, or None.

        Bit 109 with a stall of 0 or above 11, and reuse without bit 109, never occur in compiler output;
        hardware treats a long stall without yield as one or two cycles.
        """
        if self.stall > LONGEST_STALL_WITHOUT_YIELD and not self.yield_:
            return (
                f"stall {self.stall} is above {LONGEST_STALL_WITHOUT_YIELD} and needs bit 109 clear (yield)"
            )
        if self.stall == 0 and not self.yield_:
            return "stall 0 needs bit 109 clear (yield)"
        if self.reuse and self.yield_:
            return "a reuse flag needs bit 109 set (no yield)"
        for name, barrier in (("write", self.write_barrier), ("read", self.read_barrier)):
            if barrier is not None and barrier >= BARRIERS:
                return f"{name} barrier {barrier} does not exist"
        return None

    def __str__(self) -> str:
        """CuAssembler's notation: waits, read barrier, write barrier, yield, stall."""
        waits = "".join(str(k) if self.wait_mask >> k & 1 else "-" for k in range(BARRIERS))
        read = "-" if self.read_barrier is None else str(self.read_barrier)
        write = "-" if self.write_barrier is None else str(self.write_barrier)
        return f"B{waits}:R{read}:W{write}:{'Y' if self.yield_ else '-'}:S{self.stall:02d}"


def without_control(word: bytes) -> bytes:
    """The word with its control bits cleared: what the instruction is, apart from how it is scheduled."""
    return (int.from_bytes(word, "little") & ~CONTROL_MASK).to_bytes(16, "little")
