"""Experiments that nobody has published and that would settle a mechanism: what its settings predict."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from cuasmrl.bench.microbenchmarks.experiment import Experiment
from cuasmrl.bench.microbenchmarks.readings import figure
from cuasmrl.bench.microbenchmarks.timeline import NOTHING
from cuasmrl.gpu.timing.parameters import load_parameters

CHIPS = ("a100", "a6000")
_PARAMETER = "copy_bytes"
_COPIES = (0, 1, 2, 4, 8)
_WARPS = (1, 8)
_ROUNDS = 32


@dataclass(frozen=True)
class Prediction:
    """Cycles of an experiment under each setting of a number."""

    chip: str
    what: str
    parameter: str
    cycles: dict[float, float]
    """By setting."""

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def experiments() -> dict[str, Experiment]:
    """By what they measure; see `copies.cu`."""
    found = {}
    for warps in _WARPS:
        for copies in _COPIES:
            of = f"{copies} LDGSTS.128, {warps} warp{'s' if warps > 1 else ''}"
            for kernel, what, rounds in (
                ("behind", f"LDSM.4 behind {of}", 1),
                ("beside", f"round of 16 LDSM.4 beside {of}", _ROUNDS),
            ):
                name = f"{kernel}_x{copies}"
                found[what] = Experiment(
                    what, "copies", name, 1, 32 * warps, "data sums clocks", "", "all warps", rounds, ""
                )
    return found


def predictions(changes: Mapping[str, float] = NOTHING) -> list[Prediction]:
    """What every setting gives for every experiment on every chip."""
    return [
        Prediction(chip, what, _PARAMETER, _by_setting(experiment, chip, changes))
        for chip in CHIPS
        for what, experiment in experiments().items()
    ]


def _by_setting(experiment: Experiment, chip: str, changes: Mapping[str, float]) -> dict[float, float]:
    settings = load_parameters(chip).numbers[_PARAMETER].choices
    return {setting: figure(experiment, chip, {**changes, _PARAMETER: setting}) for setting in settings}
