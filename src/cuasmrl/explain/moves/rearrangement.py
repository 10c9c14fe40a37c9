"""From one order of a block to another by instructions that move; any selection of them is an order too."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np

from cuasmrl.binary.sass import Order, Pipe
from cuasmrl.schedule import Block, Board, Schedule

Unit: TypeAlias = tuple[int, ...]
"""Instructions that stay together: one, or padding with what it pads."""

_IMMOVABLE = 1e6


@dataclass(frozen=True)
class Rearrangement:
    """Of one block. Some units stay and keep their order among themselves, the others move past them."""

    before: tuple[Unit, ...]
    after: tuple[Unit, ...]
    moved: frozenset[Unit]

    @staticmethod
    def of(board: Board, block: Block, winner: Schedule) -> Rearrangement:
        """As few units move as possible; the pinned stay, and where there is a choice the tensor products."""
        before = _units(range(block.start, block.end), board.glued)
        window = winner.order[block.start : block.end]
        position = {i: p for p, i in enumerate(window)}
        after = tuple(sorted(before, key=lambda unit: position[unit[0]]))
        weights = [_weight(board, unit) for unit in before]
        stay = _heaviest_increasing([position[unit[0]] for unit in before], weights)
        return Rearrangement(before, after, frozenset(before) - {before[k] for k in stay})

    @property
    def movers(self) -> tuple[Unit, ...]:
        """In the order in which they stand in the end."""
        return tuple(unit for unit in self.after if unit in self.moved)

    def window(self, chosen: Collection[Unit]) -> list[int]:
        """The order in which only the chosen units have moved, none farther than it takes.

        Those that stay and those chosen are in the order of the end; the others stand where they stood.
        """
        present = [unit for unit in self.before if unit not in chosen]
        arrived = set(self.before) - self.moved
        ups = [unit for unit in self.movers if unit in chosen and unit in self._upward]
        downs = [unit for unit in self.movers if unit in chosen and unit not in self._upward]
        # Between two that stay there may be some that are not chosen: who comes from above stops above them.
        for unit in [*reversed(downs), *ups]:
            low, high = _gap(present, arrived, self._place, self._place[unit])
            present.insert(high if unit in self._upward else low, unit)
            arrived.add(unit)
        return [i for unit in present for i in unit]

    @cached_property
    def _place(self) -> dict[Unit, int]:
        return {unit: p for p, unit in enumerate(self.after)}

    @cached_property
    def _upward(self) -> frozenset[Unit]:
        """Those that pass others on their way up; who passes none that stays goes where its number says."""
        origin = {unit: p for p, unit in enumerate(self.before)}
        found = set()
        for unit in self.moved:
            to, here = self._place[unit], origin[unit]
            passed = (
                o for o in self.before if o not in self.moved and (origin[o] < here) != (self._place[o] < to)
            )
            first = next(passed, None)
            if to < here if first is None else origin[first] < here:
                found.add(unit)
        return frozenset(found)


def _gap(
    present: Sequence[Unit], arrived: Collection[Unit], position: Mapping[Unit, int], to: int
) -> tuple[int, int]:
    """Between which indices a unit can be inserted to be in order with those that have arrived."""
    low, high = 0, len(present)
    for k, unit in enumerate(present):
        if unit in arrived:
            if position[unit] < to:
                low = k + 1
            else:
                high = k
                break
    return low, high


def _units(instructions: Sequence[int], glued: Mapping[int, int]) -> tuple[Unit, ...]:
    units: list[list[int]] = []
    for i in instructions:
        if units and glued.get(units[-1][-1], units[-1][-1]) == i and units[-1][-1] != i:
            units[-1].append(i)
        else:
            units.append([i])
    return tuple(tuple(unit) for unit in units)


def _weight(board: Board, unit: Unit) -> float:
    """How much is to be said for staying. Loads and barriers move between products and arithmetic, we say."""
    if any(board.fixed[i] for i in unit):
        return _IMMOVABLE
    weight = float(len(unit))
    for i in unit:
        instruction = board.code[i]
        if instruction.declaration is not None and instruction.declaration.pipe is Pipe.TENSOR:
            weight += 0.01
        elif instruction.order is Order.FREE:
            weight += 0.005
    return weight


def _heaviest_increasing(values: Sequence[int], weights: Sequence[float]) -> list[int]:
    """Indices of the heaviest increasing subsequence."""
    value = np.array(values)
    total = np.array(weights, float)
    back = np.full(len(value), -1)
    for k in range(1, len(value)):
        candidates = np.where(value[:k] < value[k], total[:k], 0.0)
        best = int(candidates.argmax())
        if candidates[best] > 0:
            total[k] += candidates[best]
            back[k] = best
    found = [int(total.argmax())]
    while back[found[-1]] >= 0:
        found.append(int(back[found[-1]]))
    return found[::-1]
