"""Where nvdisasm's life ranges are known not to say what the instruction does.

Each quirk is a function that corrects the oracle's reading of one instruction; `test_quirks.py` shows each on
a real instruction. The other two peculiarities of the oracle, the refusal of 255 registers and of the CUDA 12
container, concern whole files: see `liveness_oracle.acceptable_copy`.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from cuasmrl.binary.sass import File, Instruction, Kind, file_of, name_of, resource
from tests.binary.sass.liveness_oracle import Reading, ours

_LAST_DRAWN_UNIFORM = resource(File.UR, 62)
_LAST_UNIFORM = resource(File.UR, 255)


def ldgsts_defines_its_predicate(instruction: Instruction, drawn: Reading) -> Reading:
    """LDGSTS reads the predicate that chooses between copy and zeros; it is drawn as written too."""
    if instruction.opcode != "LDGSTS" or not instruction.operands[-1].is_predicate:
        return drawn
    register = instruction.operands[-1].register
    return drawn._replace(defs=drawn.defs - set(register.resources() if register else ()))


def predicates_moved_as_a_group_are_not_drawn(instruction: Instruction, drawn: Reading) -> Reading:
    """P2R and UP2UR read, and R2P writes, the predicates that a mask selects; none of them is drawn."""
    if not any(operand.kind is Kind.ALL_PREDICATES for operand in instruction.operands):
        return drawn
    ours_defs, ours_uses = ours(instruction)
    return Reading(
        drawn.defs | {r for r in ours_defs if file_of(r) in (File.P, File.UP)},
        drawn.uses | {r for r in ours_uses if file_of(r) in (File.P, File.UP)},
    )


def calls_clobber_what_the_abi_allows(instruction: Instruction, drawn: Reading) -> Reading:
    """CALL is drawn as if it wrote every register that a function may use, also where it is a mere jump.

    We count what the instruction itself reads, and follow the jump for the rest.
    """
    if instruction.opcode != "CALL":
        return drawn
    ours_defs, ours_uses = ours(instruction)
    return Reading(drawn.defs & ours_defs, drawn.uses & ours_uses)


def uniform_registers_above_62_have_no_column(instruction: Instruction, drawn: Reading) -> Reading:
    """sm_100 and later have more than 63 uniform registers, but the drawing stops where URZ used to be."""

    def missing(registers: frozenset[int]) -> set[int]:
        return {r for r in registers if _LAST_DRAWN_UNIFORM < r <= _LAST_UNIFORM}

    ours_defs, ours_uses = ours(instruction)
    return Reading(drawn.defs | missing(ours_defs), drawn.uses | missing(ours_uses))


Quirk = Callable[[Instruction, Reading], Reading]
QUIRKS: tuple[Quirk, ...] = (
    ldgsts_defines_its_predicate,
    predicates_moved_as_a_group_are_not_drawn,
    calls_clobber_what_the_abi_allows,
    uniform_registers_above_62_have_no_column,
)


@dataclass
class Comparison:
    """How two readings of many instructions agree."""

    compared: int = 0
    raw: int = 0
    exact: int = 0
    unknown: int = 0
    explained: Counter[str] = field(default_factory=Counter)
    differences: list[str] = field(default_factory=list)

    def add(self, pairs: Iterable[tuple[Instruction, Reading]]) -> "Comparison":
        for instruction, drawn in pairs:
            if instruction.declaration is None:
                self.unknown += 1
            else:
                self._add(instruction, drawn)
        return self

    def merge(self, other: "Comparison") -> None:
        self.compared += other.compared
        self.raw += other.raw
        self.exact += other.exact
        self.unknown += other.unknown
        self.explained.update(other.explained)
        self.differences += other.differences

    def _add(self, instruction: Instruction, drawn: Reading) -> None:
        mine = ours(instruction)
        self.compared += 1
        self.raw += mine == drawn
        for quirk in QUIRKS:
            corrected = quirk(instruction, drawn)
            self.explained[quirk.__name__] += corrected != drawn
            drawn = corrected
        self.exact += mine == drawn
        if mine != drawn:
            self.differences.append(difference(instruction, mine, drawn))


def difference(instruction: Instruction, mine: Reading, drawn: Reading) -> str:
    def names(registers: frozenset[int]) -> str:
        return " ".join(name_of(r) for r in sorted(registers)) or "-"

    return (
        f"sm_{instruction.arch} {instruction}: "
        f"only we write {names(mine.defs - drawn.defs)}, only we read {names(mine.uses - drawn.uses)}, "
        f"only nvdisasm writes {names(drawn.defs - mine.defs)}, reads {names(drawn.uses - mine.uses)}"
    )
