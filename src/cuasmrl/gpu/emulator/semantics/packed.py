"""Two singles in a pair of registers, since sm_100."""

import numpy as np

from cuasmrl.binary.sass import Kind, Operand
from cuasmrl.gpu.emulator.faults import UnsupportedError
from cuasmrl.gpu.emulator.forms import Form, ReadFloat, Step, raw, signed
from cuasmrl.gpu.emulator.semantics.registry import executes
from cuasmrl.gpu.emulator.semantics.rounding import Single
from cuasmrl.gpu.emulator.semantics.single import Function, fused_of, product_of, sum_of
from cuasmrl.gpu.emulator.warps import Warps


@executes("FADD2")
def add(form: Form) -> Step:
    return _twice(form, sum_of(form), 2)


@executes("FMUL2")
def multiply(form: Form) -> Step:
    return _twice(form, product_of(form), 2)


@executes("FFMA2")
def fused_multiply_add(form: Form) -> Step:
    return _twice(form, fused_of(form), 3)


def _twice(form: Form, function: Function, count: int) -> Step:
    reads = [[_reader(form, k, word) for k in range(count)] for word in (0, 1)]
    writes = form.result_words(2)

    def step(w: Warps) -> None:
        # Both are computed before either is written: the result may overlap a source.
        results = [function(*(read(w) for read in word)) for word in reads]
        for write, result in zip(writes, results, strict=True):
            write(w, result)

    return step


def _reader(form: Form, k: int, word: int) -> ReadFloat:
    """`.F32x2.HI_LO` is a pair, `.F32` one register for both, and a number is for both, too."""
    operand = form.operand(k)
    if operand.kind is Kind.IMMEDIATE:
        return form.single(k)
    suffixes = tuple(s for s in operand.suffixes if s != "reuse")
    if suffixes not in (("F32x2", "HI_LO"), ("F32",)):
        raise UnsupportedError(f"operand {operand.text}")
    return _register(operand, word if len(suffixes) == 2 else 0)


def _register(operand: Operand, word: int) -> ReadFloat:
    read = raw(operand, word)

    def number(w: Warps) -> Single:
        return signed(operand, read(w)).view(np.float32)

    return number
