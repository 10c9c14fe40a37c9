"""Where the cycles of the whole kernel went, before and after: counts of the model, so sums are exact."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from statistics import mean
from typing import Any

from cuasmrl.explain.waits.replays import Replays
from cuasmrl.gpu.timing import REASON_NAMES, Reason
from cuasmrl.gpu.timing.records import SUB_CORES


@dataclass(frozen=True)
class Spent:
    """Of one schedule."""

    cycles: tuple[int, ...]
    """Of the kernel, one figure for each seed."""
    reasons: Mapping[str, int]
    """Cycles of all sub-cores and seeds by reason, those that there are, in the order of the model."""

    @property
    def mean_cycles(self) -> float:
        return mean(self.cycles)


@dataclass(frozen=True)
class KernelCycles:
    seeds: tuple[int, ...]
    before: Spent
    after: Spent

    @property
    def divisor(self) -> int:
        """Counts divided by it are cycles of the kernel: a cycle of a sub-core has one name."""
        return SUB_CORES * len(self.seeds)

    def as_dict(self) -> dict[str, Any]:
        sides = {"before": self.before, "after": self.after}
        return {
            "seeds": list(self.seeds),
            "divisor": self.divisor,
            **{name: {**asdict(side), "mean_cycles": side.mean_cycles} for name, side in sides.items()},
        }


def cycles_between(old: Replays, new: Replays) -> KernelCycles:
    return KernelCycles(old.seeds, spent(old), spent(new))


def spent(replays: Replays) -> Spent:
    """Of one schedule, from its replays."""
    counts = enumerate(replays.cores.tolist())
    return Spent(replays.cycles, {REASON_NAMES[Reason(k)]: count for k, count in counts if count})
