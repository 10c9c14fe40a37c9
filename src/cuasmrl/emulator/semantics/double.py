"""Double precision: sums and products."""

import numpy as np

from cuasmrl.emulator.forms import Form, Step
from cuasmrl.emulator.semantics.registry import executes
from cuasmrl.emulator.semantics.rounding import Double, direct, double_bits, mode_of, two_sum, zero_of_mode
from cuasmrl.emulator.semantics.ufuncs import fused_double
from cuasmrl.emulator.warps import Warps


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
    """Right unless what is lost is itself too small for a double, far below the normal numbers."""
    product = a * b
    return direct(product, _fused(a, b, -product), np.isfinite(a) & np.isfinite(b), mode)


def _fuse(a: Double, b: Double, c: Double, mode: str) -> Double:
    """What is lost is found by ErrFmaNearest of Boldo and Muller, "Exact and approximated error of the
    FMA", 2011; as with products, unless it is too small for a double."""
    nearest = _fused(a, b, c)
    product = a * b
    rest = _fused(a, b, -product)
    upper, lower = two_sum(c, rest)
    total, left = two_sum(product, upper)
    lost = ((total - nearest) + left) + lower
    finite = np.isfinite(a) & np.isfinite(b) & np.isfinite(c)
    return zero_of_mode(direct(nearest, lost, finite, mode), product, c, mode)


def _fused(a: Double, b: Double, c: Double) -> Double:
    return fused_double(a, b, c).view(np.float64)
