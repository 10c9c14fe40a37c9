"""What changes from one schedule of a kernel to another: totals, reasons, instructions."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from statistics import mean
from typing import Any

from cuasmrl.binary.cubin import WORD_BYTES
from cuasmrl.markup import card

"""Reasons to wait that the instruction in front has brought about: its stall count, or what it is."""


@dataclass(frozen=True)
class Timed:
    """One of the two schedules."""

    name: str
    cycles: tuple[int, ...]
    """Modelled cycles for each seed."""

    @property
    def mean_cycles(self) -> float:
        return mean(self.cycles)


@dataclass(frozen=True)
class ReasonChange:
    """Cycles of the SM that have this name, mean over sub-cores and seeds; they sum to all cycles."""

    reason: str
    before: float
    after: float

    @property
    def change(self) -> float:
        return self.after - self.before


@dataclass(frozen=True)
class InstructionChange:
    """Cycles that warps lost at an instruction, all warps together, mean over seeds.

    Those are the cycles it waited for its turn, and those for which its stall count, or a barrier or DEPBAR
    that it is, held up the next one.
    """

    index: int
    """Its number in the original listing."""
    text: str
    address_before: int
    address_after: int
    control_before: str
    control_after: str
    lost_before: float
    lost_after: float
    reason: str
    """What changed most."""
    reason_change: float
    cause_before: int | None
    cause_after: int | None
    """The instruction it mostly waited for under that name, by its number in the original listing."""

    @property
    def change(self) -> float:
        return self.lost_after - self.lost_before

    @property
    def positions(self) -> int:
        """How far down it moved; negative is up."""
        return (self.address_after - self.address_before) // WORD_BYTES


@dataclass(frozen=True)
class Comparison:
    kernel: str
    chip: str
    before: Timed
    after: Timed
    reasons: tuple[ReasonChange, ...]
    """Those that changed, the largest change first. Their changes sum to the difference of the totals."""
    instructions: tuple[InstructionChange, ...]
    """Those at which more or fewer cycles are lost, the largest change first."""
    moved: int
    """Instructions that stand elsewhere."""
    edited: int
    """Instructions with other control bits."""
    sentences: tuple[str, ...]

    @property
    def difference(self) -> float:
        return self.after.mean_cycles - self.before.mean_cycles

    @property
    def faster_seeds(self) -> int:
        return sum(b < a for a, b in zip(self.before.cycles, self.after.cycles, strict=True))

    def _repr_html_(self) -> str:
        """For notebooks."""
        share = 100 * self.difference / self.before.mean_cycles
        title = (
            f"{self.kernel} on {self.chip}: {self.before.mean_cycles:,.1f} to {self.after.mean_cycles:,.1f} "
            f"modelled cycles ({share:+.2f} %)"
        )
        rows = [(r.reason, f"{r.before:,.1f}", f"{r.after:,.1f}", f"{r.change:+,.1f}") for r in self.reasons]
        head = ("reason", self.before.name, self.after.name, "change")
        return card(title, self.sentences, head, rows)

    def as_dict(self) -> dict[str, Any]:
        return {
            **asdict(self),
            "before": {**asdict(self.before), "mean_modelled_cycles": self.before.mean_cycles},
            "after": {**asdict(self.after), "mean_modelled_cycles": self.after.mean_cycles},
            "difference": self.difference,
            "reasons": [{**asdict(r), "change": r.change} for r in self.reasons],
            "instructions": [{**asdict(i), "change": i.change} for i in self.instructions],
        }
