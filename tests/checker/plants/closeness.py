"""One dependence comes a cycle too close: by who reads or overwrites, what, and whose result it is."""

import random
from collections.abc import Callable, Iterator
from functools import partial

from cuasmrl.binary.sass import (
    ACCUMULATOR,
    ADDRESS,
    DESCRIPTOR,
    GUARD,
    HIGH,
    LOW,
    File,
    Hazard,
    Instruction,
    Order,
    Pipe,
    file_of,
    name_of,
)
from cuasmrl.checker import Refusal, Rule
from tests.checker.plants.base import Plant, Site, kind
from tests.checker.squeezing import squeezed
from tests.checker.subjects import Subject, Timed

Choice = Callable[[Instruction, Instruction, Timed], bool]
"""Of a producer, a consumer and what is between them."""


def declare(name: str, hazard: Hazard, file: File, chosen: Choice) -> None:
    @kind(name)
    def sites(subject: Subject) -> Iterator[Site]:
        for found in subject.kept_by_time:
            pair = found.pair
            if pair.hazard is not hazard or file_of(pair.register) is not file or found.needed < 2:
                continue
            if chosen(subject.code[pair.producer], subject.code[pair.consumer], found):
                yield partial(squeeze, subject, found)


def squeeze(subject: Subject, found: Timed, _: random.Random) -> Plant | None:
    p, c, cycles = found.pair.producer, found.pair.consumer, found.needed - 1
    controls = squeezed(subject, p, c, cycles)
    if controls is None:
        return None
    broken = {
        (name_of(other.pair.register), other.needed)
        for other in subject.between(p, c)
        if other.needed > cycles
    }

    def named(refusal: Refusal) -> bool:
        edge = (refusal.producer, refusal.consumer, refusal.found) == (p, c, cycles)
        return edge and (refusal.register, refusal.needed) in broken

    story = f"{subject.code[c]} only {cycles} cycles behind {subject.code[p]}"
    return Plant(subject.build(controls=controls), frozenset((Rule.DISTANCE,)), named, story)


def _reads(name: str, file: File, chosen: Choice) -> None:
    declare(name, Hazard.RAW, file, chosen)


def _by(*opcodes: str) -> Choice:
    return lambda _, consumer, found: consumer.opcode in opcodes and found.pair.consumer_role != GUARD


def _guards(*opcodes: str) -> Choice:
    return lambda _, consumer, found: consumer.opcode in opcodes and found.pair.consumer_role == GUARD


def _pipe(i: Instruction) -> Pipe | None:
    return None if i.declaration is None else i.declaration.pipe


# ---- across lanes and between register files ----

_reads("predicate voted on too early", File.P, _by("VOTE", "VOTEU"))
_reads("predicates packed too early", File.P, _by("P2R"))
_reads("predicates combined too early", File.P, _by("PLOP3"))
_reads("uniform predicates combined too early", File.UP, _by("PLOP3", "UPLOP3"))
_reads("predicate selected by too early", File.P, _by("SEL", "FSEL", "USEL", "FMNMX", "IMNMX", "VIMNMX"))
_reads("carry added too early", File.P, lambda _, c, f: "X" in c.modifiers and f.pair.consumer_role != GUARD)
_reads("value shuffled too early", File.R, _by("SHFL"))
_reads("value matched too early", File.R, _by("MATCH"))
_reads("value reduced too early", File.R, _by("REDUX", "CREDUX"))
_reads("value made uniform too early", File.R, _by("R2UR"))
_reads(
    "predicate that a move to the uniform datapath sets read too early",
    File.P,
    lambda p, *_: p.opcode == "R2UR",
)
_reads("uniform copy read too early", File.UR, lambda p, *_: p.opcode == "R2UR")
_reads("vote read too early", File.R, lambda p, *_: p.opcode == "VOTE")
_reads("predicate of a vote read too early", File.P, lambda p, *_: p.opcode == "VOTE")

# ---- guards ----

_BRANCHES = ("BRA", "BRX", "CALL", "RET", "EXIT", "BSYNC", "JMP")
_reads("guard of a branch read too early", File.P, _guards(*_BRANCHES))
_reads(
    "guard of an access read too early",
    File.P,
    lambda _, c, f: c.order is Order.MEMORY and f.pair.consumer_role == GUARD,
)
_reads(
    "guard of arithmetic read too early",
    File.P,
    lambda _, c, f: _pipe(c) in (Pipe.ALU, Pipe.FMA, Pipe.HALF) and f.pair.consumer_role == GUARD,
)
_reads("uniform predicate read too early", File.UP, lambda _, c, f: c.opcode not in ("PLOP3", "UPLOP3"))

# ---- operands by their part ----

