"""MUFU: reciprocals, roots, exponentials and the like.

The hardware interpolates in tables and is off by up to two units in the last place. Ours are computed in
float64 and then rounded: as good as correctly rounded, not bit-identical. `FUNCTIONS` is the only place
to change to have the values of a real unit.
"""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from cuasmrl.binary.sass import Kind
from cuasmrl.gpu.emulator.forms import Form, ReadFloat, Step
from cuasmrl.gpu.emulator.semantics.registry import executes
from cuasmrl.gpu.emulator.semantics.rounding import Double, Single, double_bits, flush, single_bits
from cuasmrl.gpu.emulator.values import ZERO, Value, high, join

Function: TypeAlias = Callable[[Double], Double]

_TURN = 2 * np.pi
_QUARTER = 0.25


def _sine(turns: Double) -> Double:
    """Of an angle in turns: ptxas multiplies by 1 / (2 pi) first. Exact at multiples of a quarter."""
    magnitude = np.abs(turns)
    rest = magnitude - np.rint(magnitude)
    folded = np.where(np.abs(rest) > _QUARTER, np.copysign(0.5, rest) - rest, rest)
    sine: Double = np.copysign(1.0, turns) * np.sin(_TURN * folded)
    return sine


def _cosine(turns: Double) -> Double:
    magnitude = np.abs(turns)
    rest = np.abs(magnitude - np.rint(magnitude))
    cosine: Double = np.sin(_TURN * (_QUARTER - rest))
    return cosine


FUNCTIONS: dict[str, Function] = {
    "RCP": lambda x: 1.0 / x,
    "RSQ": lambda x: 1.0 / np.sqrt(x),
    "SQRT": np.sqrt,
    "EX2": np.exp2,
    "LG2": np.log2,
    "SIN": _sine,
    "COS": _cosine,
    "TANH": np.tanh,
    "RCP64H": lambda x: 1.0 / x,
    "RSQ64H": lambda x: 1.0 / np.sqrt(x),
}

# Their operand and result are the upper words of doubles.
_UPPER_WORDS = frozenset(("RCP64H", "RSQ64H"))
# "Subnormal inputs are supported": the PTX manual on tanh.approx.f32. For all others ptxas scales operand
# and result where .ftz is not asked for, so the unit itself flushes both.
_KEEPS_SUBNORMALS = frozenset(("TANH",))


@executes("MUFU")
def special_function(form: Form) -> Step:
    name = form.choose(*FUNCTIONS)
    function = FUNCTIONS[name]
    if name in _UPPER_WORDS:
        upper = _upper_word if form.operand(0).kind is Kind.IMMEDIATE else Form.single
        return form.compute(lambda x: _of_upper_word(function, x), upper(form, 0))
    if name in _KEEPS_SUBNORMALS:
        return form.compute(lambda x: single_bits(_evaluate(function, x)), form.single(0))
    return form.compute(lambda x: single_bits(flush(_evaluate(function, flush(x)))), form.single(0))


def _upper_word(form: Form, k: int) -> ReadFloat:
    """nvdisasm prints the double of which an immediate is the upper word."""
    word = high(form.double(k)(None).view(np.uint64)).view(np.float32)  # type: ignore[arg-type]
    return lambda w: word


def _evaluate(function: Function, x: Single) -> Single:
    return function(x.astype(np.float64)).astype(np.float32)


def _of_upper_word(function: Function, x: Single) -> Value:
    number = _flush_double(join(ZERO, x.view(np.uint32)).view(np.float64))
    result = double_bits(_flush_double(function(number)))
    # To nearest; the lower word of the result is taken as zero by those who refine it.
    return high(result + np.uint64(0x8000_0000))


def _flush_double(number: Double) -> Double:
    return np.where(np.abs(number) < 2.0**-1022, np.copysign(0.0, number), number)
