"""Sums with carries: how 32-bit words become 64-bit numbers and longer ones.

The adder complements a negated operand and adds one, and this one counts for the carry: `a - b` carries
unless it borrows. The part of a sum behind the first word (.X) complements only; the carry brings the one.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from cuasmrl.gpu.emulator.forms import Form, Read, ReadMask
from cuasmrl.gpu.emulator.values import FALSE, ZERO, Mask, Value
from cuasmrl.gpu.emulator.warps import Warps


def total(added: Sequence[Value], subtracted: Sequence[Value], carries: Sequence[Mask]) -> Value:
    """The sum of all of them, without what it carries."""
    first, *rest = added or [ZERO]
    for value in rest:
        first = first + value
    for value in subtracted:
        first = first - value
    for carry in carries:
        first = first + carry
    return first


def total_with_carries(
    added: Sequence[Value], subtracted: Sequence[Value], carries: Sequence[Mask]
) -> tuple[Value, list[Mask]]:
    """The sum and its carries, as many as there were additions; those that are true count one each."""
    first, *rest = added or [ZERO]
    out: list[Mask] = []
    for value in rest:
        addition = first + value
        out.append(addition < value)
        first = addition
    for value in subtracted:
        out.append(first >= value)
        first = first - value
    for carry in carries:
        addition = first + carry
        out.append(addition < first)
        first = addition
    return first, out


def one_and_two(carries: Sequence[Mask]) -> tuple[Mask, Mask]:
    """Is there a carry; is there a second one?"""
    one, *others = carries or [FALSE]
    two = FALSE
    for carry in others:
        both = one & carry
        two = both if two is FALSE else two | both
        one = one | carry
    return one, two


@dataclass(frozen=True, slots=True)
class Terms:
    """What an instruction adds up, bound to its operands."""

    added: tuple[Read, ...]
    subtracted: tuple[Read, ...]
    carries: tuple[ReadMask, ...]

    def read(self, w: Warps) -> tuple[list[Value], list[Value], list[Mask]]:
        return (
            [read(w) for read in self.added],
            [read(w) for read in self.subtracted],
            [read(w) for read in self.carries],
        )


def terms(form: Form, operands: Sequence[tuple[int, Read]], extended: bool, carry: int) -> Terms:
    """Sort operands, given by place and unsigned reader, by sign; carries are the sources from `carry` on."""
    added, subtracted = [], []
    for k, read in operands:
        operand = form.operand(k)
        if operand.inverted or (operand.negated and extended):
            added.append(complement(read))
        elif operand.negated:
            subtracted.append(read)
        elif form.known(k) != 0:
            added.append(read)
    carries = range(carry, len(form.sources)) if extended else range(0)
    return Terms(
        tuple(added), tuple(subtracted), tuple(form.predicate(k) for k in carries if form.known(k) != 0)
    )


def complement(read: Read) -> Read:
    return lambda w: ~read(w)
