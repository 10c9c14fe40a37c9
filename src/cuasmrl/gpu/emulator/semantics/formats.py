"""Numbers of 16 bits: fp16 and bfloat16."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from cuasmrl.binary.sass import Kind, Operand
from cuasmrl.gpu.emulator.faults import UnsupportedError
from cuasmrl.gpu.emulator.forms import Form, ReadFloat, raw, signed
from cuasmrl.gpu.emulator.semantics.packing import parts_of, words_of
from cuasmrl.gpu.emulator.semantics.rounding import Halves, Single, bfloat, from_bfloat, from_half, half
from cuasmrl.gpu.emulator.semantics.ufuncs import widen_half
from cuasmrl.gpu.emulator.values import Value
from cuasmrl.gpu.emulator.warps import Warps

_HIGH = np.uint32(0xFFFF_0000)
_BITS = np.uint32(16)


@dataclass(frozen=True)
class Format:
    """One of the two kinds of numbers with 16 bits."""

    mantissa: int
    one: int
    widen: Callable[[Halves], Single]
    narrow: Callable[..., Halves]

    def bits(self, number: float) -> int:
        return int(self.narrow(np.array([number]))[0])


FP16 = Format(10, 0x3C00, from_half, half)
BF16 = Format(7, 0x3F80, from_bfloat, bfloat)


def half_reader(form: Form, k: int, kind: Format) -> ReadFloat:
    """One half of a register, widened; the lower one unless `.H1` is written."""
    operand = form.operand(k)
    upper = operand.has("H1")
    refuse_suffixes(operand, "H0", "H1")
    read = raw(operand, 0)

    def widened(w: Warps) -> Single:
        bits = read(w)
        if kind is BF16:
            bits = bits & _HIGH if upper else bits << _BITS
        else:
            bits = widen_half(bits >> _BITS if upper else bits)
        return signed(operand, bits).view(np.float32)

    return widened


def elements(bits: Value) -> Halves:
    """Both halves along a fourth axis, the lower one first."""
    return parts_of(bits, np.uint16)


def packed(halves: Halves) -> Value:
    return words_of(halves)


def refuse_suffixes(operand: Operand, *known: str) -> None:
    if set(operand.suffixes) - {"reuse", *known}:
        raise UnsupportedError(f"operand {operand.text}")


def is_zero(operand: Operand) -> bool:
    register = operand.register if operand.kind is Kind.REGISTER else None
    return register is not None and register.index is None and not operand.is_predicate
