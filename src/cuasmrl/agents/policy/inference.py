"""The network without torch: the same sums in NumPy, for those who only play."""

from __future__ import annotations

import numpy as np

from cuasmrl.agents.policy.layout import ends_of, neighbours_of
from cuasmrl.agents.policy.observation import pairs
from cuasmrl.agents.policy.observation.facts import Float, Int
from cuasmrl.agents.policy.observation.position import Stand
from cuasmrl.agents.policy.weights import Tensors
from cuasmrl.compiled import compiled

IMPOSSIBLE = -30.0
"""Log odds of a move that is not legal or leads nowhere."""
_PRODUCT = 1 << 18
"""Multiplications that no library of linear algebra takes for worth sharing among threads."""
_UP, _UNTIMED = pairs.COLUMNS.index("up"), pairs.COLUMNS.index("cannot be timed")


class Judge:
    """Weights, ready to judge moves."""

    def __init__(self, tensors: Tensors) -> None:
        self._of = {name: np.ascontiguousarray(tensor.T) for name, tensor in tensors.items()}
        self._rounds = sum(name.startswith("rounds.") and name.endswith(".weight") for name in tensors)

    def look(self, stand: Stand) -> Float:
        """What is made of each instruction of a block, ready for the moves in it."""
        near, of = stand.neighbours, self._of
        seen = _at_least_0(self._layer("encode", (stand.rows - of["row_mean"]) * of["row_scale"]))
        order = neighbours_of(stand.timeline.order)
        for k in range(self._rounds):
            around = seen[order].reshape(len(seen), -1)
            before = _means(seen, near.before, near.before_starts)
            behind = _means(seen, near.behind, near.behind_starts)
            everything = np.concatenate([seen, around, before, behind], axis=1)
            seen = seen + _at_least_0(self._layer(f"rounds.{k}", everything))
        # The first layer of a move is a sum over three instructions: each has its share made once.
        width = seen.shape[1]
        place = self._of["place.weight"]
        found: Float = np.stack([seen @ place[k * width : (k + 1) * width] for k in range(3)])
        return found

    def odds(self, stand: Stand, places: Float, instructions: Int, targets: Int) -> Float:
        """Log odds that moves help; `places` are what `look` made of the block."""
        start = stand.block.start
        ends = ends_of(stand.timeline.order, instructions - start, targets - start)
        seen = stand.pairs(instructions, targets)
        is_possible = (seen[:, _UP] != 0) & (seen[:, _UNTIMED] == 0)
        found = self._layer("change", (seen - self._of["pair_mean"]) * self._of["pair_scale"])
        for k in range(3):
            found += places[k][ends[:, k]]
        found = _at_least_0(found)
        found += _at_least_0(self._layer("judge", found))
        odds: Float = np.where(is_possible, self._layer("odds", found)[:, 0], np.float32(IMPOSSIBLE))
        return odds

    def _layer(self, name: str, inputs: Float) -> Float:
        weight = self._of[f"{name}.weight"]
        found = np.empty((len(inputs), weight.shape[1]), np.float32)
        # Libraries start threads for larger products, which then wait for each other longer than they work.
        rows = max(1, _PRODUCT // weight.size)
        for first in range(0, len(inputs), rows):
            np.matmul(inputs[first : first + rows], weight, out=found[first : first + rows])
        found += self._of[f"{name}.bias"]
        return found


def _at_least_0(values: Float) -> Float:
    return np.maximum(values, 0, out=values)


@compiled
def _means(seen: Float, neighbours: Int, starts: Int) -> Float:
    """For each instruction the mean over those that it is tied to; zero for none."""
    found = np.zeros_like(seen)
    for i in range(len(seen)):
        first, end = starts[i], starts[i + 1]
        for k in range(first, end):
            for c in range(seen.shape[1]):
                found[i, c] += seen[neighbours[k], c]
        for c in range(seen.shape[1]):
            found[i, c] /= max(1, end - first)
    return found
