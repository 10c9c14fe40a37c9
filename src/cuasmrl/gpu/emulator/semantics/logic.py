"""Boolean functions of three operands, given by their truth tables."""

from collections.abc import Callable, Sequence
from typing import TypeAlias

from cuasmrl.gpu.emulator.faults import UnsupportedError
from cuasmrl.gpu.emulator.forms import Form, Step
from cuasmrl.gpu.emulator.semantics.registry import executes
from cuasmrl.gpu.emulator.values import FALSE, TRUE, ZERO, Array, constant
from cuasmrl.gpu.emulator.warps import Warps

Boolean: TypeAlias = Callable[..., Array]
"""A function of the bits of as many arrays as there are variables; the same for words and for masks."""

# By truth table: bit 2a + b says what becomes of a and b. None: it does not depend on them.
_OF_TWO: list[Boolean | None] = [
    None,
    lambda a, b: ~(a | b),
    lambda a, b: ~a & b,
    lambda a, b: ~a,
    lambda a, b: a & ~b,
    lambda a, b: ~b,
    lambda a, b: a ^ b,
    lambda a, b: ~(a & b),
    lambda a, b: a & b,
    lambda a, b: ~(a ^ b),
    lambda a, b: b,
    lambda a, b: ~a | b,
    lambda a, b: a,
    lambda a, b: a | ~b,
    lambda a, b: a | b,
    None,
]
_COST_OF_TWO = (0, 2, 2, 1, 2, 1, 1, 2, 1, 2, 0, 2, 0, 2, 1, 0)


@executes("LOP3", "ULOP3")
def combine_bits(form: Form) -> Step:
    """The predicate, where there is one: is any bit set, or does the source predicate hold? (.PAND: and)"""
    form.choose("LUT")
    function, variables = boolean(
        form.immediate(3), [_all_bits(form.known(k)) for k in range(3)], ZERO, constant(-1)
    )
    reads = [form.integer(k) for k in variables]
    both = form.has("PAND")
    accumulated = form.predicate(4)
    predicate = form.result_predicate(0)
    if predicate is None:
        return form.compute(function, *reads)
    write, neutral = form.result(), form.known(4) == (1 if both else 0)
    write_predicate = predicate

    def step(w: Warps) -> None:
        value = function(*(read(w) for read in reads))
        nonzero = value != 0
        if not neutral:
            nonzero = nonzero & accumulated(w) if both else nonzero | accumulated(w)
        write(w, value)
        write_predicate(w, nonzero)

    return step


@executes("PLOP3", "UPLOP3")
def combine_predicates(form: Form) -> Step:
    """Two functions of the same three predicates, one for each destination."""
    form.choose("LUT")
    known = [form.known(k) for k in range(3)]
    outputs = []
    for k in range(2):
        write = form.result_predicate(k)
        table = form.immediate(3 + k)
        if write is not None:
            function, variables = boolean(table, [None if x is None else bool(x) for x in known], FALSE, TRUE)
            outputs.append((write, function, [form.predicate(v) for v in variables]))

    def step(w: Warps) -> None:
        values = [function(*(read(w) for read in reads)) for _, function, reads in outputs]
        for (write, _, _), value in zip(outputs, values, strict=True):
            write(w, value)

    return step


def _all_bits(known: int | None) -> bool | None:
    """Whether all bits of a known operand are one, or zero; None if they differ."""
    return {0: False, 0xFFFF_FFFF: True}.get(known) if known is not None else None


def boolean(
    table: int, known: Sequence[bool | None], zero: Array, ones: Array
) -> tuple[Boolean, tuple[int, ...]]:
    """The function with this truth table, and the operands it still depends on, in their order.

    Bit 4a + 2b + c of the table is the result for the bits a, b and c.
    """
    if not 0 <= table < 256:
        raise UnsupportedError(f"truth table {table:#x}")
    variables = [0, 1, 2]
    # Known operands first: only then does it show which of the others matter.
    for k in sorted(variables, key=lambda k: known[k] is None):
        without, with_it = _cofactors(table, len(variables), variables.index(k))
        if known[k] is not None or without == with_it:
            table = with_it if known[k] else without
            variables.remove(k)
    size = len(variables)
    if size == 0:
        value = ones if table else zero
        return (lambda: value), ()
    if size == 1:
        return ((lambda a: a) if table == 0b10 else (lambda a: ~a)), (variables[0],)
    if size == 2:
        function = _OF_TWO[table]
        assert function is not None
        return function, tuple(variables)
    return _of_three(table), tuple(variables)


def _cofactors(table: int, size: int, place: int) -> tuple[int, int]:
    """The tables of the other operands where the operand at `place` (0 comes first) is zero, and one."""
    bit = 1 << size - 1 - place
    parts = [0, 0]
    positions = [0, 0]
    for row in range(1 << size):
        one = int(bool(row & bit))
        parts[one] |= (table >> row & 1) << positions[one]
        positions[one] += 1
    return parts[0], parts[1]


def _of_three(table: int) -> Boolean:
    """Divide by the operand that leaves the least to compute."""
    _, function, place = min((_divided(table, place) for place in range(3)), key=lambda found: found[0])
    match place:
        case 0:
            return function
        case 1:
            return lambda a, b, c: function(b, a, c)
    return lambda a, b, c: function(c, a, b)


def _divided(table: int, place: int) -> tuple[int, Boolean, int]:
    """Operations needed, and the function of the operand at `place` and the two others."""
    without, with_it = _cofactors(table, 3, place)
    f, g = _OF_TWO[without], _OF_TWO[with_it]
    costs = _COST_OF_TWO[without] + _COST_OF_TWO[with_it]
    if f is None:
        assert g is not None
        if without == 0:
            return costs + 1, lambda v, x, y: v & g(x, y), place
        return costs + 2, lambda v, x, y: ~v | g(x, y), place
    if g is None:
        if with_it == 0:
            return costs + 2, lambda v, x, y: ~v & f(x, y), place
        return costs + 1, lambda v, x, y: v | f(x, y), place
    difference = without ^ with_it
    if difference == 0b1111:
        return _COST_OF_TWO[without] + 1, lambda v, x, y: v ^ f(x, y), place
    d = _OF_TWO[difference]
    assert d is not None, "the function would not depend on this operand"
    return (
        _COST_OF_TWO[without] + _COST_OF_TWO[difference] + 2,
        lambda v, x, y: f(x, y) ^ (v & d(x, y)),
        place,
    )
