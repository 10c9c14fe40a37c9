"""What a gain has to reach before it is claimed."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from cuasmrl.errors import CuasmrlError
from cuasmrl.gpu.devices.rounds import MeasuredGain
from cuasmrl.gpu.timing.uncertainty import Gain


@dataclass(frozen=True)
class Standard:
    """Of modelled gains. Measured ones have their interval, which says more than any fixed number."""

    min_faster: float = 42 / 48
    """Share of the ensemble's chips on which the new schedule has to be faster."""
    min_gain: float = 0.005
    """Least median over the ensemble."""

    def __post_init__(self) -> None:
        if not 0 <= self.min_faster <= 1:
            raise CuasmrlError(
                f"--min-faster is a share of the chips such as 42/48, not {self.min_faster:g}; "
                "give one between 0 and 1"
            )
        if not 0 <= self.min_gain < 1:
            raise CuasmrlError(
                f"--min-gain is a median gain in percent such as 0.5, not {100 * self.min_gain:g}; "
                "give one between 0 and 100"
            )

    def missed(self, gain: Gain) -> list[str]:
        """The parts of the standard that a gain misses, in words; none if it is confirmed."""
        if isinstance(gain, MeasuredGain):
            return [gain.refusal] if gain.refusal else []
        missed = []
        count, faster = len(gain.members), sum(member > 0 for member in gain.members)
        needed = ceil(round(self.min_faster * count, 6))
        if faster < needed:
            missed.append(f"faster on {faster} of {count} chips, at least {needed} are needed")
        if gain.median < self.min_gain or gain.median <= 0:
            least = f"at least {100 * self.min_gain:.2f} %" if self.min_gain else "more than 0 %"
            missed.append(f"the median is {100 * gain.median:+.2f} %, {least} is needed")
        if gain.nominal <= 0:
            missed.append("it is not faster on the nominal chip")
        return missed
