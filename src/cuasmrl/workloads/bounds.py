"""Rounding errors a correct kernel may make, from the arithmetic it uses."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Real = npt.NDArray[np.float64]

# Spacing, not half spacing: tensor cores cut sums off instead of rounding them.
EPS32 = 2.0**-23
EPS16 = 2.0**-10
# Largest distance from a real number below the normal range to the nearest half.
TINY16 = 2.0**-25
# ex2.approx and its argument's reduction: 2 ulp, PTX ISA "ex2"; rounded up for the multiplication before it.
EXP32 = 4 * EPS32


def real(array: Any) -> Real:
    """The same numbers in double precision, in which reference results are computed."""
    return np.asarray(array, dtype=np.float64)


def stored_as_half(value: Real, error: Real | float) -> Real:
    """Error after rounding a result with a given error to half precision."""
    return error + (np.abs(value) + error) * (EPS16 / 2) + TINY16


def summed(terms: int, magnitude: Real) -> Real:
    """Error of a float32 sum in any order; magnitude is the sum of the terms' absolute values."""
    return terms * EPS32 * magnitude
