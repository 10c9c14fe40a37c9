"""What a search scores schedules by, and where search, pick and gate each draw their chips and seeds from."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from cuasmrl.gpu.timing import Parameters
from cuasmrl.gpu.timing.uncertainty import draw


class Objective(StrEnum):
    NOMINAL = "nominal"
    """The chip as its file describes it."""
    ROBUST = "robust"
    """The mean over chips drawn from the ranges of its numbers, so that a search cannot fit one of them."""


SEARCH_SEEDS = tuple(range(1, 25))
PICKING_SEEDS = tuple(range(301, 305))
UNSEEN_SEEDS = tuple(range(501, 509))
REFERENCE_SEEDS = tuple(range(701, 709))
PLANNING_SEEDS = tuple(range(901, 925))
"""Of the latency jitter: while searching, when picking, when confirming, for whole kernels that searches
are measured by, and for what agents imagine. Nobody uses those of another."""

_CONFIRMING, _PICKING, _REFERENCE, _SEARCHING, _HIDDEN = range(1, 6)
_GAMES = 1 << 32


def confirming_members(parameters: Parameters, count: int) -> list[Parameters]:
    """The chip itself and others that neither a search nor a pick has seen."""
    return draw(parameters, count, _CONFIRMING)


def picking_members(parameters: Parameters, count: int) -> list[Parameters]:
    return draw(parameters, count, _PICKING)


def reference_members(objective: Objective, parameters: Parameters, count: int) -> Sequence[Parameters]:
    """What a search of this objective should rank schedules by."""
    return _members(objective, parameters, count, _REFERENCE)


def searching_members(
    objective: Objective, parameters: Parameters, count: int, game: int
) -> Sequence[Parameters]:
    """Of one game: others for every seed of the player."""
    return _members(objective, parameters, count, _SEARCHING + _GAMES * (1 + game))


def hidden_member(parameters: Parameters, secret: int) -> Parameters:
    """A chip that nobody knows."""
    return draw(parameters, 2, _HIDDEN + _GAMES * (1 + secret))[1]


def _members(objective: Objective, parameters: Parameters, count: int, seed: int) -> Sequence[Parameters]:
    if objective is Objective.NOMINAL:
        return [parameters] * count
    return draw(parameters, count + 1, seed)[1:]
