"""What the gate answers: each check's outcome in words, and whether the result may be used."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

from cuasmrl.checker import Certificate
from cuasmrl.gpu.devices.rounds import MeasuredGain
from cuasmrl.gpu.timing.uncertainty import Gain
from cuasmrl.optimize.gate.standard import Standard


def in_words(gain: Gain) -> str:
    if isinstance(gain, MeasuredGain):
        return gain.sentence
    faster = round(gain.share_above_zero * len(gain.members))
    return (
        f"{_percent(gain.median)} (middle 90 %: {_percent(gain.low)} to {_percent(gain.high)}), "
        f"faster on {faster} of {len(gain.members)} chips, {_percent(gain.nominal)} on the nominal one"
    )


def _percent(share: float) -> str:
    return f"{100 * share:+.2f} %"


class Outcome(StrEnum):
    PASSED = "passed"
    FAILED = "failed"
    LEFT_OUT = "left out"
    """There was nothing to examine, or it made no sense any more; the sentence says why."""


@dataclass(frozen=True)
class Check:
    name: str
    outcome: Outcome
    sentence: str


@dataclass(frozen=True)
class Verdict:
    """On one schedule of one kernel."""

    kernel: str
    device: str
    unit: str
    """In which the device confirms the gain."""
    schedule: str
    """Key of the schedule that was judged, in hexadecimal digits."""
    checks: tuple[Check, ...]
    before: float | None
    """Modelled cycles of the original: the whole kernel, mean over unseen seeds; None without a trace."""
    after: float | None
    """Of the schedule that was judged."""
    gain: Gain | None
    """As the device confirmed it; None if it was not asked."""
    certificate: Certificate | None
    standard: Standard = field(default_factory=Standard)
    """What the gain had to reach."""

    @property
    def accepted(self) -> bool:
        """Is the result to be used? Otherwise there is no gain, and the original is kept."""
        failed = any(check.outcome is Outcome.FAILED for check in self.checks)
        return self.gain is not None and self.certificate is not None and not failed

    @property
    def sentence(self) -> str:
        if not self.accepted or self.gain is None:
            return "no gain: the original is kept"
        return f"confirmed gain in {self.unit}: {in_words(self.gain)}"

    @property
    def modelled(self) -> str:
        """What the nominal chip says, for people."""
        if self.before is None or self.after is None:
            return "nothing can replay this kernel, so there are no modelled cycles"
        return (
            f"on the nominal chip: {self.before:,.0f} modelled cycles before, {self.after:,.0f} after "
            f"({_percent(self.before / self.after - 1)})"
        )

    def lines(self) -> list[str]:
        """One line for each check, for people."""
        width = max(len(check.name) for check in self.checks)
        return [f"{check.name:{width}}  {check.outcome}: {check.sentence}" for check in self.checks]

    def as_dict(self) -> dict[str, Any]:
        certificate = self.certificate.as_dict() if self.certificate else None
        return {
            "accepted": self.accepted, "sentence": self.sentence, **asdict(self), "certificate": certificate
        }  # fmt: skip
