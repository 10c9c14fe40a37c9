"""The extremum of several floats, as redux.sync and tcgen05.ld.red have it (PTX ISA).

-0 is smaller than +0; a NaN counts only with .NAN, or where there is nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cuasmrl.gpu.emulator.forms import Form
from cuasmrl.gpu.emulator.values import Mask, Value

_MAGNITUDE = np.int32(0x7FFF_FFFF)
_NAN = np.uint32(0x7FFF_FFFF)


@dataclass(frozen=True)
class FloatExtremum:
    name: str
    nan_wins: bool

    @staticmethod
    def of(form: Form) -> FloatExtremum:
        return FloatExtremum(form.choose("MIN", "MAX", "MINABS", "MAXABS"), form.has("NAN"))

    def along(self, axis: int, values: Value, chosen: Mask) -> Value:
        """Of those chosen along an axis, which stays with length 1."""
        bits = values.view(np.int32)
        if self.name.endswith("ABS"):
            bits = bits & _MAGNITUDE
        is_nan = np.isnan(bits.view(np.float32))
        numbers = chosen & ~is_nan
        # As signed integers in the order of the numbers, zeros included.
        order = np.where(bits < 0, bits ^ _MAGNITUDE, bits)
        limits = np.iinfo(np.int32)
        smallest = self.name.startswith("MIN")
        function, start = (np.minimum, limits.max) if smallest else (np.maximum, limits.min)
        found = function.reduce(order, axis=axis, keepdims=True, where=numbers, initial=start)
        found = np.where(found < 0, found ^ _MAGNITUDE, found).astype(np.int32).view(np.uint32)
        none = ~numbers.any(axis=axis, keepdims=True)
        if self.nan_wins:
            none = none | (chosen & is_nan).any(axis=axis, keepdims=True)
        return np.where(none, _NAN, found)
