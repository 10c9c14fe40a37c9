"""Comparisons of floating-point numbers, and checks before a division."""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from cuasmrl.gpu.emulator.forms import Form, Step
from cuasmrl.gpu.emulator.semantics.registry import executes
from cuasmrl.gpu.emulator.semantics.rounding import Double, flush
from cuasmrl.gpu.emulator.semantics.ufuncs import select
from cuasmrl.gpu.emulator.values import FALSE, TRUE, ZERO, Array, Mask, Value, constant
from cuasmrl.gpu.emulator.warps import Warps

Relation: TypeAlias = Callable[[Array, Array], Mask]
Combination: TypeAlias = Callable[[Warps, Mask], Mask]

# Ordered relations are false beside a NaN, those with U (unordered) are true.
RELATIONS: dict[str, Relation] = {
    "LT": lambda a, b: a < b,
    "LE": lambda a, b: a <= b,
    "GT": lambda a, b: a > b,
    "GE": lambda a, b: a >= b,
    "EQ": lambda a, b: a == b,
    "NE": lambda a, b: (a < b) | (a > b),
    "LTU": lambda a, b: ~(a >= b),
    "LEU": lambda a, b: ~(a > b),
    "GTU": lambda a, b: ~(a <= b),
    "GEU": lambda a, b: ~(a < b),
    "EQU": lambda a, b: ~((a < b) | (a > b)),
    "NEU": lambda a, b: a != b,
    "NUM": lambda a, b: ~(np.isnan(a) | np.isnan(b)),
    "NAN": lambda a, b: np.isnan(a) | np.isnan(b),
    "T": lambda a, b: TRUE,
    "F": lambda a, b: FALSE,
}
_COMBINE = {"AND": np.bitwise_and, "OR": np.bitwise_or, "XOR": np.bitwise_xor}


@executes("FSETP", "UFSETP")
def compare(form: Form) -> Step:
    a, b = form.single(0), form.single(1)
    relation, combine = relation_of(form), combination_of(form, 2)
    if form.has("FTZ"):
        return write_predicates(form, lambda w: relation(flush(a(w)), flush(b(w))), combine)
    return write_predicates(form, lambda w: relation(a(w), b(w)), combine)


@executes("DSETP")
def compare_doubles(form: Form) -> Step:
    a, b = form.double(0), form.double(1)
    combine = combination_of(form, 2)
    minimum = form.has("MIN")
    if minimum or form.has("MAX"):
        return _choose_extremum(form, lambda w: (a(w), b(w)), combine, minimum)
    relation = relation_of(form)
    return write_predicates(form, lambda w: relation(a(w), b(w)), combine)


@executes("FSET")
def compare_to_register(form: Form) -> Step:
    """.BF answers with 1.0 instead of all ones."""
    a, b = form.single(0), form.single(1)
    relation, combine, ftz = relation_of(form), combination_of(form, 2), form.has("FTZ")
    true = constant(0x3F80_0000 if form.has("BF") else 0xFFFF_FFFF)
    write = form.result()

    def step(w: Warps) -> None:
        x, y = a(w), b(w)
        found = relation(flush(x), flush(y)) if ftz else relation(x, y)
        write(w, select(combine(w, found), true, ZERO))

    return step


@executes("FCHK")
def check_division(form: Form) -> Step:
    """True where a / b needs the slow path.

    The fast path is a reciprocal and two fused corrections; it is right as long as neither the quotient
    nor the remainder nor the reciprocal leaves the normal numbers. We ask for the slow path whenever one
    might: both paths round correctly, so asking too often changes no result.
    """
    form.ignore("DIVIDE")
    a, b = form.single(0), form.single(1)
    write = form.result_predicate(0)

    def step(w: Warps) -> None:
        above, below = _exponent(a(w).view(np.uint32)), _exponent(b(w).view(np.uint32))
        quotient = above - below
        slow = (above <= 25) | (above == 255) | (below == 0) | (below >= 253)
        slow |= (quotient >= 126) | (quotient <= -125)
        if write is not None:
            write(w, slow)

    return step


def relation_of(form: Form) -> Relation:
    return RELATIONS[form.choose(*RELATIONS)]


def combination_of(form: Form, k: int) -> Combination:
    """With the predicate that is source k."""
    function = _COMBINE[form.choose(*_COMBINE)]
    operand, predicate = form.operand(k), form.predicate(k)
    constant_true = operand.register is not None and operand.register.index is None and not operand.inverted
    if function is np.bitwise_and and constant_true:
        return lambda w, found: found
    return lambda w, found: function(found, predicate(w))


def write_predicates(form: Form, found: Callable[[Warps], Mask], combine: Combination) -> Step:
    """The relation goes to the first predicate, its opposite to the second, each combined with the source."""
    first, second = form.result_predicate(0), form.result_predicate(1)

    def step(w: Warps) -> None:
        result = found(w)
        # Both are computed before either is written: a destination may be the predicate they read.
        yes = combine(w, result)
        no = combine(w, ~result) if second is not None else yes
        if first is not None:
            first(w, yes)
        if second is not None:
            second(w, no)

    return step


def _choose_extremum(
    form: Form, operands: Callable[[Warps], tuple[Double, Double]], combine: Combination, minimum: bool
) -> Step:
    """DSETP.MIN: is the first operand the result of min(a, b)? Second predicate: are both NaN?

    Derived from what ptxas makes of min.f64: it selects a or b by the first predicate, and where the
    second is set it turns b into a quiet NaN.
    """
    first, second = form.result_predicate(0), form.result_predicate(1)

    def step(w: Warps) -> None:
        a, b = operands(w)
        a_nan, b_nan = np.isnan(a), np.isnan(b)
        before = a < b if minimum else a > b
        negative = np.signbit(a) if minimum else np.signbit(b)
        taken = before | (a == b) & negative | b_nan & ~a_nan
        result, both = combine(w, taken), combine(w, a_nan & b_nan)
        if first is not None:
            first(w, result)
        if second is not None:
            second(w, both)

    return step


def _exponent(bits: Value) -> Array:
    return ((bits >> np.uint32(23)) & np.uint32(0xFF)).astype(np.int32)
