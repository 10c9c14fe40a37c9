"""The verdict of a run as its file says it, and the sentence a report begins with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cuasmrl.errors import CuasmrlError
from cuasmrl.optimize.gate import Outcome
from cuasmrl.optimize.runs import RunDirectory

CHECKS = ("certificate", "results", "hazards", "gain", "other sizes")
"""Of the gate, in its order."""
_NOT_REACHED = "there was nothing to examine"


@dataclass(frozen=True)
class Checked:
    name: str
    outcome: Outcome
    sentence: str


@dataclass(frozen=True)
class Judgement:
    accepted: bool
    sentence: str
    checks: tuple[Checked, ...]
    """All five, also those the gate did not come to."""
    gain: Mapping[str, Any] | None
    data: Mapping[str, Any]
    """The file as it is."""

    @property
    def failed(self) -> tuple[Checked, ...]:
        return tuple(check for check in self.checks if check.outcome is Outcome.FAILED)

    @property
    def left_out(self) -> tuple[Checked, ...]:
        """What the gate would have examined and could not; where a check failed, it did not go on."""
        if self.failed:
            return ()
        return tuple(
            check
            for check in self.checks
            if check.outcome is Outcome.LEFT_OUT and check.sentence != _NOT_REACHED
        )


def judgement_of(run: RunDirectory) -> Judgement | None:
    """None while the run is not over; refused if the file is not the verdict of a gate."""
    data = run.verdict()
    if data is None:
        return None
    try:
        checks = {str(c["name"]): (Outcome(c["outcome"]), str(c["sentence"])) for c in data["checks"]}
        gain = data["gain"]
        if gain is not None:
            [float(gain[name]) for name in ("median", "low", "high", "nominal", "share_above_zero")]
            [float(member) for member in gain["members"]]
        cycles = data["before"], data["after"]
        if cycles != (None, None):  # as for a kernel that nothing can replay
            _ = [float(number) for number in cycles]
        _ = str(data["device"]), str(data["unit"])
        return Judgement(
            bool(data["accepted"]),
            str(data["sentence"]),
            tuple(
                Checked(name, *checks.get(name, (Outcome.LEFT_OUT, _NOT_REACHED)))
                for name in dict.fromkeys((*CHECKS, *checks))
            ),
            gain,
            data,
        )
    except (KeyError, TypeError, ValueError) as error:
        raise CuasmrlError(f"{run.path / 'verdict.json'} is not a verdict: {error!r}") from None
