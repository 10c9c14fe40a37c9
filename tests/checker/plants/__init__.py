"""Faults to plant in real cubins: each kind finds its sites and says what a refusal must name."""

from tests.checker.plants import (
    blunders,
    branches,
    closeness,
    container,
    control,
    engines,
    misplaced,
    order,
    ordering,
    passing,
    paths,
    products,
    queues,
    registers,
    scoreboards,
    scrambled,
    spacing,
    tensors,
    timing,
)
from tests.checker.plants.base import KINDS, Plant, Site

__all__ = [
    "KINDS", "Plant", "Site", "blunders", "branches", "closeness", "container", "control", "engines",
    "misplaced", "order", "ordering", "passing", "paths", "products", "queues", "registers", "scoreboards",
    "scrambled", "spacing", "tensors", "timing",
]  # fmt: skip
