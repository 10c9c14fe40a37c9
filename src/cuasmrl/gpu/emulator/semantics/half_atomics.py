"""Atomic sums of pairs of halves: each half of a word is added and rounded on its own."""

import math

import numpy as np
from numba import njit

HALF = (5, 10)
"""Bits of the exponent and of the fraction of fp16."""
BRAIN = (8, 7)
"""Of bfloat16."""


@njit(cache=True)
def value_of(bits, exponent_bits, fraction_bits):  # type: ignore[no-untyped-def]
    """A half as a float64, which holds all of them."""
    sign = -1.0 if bits >> (exponent_bits + fraction_bits) & 1 else 1.0
    top = (1 << exponent_bits) - 1
    exponent = bits >> fraction_bits & top
    fraction = bits & ((1 << fraction_bits) - 1)
    bias = top >> 1
    if exponent == top:
        return sign * np.inf if fraction == 0 else np.nan
    if exponent == 0:
        return sign * math.ldexp(float(fraction), 1 - bias - fraction_bits)
    return sign * math.ldexp(float(fraction + (1 << fraction_bits)), exponent - bias - fraction_bits)


@njit(cache=True)
def bits_of(number, exponent_bits, fraction_bits):  # type: ignore[no-untyped-def]
    """To nearest even. A sum of two halves is exact in float64, or is one of them and a rest too small to
    matter, so it is rounded once."""
    top = (1 << exponent_bits) - 1
    bias = top >> 1
    width = exponent_bits + fraction_bits
    if np.isnan(number):
        return (1 << width) - 1
    sign = 1 << width if np.copysign(1.0, number) < 0 else 0
    magnitude = abs(number)
    if magnitude == np.inf:
        return sign | top << fraction_bits
    if magnitude == 0.0:
        return sign
    _, above = math.frexp(magnitude)
    exponent = max(above - 1, 1 - bias)
    steps = np.int64(np.rint(math.ldexp(magnitude, fraction_bits - exponent)))
    # A carry out of the fraction goes on into the exponent, and from the largest number to infinity.
    found = ((exponent + bias - 1) << fraction_bits) + steps
    return sign | min(found, top << fraction_bits)


@njit(cache=True)
def add_pairs(window, address, active, operand, old, exponent_bits, fraction_bits):  # type: ignore[no-untyped-def]
    """old[0, i] = word of thread i; then both of its halves grow by those of the operand."""
    units = window.units
    for i in range(address.size):
        if not active[i]:
            continue
        at = (address[i] - window.base) // 4
        was, value = np.int64(units[at]), np.int64(operand[0, i])
        old[0, i] = was
        total = np.int64(0)
        for shift in (0, 16):
            a = value_of(was >> shift & 0xFFFF, exponent_bits, fraction_bits)
            b = value_of(value >> shift & 0xFFFF, exponent_bits, fraction_bits)
            total |= np.int64(bits_of(a + b, exponent_bits, fraction_bits)) << shift
        units[at] = total
