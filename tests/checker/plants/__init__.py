"""Faults to plant in real cubins: each kind finds its sites and says what a refusal must name."""

from tests.checker.plants import (
    branches,
    closeness,
    container,
    control,
    misplaced,
    order,
    ordering,
    queues,
    registers,
    scoreboards,
    timing,
)
from tests.checker.plants.base import KINDS, Plant, Site

__all__ = [
    "KINDS", "Plant", "Site", "branches", "closeness", "container", "control", "misplaced", "order",
    "ordering", "queues", "registers", "scoreboards", "timing",
]  # fmt: skip
