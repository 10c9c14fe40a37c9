"""The interface between a policy that ranks moves and the players who ask it."""

from __future__ import annotations

from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from cuasmrl.gpu.profile import Profile
from cuasmrl.schedule import Board

Float: TypeAlias = npt.NDArray[np.float32]
Int: TypeAlias = npt.NDArray[np.int64]


class Outlook(Protocol):
    """One position of a game, as a ranker sees it."""

    def odds(self, instructions: Int, targets: Int) -> Float:
        """For each pair the log odds that dragging the instruction to the target position makes the kernel
        faster."""


class Ranker(Protocol):
    """Knows which moves are worth a look before anything is replayed."""

    def look(self, board: Board, profile: Profile) -> Outlook:
        """At the schedule on the board, with where its time goes."""
