"""What no schedule of the kernel goes below, and how much is left above it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from cuasmrl.explain.report.cycles import KernelCycles
from cuasmrl.gpu.timing import Bound, Model, bounds_of


@dataclass(frozen=True)
class Headroom:
    bounds: tuple[Bound, ...]
    """The largest first."""
    before: float
    """What a schedule at the largest bound would gain over the original: old cycles / bound - 1."""
    after: float
    """What it would gain over the new schedule."""

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def headroom_of(model: Model, cycles: KernelCycles) -> Headroom:
    bounds = bounds_of(model)
    least = bounds[0].cycles
    return Headroom(bounds, cycles.before.mean_cycles / least - 1, cycles.after.mean_cycles / least - 1)
