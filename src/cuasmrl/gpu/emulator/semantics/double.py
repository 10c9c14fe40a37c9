"""Double precision: sums and products."""

from fractions import Fraction

import numpy as np

from cuasmrl.gpu.emulator.forms import Form, Step
from cuasmrl.gpu.emulator.semantics.registry import executes
from cuasmrl.gpu.emulator.semantics.rounding import (
    Double,
    direct,
    double_bits,
    mode_of,
    two_sum,
    zero_of_mode,
)
from cuasmrl.gpu.emulator.semantics.ufuncs import fused_double
from cuasmrl.gpu.emulator.warps import Warps

_ZERO = np.zeros((1, 1, 1))
# Above it the rounding error of a product is itself a double.
_SAFE = 2.0**-960


@executes("DADD")
def add(form: Form) -> Step:
    a, b, mode, write = form.double(0), form.double(1), mode_of(form), form.result_long()
    if mode == "RN":
        return lambda w: write(w, double_bits(a(w) + b(w)))
    return lambda w: write(w, double_bits(_add(a(w), b(w), mode)))


@executes("DMUL")
def multiply(form: Form) -> Step:
    a, b, mode, write = form.double(0), form.double(1), mode_of(form), form.result_long()
    if mode == "RN":
        return lambda w: write(w, double_bits(a(w) * b(w)))
    return lambda w: write(w, double_bits(_multiply(a(w), b(w), mode)))


@executes("DFMA")
def fused_multiply_add(form: Form) -> Step:
    a, b, c, mode = form.double(0), form.double(1), form.double(2), mode_of(form)
    write = form.result_long()
    if mode == "RN":
        return lambda w: write(w, fused_double(a(w), b(w), c(w)))

    def step(w: Warps) -> None:
        write(w, double_bits(_fuse(a(w), b(w), c(w), mode)))

    return step


def _add(a: Double, b: Double, mode: str) -> Double:
    total, lost = two_sum(a, b)
    rounded = direct(total, lost, np.isfinite(a) & np.isfinite(b), mode)
    return zero_of_mode(rounded, a, b, mode)


def _multiply(a: Double, b: Double, mode: str) -> Double:
    nearest = a * b
    return direct(nearest, _lost(a, b, _ZERO, nearest), np.isfinite(a) & np.isfinite(b), mode)


def _fuse(a: Double, b: Double, c: Double, mode: str) -> Double:
    nearest = _fused(a, b, c)
    finite = np.isfinite(a) & np.isfinite(b) & np.isfinite(c)
    return zero_of_mode(direct(nearest, _lost(a, b, c, nearest), finite, mode), a * b, c, mode)


def _lost(a: Double, b: Double, c: Double, nearest: Double) -> Double:
    """What rounding took from a * b + c: ErrFmaNearest of Boldo and Muller, "Exact and approximated error
    of the FMA", 2011. At the ends of the range, where its own steps may round, rational numbers find it;
    ptxas' square roots and quotients of tiny numbers depend on that."""
    product = a * b
    rest = _fused(a, b, -product)
    upper, lower = two_sum(c, rest)
    total, left = two_sum(product, upper)
    lost = ((total - nearest) + left) + lower
    hard = (np.abs(product) < _SAFE) & (a != 0) & (b != 0) | np.isinf(product)
    hard = hard & np.isfinite(nearest) & np.isfinite(a) & np.isfinite(b)
    if hard.any():
        a, b, c, nearest, hard, lost = np.broadcast_arrays(a, b, c, nearest, hard, lost)
        lost = lost.copy()
        for k in zip(*np.nonzero(hard), strict=True):
            exact = Fraction(a[k]) * Fraction(b[k]) + Fraction(c[k])
            lost[k] = (exact > Fraction(nearest[k])) - (exact < Fraction(nearest[k]))
    return lost


def _fused(a: Double, b: Double, c: Double) -> Double:
    return fused_double(a, b, c).view(np.float64)
