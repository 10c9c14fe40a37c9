"""What a network is fitted to: blocks as a policy sees them, with moves and whether they help."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from cuasmrl.agents.policy.layout import ends_of, neighbours_of
from cuasmrl.agents.policy.lessons import Position, is_help
from cuasmrl.agents.policy.network import Batch
from cuasmrl.agents.policy.observation.facts import Float, Int
from cuasmrl.agents.policy.observation.position import Memory, stand_of
from cuasmrl.schedule import Board, Schedule


@dataclass(frozen=True, eq=False)
class Scene:
    """One block at one moment, and moves in it; columns in half precision, finer than anything in them."""

    rows: Float
    order: Int
    dependences: Int
    """Pairs of an instruction and one that has to stay behind it."""
    instructions: Int
    """Of each move, counted from the first of the block."""
    targets: Int
    pairs: Float
    gains: Float
    helps: Float
    """1 for moves that help, else 0."""


def scenes_of(board: Board, positions: Iterable[Position]) -> Iterator[Scene]:
    """All that was labelled on one board, block by block."""
    memory = Memory({})
    numbers = np.array(board.block_of, np.int64)
    for position in positions:
        board.restore(Schedule.of_arrays(board.listing, position.indices, position.bits))
        found = numbers[position.instructions]
        for number in np.unique(found):
            block, here = board.blocks[number], found == number
            stand = stand_of(board, position.profile, block, memory.of(board, block))
            instructions, targets = position.instructions[here], position.targets[here]
            near = stand.neighbours
            behind = np.repeat(np.arange(len(block)), np.diff(near.before_starts))
            yield Scene(
                stand.rows.astype(np.float16),
                stand.timeline.order,
                np.stack([near.before, behind], axis=1),
                instructions - block.start,
                targets - block.start,
                stand.pairs(instructions, targets).astype(np.float16),
                position.gains[here],
                is_help(position)[here],
            )


def batch_of(scenes: Sequence[Scene]) -> Batch:
    """Scenes laid end to end."""
    offset = 0
    rows, near, before, behind, moves, pairs = [], [], [], [], [], []
    for scene in scenes:
        rows.append(scene.rows.astype(np.float32))
        near.append(neighbours_of(scene.order) + offset)
        before.append(scene.dependences[:, 0] + offset)
        behind.append(scene.dependences[:, 1] + offset)
        moves.append(ends_of(scene.order, scene.instructions, scene.targets) + offset)
        pairs.append(scene.pairs.astype(np.float32))
        offset += len(scene.order)
    parts = rows, near, before, behind, moves, pairs
    return Batch(*(torch.from_numpy(np.concatenate(part)) for part in parts))
