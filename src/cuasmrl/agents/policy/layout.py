"""Who sees whom in the network: neighbours in an order, and the ends of moves."""

from __future__ import annotations

import numpy as np

from cuasmrl.agents.policy.observation.facts import Int

NEAR = (-2, -1, 1, 2)
"""Positions whose instructions each one sees."""


def neighbours_of(order: Int) -> Int:
    """By instruction: those `NEAR` it in the order; itself beyond either end."""
    n = len(order)
    positions = np.arange(n)[:, None] + np.array(NEAR)
    inside = (positions >= 0) & (positions < n)
    found = np.empty((n, len(NEAR)), np.int64)
    found[order] = np.where(inside, order[np.clip(positions, 0, n - 1)], order[:, None])
    return found


def ends_of(order: Int, instructions: Int, targets: Int) -> Int:
    """Of each move the instruction, and those above and below the place where it goes; itself for none."""
    n = len(order)
    place = np.empty(n, np.int64)
    place[order] = np.arange(n)
    above = targets - (targets <= place[instructions])
    below = above + 1
    ends = [np.where((p >= 0) & (p < n), order[np.clip(p, 0, n - 1)], instructions) for p in (above, below)]
    return np.stack([instructions, *ends], axis=1)
