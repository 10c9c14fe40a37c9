"""Does a schedule touch registers too early? Replays are followed warp by warp, under several seeds."""

from __future__ import annotations

from typing import TypeAlias

from cuasmrl.binary.sass import Hazard
from cuasmrl.gpu.timing import Model
from cuasmrl.gpu.timing.sanitizer import Finding, hazards_of
from cuasmrl.schedule import Schedule

Pair: TypeAlias = tuple[Hazard, int, int]

SEEDS = (601, 602, 603)


def new_hazards(model: Model, original: Schedule, schedule: Schedule) -> list[Finding]:
    """What the sanitizer finds in a schedule and not in the original, each pair of instructions once."""
    seen = set(_pairs(model, original))
    return [finding for pair, finding in _pairs(model, schedule).items() if pair not in seen]


def _pairs(model: Model, schedule: Schedule) -> dict[Pair, Finding]:
    """By the instructions' indices in the original."""
    order = schedule.order
    return {
        (found.hazard, order[found.first.index], order[found.second.index]): found
        for seed in SEEDS
        for found in hazards_of(model, schedule, seed)
    }
