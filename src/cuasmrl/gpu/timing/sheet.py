"""What a replay for the time takes and gives beside cycles: for others to set out from, and to race with."""

from typing import NamedTuple

import numpy as np

from cuasmrl.gpu.timing.code import Int
from cuasmrl.gpu.timing.records import FAR


class Sheet(NamedTuple):
    """Arrays of one replay."""

    looks: Int
    """By position: when a warp first came to it; FAR for never."""
    passes: Int
    """When warps ended their visits of blocks, one after the other, whoever it was."""
    marks: Int
    """Cycles at which the state is kept."""
    rival: Int
    """Passes of another schedule. Who is behind it by more than is allowed, at as many visits in a row as
    there are warps, is given up. Empty for no rival."""
    allowed: int


class Limits(NamedTuple):
    """What a replay has to count."""

    marks: int
    rivals: int
    allowed: int
    patience: int


class Pointers(NamedTuple):
    """A sheet for compiled code."""

    looks: Int
    passes: Int
    marks: Int
    kept: Int
    """The state at each mark."""
    rival: Int
    limits: Limits


NOTHING = np.zeros(0, np.int64)


def new_sheet(rows: int, visits: int, marks: Int, rival: Int = NOTHING, allowed: int = 0) -> Sheet:
    """For a kernel of so many instructions, and a replay of so many visits."""
    return Sheet(np.full(rows, FAR, np.int64), np.zeros(visits, np.int64), marks, rival, allowed)
