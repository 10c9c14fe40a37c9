"""Rounding by definition, in rational arithmetic, to compare with."""

from dataclasses import dataclass
from fractions import Fraction
from math import inf, isinf, isnan, ldexp


@dataclass(frozen=True)
class Format:
    precision: int
    smallest: int
    """Exponent of the smallest normal number."""
    largest: int
    """Exponent of the largest number."""

    @property
    def maximum(self) -> Fraction:
        return (2 - Fraction(1, 1 << (self.precision - 1))) * Fraction(2) ** self.largest


SINGLE = Format(24, -126, 127)
DOUBLE = Format(53, -1022, 1023)
HALF = Format(11, -14, 15)
BFLOAT = Format(8, -126, 127)


def rounded(number: Fraction, kind: Format, mode: str = "RN") -> float:
    """The number of that format that a mode demands."""
    if number == 0:
        return 0.0
    size = abs(number)
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    exponent -= size < Fraction(2) ** exponent
    unit = max(exponent, kind.smallest) - kind.precision + 1
    scaled = size / Fraction(2) ** unit
    whole = int(scaled)
    rest = scaled - whole
    up = {
        "RN": rest > Fraction(1, 2) or (rest == Fraction(1, 2) and whole % 2 == 1),
        "RZ": False,
        "RM": rest > 0 > number,
        "RP": rest > 0 and number > 0,
    }[mode]
    whole += up
    sign = 1 if number > 0 else -1
    if whole * Fraction(2) ** unit > kind.maximum:
        endless = mode in ("RN", "RM" if number < 0 else "RP")
        return sign * (inf if endless else float(kind.maximum))
    return sign * ldexp(whole, unit)


def fused(a: float, b: float, c: float) -> Fraction | None:
    """a * b + c; None where it is no finite number."""
    if any(isnan(x) or isinf(x) for x in (a, b, c)):
        return None
    return Fraction(a) * Fraction(b) + Fraction(c)