_reads("address read too early", File.R, lambda _, c, f: f.pair.consumer_role == ADDRESS)
_reads(
    "stored value read too early",
    File.R,
    lambda _, c, f: c.opcode in ("STG", "STS", "ST", "STL", "STSM") and f.pair.consumer_role != ADDRESS,
)
_reads("descriptor read too early", File.UR, lambda _, c, f: f.pair.consumer_role == DESCRIPTOR)
_reads(
    "uniform register read too early by a vector instruction",
    File.UR,
    lambda _, c, f: _pipe(c) in (Pipe.ALU, Pipe.FMA, Pipe.HALF),
)
_reads(
    "uniform register read too early by a uniform instruction",
    File.UR,
    lambda _, c, f: _pipe(c) is Pipe.UNIFORM,
)
_reads("operand of a special function read too early", File.R, lambda _, c, f: _pipe(c) is Pipe.XU)
_reads(
    "operand of a matrix product read too early",
    File.R,
    lambda _, c, f: _pipe(c) is Pipe.TENSOR and f.pair.consumer_role != ACCUMULATOR,
)
_reads("accumulator read too early", File.R, lambda p, c, f: f.pair.consumer_role == ACCUMULATOR)
_reads(
    "product of matrices read too early",
    File.R,
    lambda p, c, f: _pipe(p) is Pipe.TENSOR and _pipe(c) is not Pipe.TENSOR,
)
_reads("double read too early", File.R, lambda p, *_: _pipe(p) is Pipe.FP64)
_reads("operand of a double read too early", File.R, lambda _, c, f: _pipe(c) is Pipe.FP64)
_reads("half read too early", File.R, lambda p, *_: _pipe(p) is Pipe.HALF)

_reads("pattern or operand of a sparse product read too early", File.R, lambda _, c, f: "SP" in c.modifiers)

# ---- 64 bits ----

_reads("64-bit sum read too early", File.R, lambda p, *_: p.mnemonic.startswith("IADD.64"))
_reads("64-bit value compared too early", File.R, lambda _, c, f: bool({"S64", "U64"} & set(c.modifiers)))
_reads("low half of a product read too early", File.R, lambda p, c, f: f.pair.producer_role == LOW)
_reads("high half of a product read too early", File.R, lambda p, c, f: f.pair.producer_role == HIGH)
_reads("64-bit addend read too early", File.R, lambda p, c, f: f.pair.consumer_role in (LOW, HIGH))

# ---- overwritten ----


def _overwrites(name: str, file: File, producers: set[Pipe], *overwriters: Pipe) -> None:
    def chosen(p: Instruction, c: Instruction, _: Timed) -> bool:
        return _pipe(p) in producers and not c.is_variable and _pipe(c) in overwriters

    declare(name, Hazard.WAR, file, chosen)


_overwrites("source of a matrix product overwritten too early by logic", File.R, {Pipe.TENSOR}, Pipe.ALU)
_overwrites("source of a matrix product overwritten too early by a product", File.R, {Pipe.TENSOR}, Pipe.FMA)
_overwrites("source of a matrix product overwritten too early by another", File.R, {Pipe.TENSOR}, Pipe.TENSOR)
_overwrites("source of a double overwritten too early", File.R, {Pipe.FP64}, *Pipe)
_overwrites("source of a multiply-add overwritten too early by its pipe", File.R, {Pipe.FMA}, Pipe.FMA)
_overwrites(
    "source of a multiply-add overwritten too early by another pipe",
    File.R,
    {Pipe.FMA},
    *(set(Pipe) - {Pipe.FMA}),
)
_overwrites("source of logic overwritten too early by its pipe", File.R, {Pipe.ALU}, Pipe.ALU)
_overwrites(
    "source of logic overwritten too early by another pipe", File.R, {Pipe.ALU}, *(set(Pipe) - {Pipe.ALU})
)
_overwrites("uniform source overwritten too early", File.UR, set(Pipe), *Pipe)
declare(
    "predicate overwritten too early after a guard",
    Hazard.WAR,
    File.P,
    lambda _, c, f: f.pair.producer_role == GUARD,
)
declare(
    "predicate overwritten too early after a use",
    Hazard.WAR,
    File.P,
    lambda _, c, f: f.pair.producer_role != GUARD,
)
declare("source overwritten too early by a load", Hazard.WAR, File.R, lambda _, c, f: c.is_variable)
declare("result overwritten too early by its pipe", Hazard.WAW, File.R, lambda p, c, _: _pipe(p) is _pipe(c))
declare(
    "result overwritten too early by another pipe",
    Hazard.WAW,
    File.R,
    lambda p, c, _: _pipe(p) is not _pipe(c),
)
declare("predicate replaced too early", Hazard.WAW, File.P, lambda *_: True)
declare("uniform result overwritten too early", Hazard.WAW, File.UR, lambda *_: True)

# ---- what the table does not settle: nothing comes closer than it was ----

_reads("closer than it was where the table is silent", File.R, lambda p, c, f: f.known is None)
_reads(
    "closer than it was where the table asks for more",
    File.R,
    lambda p, c, f: f.known is not None and f.known > f.was,
)
_reads("predicate closer than it was", File.P, lambda p, c, f: f.known is None or f.known > f.was)
