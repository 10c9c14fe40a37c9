"""Pre-training: one policy from many kernels, for use on kernels that it has never seen.

    python -m cuasmrl.agents.pretraining --hold-out softmax --hold-out bmm --output FILE

trains a policy on all Triton workloads but two, and plays those two with it.

In each position of a climb a few moves are tried and taken back; the policy learns to tell those that make
the kernel faster from the others. One look at a position so teaches as many moves as were tried in it, which
is why this needs far fewer evaluations than learning by play.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from torch.nn.functional import log_softmax

from cuasmrl import workloads
from cuasmrl.agents import match, weights
from cuasmrl.agents.policies import RowNetwork
from cuasmrl.agents.ppo import PPO
from cuasmrl.chips import chip
from cuasmrl.devices import VirtualTimer
from cuasmrl.errors import CuasmrlError
from cuasmrl.game import Clock, FreeGame, Game
from cuasmrl.game.features import COLUMNS
from cuasmrl.game.free import JUMPS
from cuasmrl.schedule import Schedule
from cuasmrl.timing.uncertainty import Gain
from cuasmrl.traced import TracedKernel, trace_workload

Float: TypeAlias = npt.NDArray[np.float32]
Int: TypeAlias = npt.NDArray[np.int64]

_ENDLESS = 1 << 40
_LOSS = -1e3
"""Worth of a move that could not be made."""


@dataclass(frozen=True)
class Curriculum:
    """What a policy is trained on, and how long."""

    hold_out: tuple[str, ...] = ()
    """Workloads that it never sees."""
    configs: int = 2
    """Kernels of each workload at most."""
    chip: str = "a100"
    """Whose virtual GPU they run on."""
    positions: int = 120
    """Of each kernel."""
    climb: int = 40
    """Positions until a new climb begins at the compiler's schedule."""
    tries: int = 24
    """Moves tried in each position."""
    epochs: int = 15
    """Passes over all positions."""
    batch: int = 8
    """Positions in one gradient step, all of one kernel."""
    learning_rate: float = 2e-3
    """Of AdamW; falls to zero."""
    weight_decay: float = 0.1
    """Pulls weights to zero: there are few kernels to learn from."""
    unit: float = 0.05
    """A gain in percent that counts as much; larger ones grow like the logarithm."""
    width: int = 32
    """Channels of the network."""
    seed: int = 0
    """Of all random choices."""


@dataclass(frozen=True, eq=False)
class Positions:
    """Positions of one kernel: what is seen, which moves were tried, and their gains in percent."""

    kernel: str
    seen: Float
    actions: Int
    gains: Float

    @property
    def telling(self) -> Positions:
        """Those in which some move helped: the others say nothing about which move to prefer."""
        kept = (self.gains > 0).any(axis=1)
        return Positions(self.kernel, self.seen[kept], self.actions[kept], self.gains[kept])


def kernels(curriculum: Curriculum) -> list[TracedKernel]:
    """The Triton kernels that may be seen, traced; those that cannot be played are left out."""
    on = chip(curriculum.chip)
    found = []
    for workload in workloads.all():
        if workload.name in curriculum.hold_out or workload.language != "triton":
            continue
        able = [config for config in workload.configs if on.arch not in config.unsupported]
        found += [trace_workload(workload, config, on) for config in able[: curriculum.configs]]
    if not found:
        raise CuasmrlError("all workloads are held out; leave at least one to train on")
    return found


def explore(kernel: TracedKernel, curriculum: Curriculum, seed: int) -> Positions:
    """Climb a few times, trying moves in every position."""
    clock = Clock(VirtualTimer(kernel), kernel.original, _ENDLESS)
    env = FreeGame(lambda: Game(kernel.listing, clock))
    rng = random.Random(seed)
    seen, actions, gains = [], [], []
    start = clock.original
    for number in range(curriculum.positions):
        if number % curriculum.climb == 0:
            start = clock.original
        rows, info = env.reset(options={"schedule": start})
        tried = _tries(env, rng, curriculum.tries)
        found = [env.peek(action) for action in tried]
        worth = [_LOSS if f is None else 100 * (info["time"] - f[1]) / clock.start for f in found]
        seen.append(rows)
        actions.append(tried)
        gains.append(worth)
        start = _onwards(rng, start, [f[0] if f else start for f in found], worth)
    name = f"{kernel.name} {kernel.config}"
    return Positions(name, np.stack(seen), np.array(actions), np.array(gains, np.float32))


def _tries(env: FreeGame, rng: random.Random, count: int) -> list[int]:
    """Legal moves, drawn by row first: rows with many moves are not more interesting."""
    rows: dict[int, list[int]] = {}
    for action in np.flatnonzero(env.action_masks()[:-1]).tolist():
        rows.setdefault(action // JUMPS, []).append(action)
    return [rng.choice(rows[row]) for row in rng.choices(list(rows), k=count)]


def _onwards(rng: random.Random, here: Schedule, there: list[Schedule], worth: list[float]) -> Schedule:
    """Where a climb goes next: mostly to the best, at times to any that is no worse."""
    good = [schedule for schedule, gain in zip(there, worth, strict=True) if gain >= 0]
    if not good:
        return here
    best = there[int(np.argmax(worth))]
    return best if rng.random() < 0.7 else rng.choice(good)


def fit(lessons: list[Positions], curriculum: Curriculum) -> RowNetwork:
    """Train a network to rank the moves that were tried in each position."""
    lessons = [lesson.telling for lesson in lessons]
    torch.manual_seed(curriculum.seed)
    network = RowNetwork(1, len(COLUMNS), JUMPS, curriculum.width)
    optimizer = torch.optim.AdamW(
        network.parameters(), curriculum.learning_rate, weight_decay=curriculum.weight_decay
    )
    rng = random.Random(curriculum.seed)
    steps = curriculum.epochs * sum(-(-len(lesson.seen) // curriculum.batch) for lesson in lessons)
    falling = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.0, steps)
    for _ in range(curriculum.epochs):
        for lesson, chosen in _batches(lessons, curriculum.batch, rng):
            loss = ranking_loss(network, lesson, chosen, curriculum)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            falling.step()
    return network


def ranking_loss(
    network: RowNetwork, lesson: Positions, chosen: list[int], curriculum: Curriculum
) -> torch.Tensor:
    """Cross entropy between the policy among the tried moves and their shares of all that was gained."""
    logits = network(torch.from_numpy(lesson.seen[chosen]))[0]
    tried = logits.gather(1, torch.from_numpy(lesson.actions[chosen]))
    worth = torch.log1p(torch.from_numpy(lesson.gains[chosen]).clamp(min=0) / curriculum.unit)
    share = worth / worth.sum(dim=1, keepdim=True)
    return -(share * log_softmax(tried, dim=1)).sum(dim=1).mean()


def _batches(
    lessons: list[Positions], size: int, rng: random.Random
) -> Iterator[tuple[Positions, list[int]]]:
    """Batches of one kernel each, in random order; kernels differ in size."""
    found = []
    for lesson in lessons:
        order = rng.sample(range(len(lesson.seen)), len(lesson.seen))
        found += [(lesson, order[k : k + size]) for k in range(0, len(order), size)]
    rng.shuffle(found)
    yield from found


def pretrain(curriculum: Curriculum, output: Path) -> None:
    """Train a policy and write its weights."""
    torch.set_num_threads(1)
    lessons = []
    for number, kernel in enumerate(kernels(curriculum)):
        try:
            lessons.append(explore(kernel, curriculum, curriculum.seed + number))
        except CuasmrlError:  # nothing in it can move
            continue
    network = fit(lessons, curriculum)
    about = {
        "chip": curriculum.chip,
        "hold_out": list(curriculum.hold_out),
        "kernels": [lesson.kernel for lesson in lessons],
        "moves": sum(lesson.actions.size for lesson in lessons),
        "seed": curriculum.seed,
    }
    weights.save(output, network, curriculum.width, about)


def examine(path: Path, name: str, budget: int, seed: int = 0, chip_name: str = "a100") -> Gain:
    """How much faster a policy makes a workload within a budget, without learning; on unseen conditions."""
    workload = workloads.get(name)
    kernel = trace_workload(workload, workload.configs[0], chip(chip_name))
    timer = VirtualTimer(kernel)
    clock = match(PPO(weights=path, learns=False), kernel.listing, timer, budget, seed)
    return timer.confirm(kernel.original, clock.best)


def main() -> None:
    """The command in the description of this module."""
    parser = argparse.ArgumentParser(description="Train a policy for AssemblyGame-v1 over many workloads.")
    parser.add_argument("--hold-out", action="append", default=[], metavar="WORKLOAD", help="never seen")
    parser.add_argument("--configs", type=int, default=Curriculum.configs, help="kernels per workload")
    parser.add_argument("--chip", default=Curriculum.chip, help="whose virtual GPU they run on")
    parser.add_argument("--positions", type=int, default=Curriculum.positions, help="of each kernel")
    parser.add_argument("--epochs", type=int, default=Curriculum.epochs, help="passes over all positions")
    parser.add_argument("--seed", type=int, default=Curriculum.seed)
    parser.add_argument("--budget", type=int, default=200, help="evaluations to play held-out workloads with")
    parser.add_argument("--output", type=Path, required=True, metavar="FILE.safetensors")
    given = parser.parse_args()
    try:
        for name in given.hold_out:
            workloads.get(name)
        curriculum = Curriculum(
            tuple(given.hold_out),
            given.configs,
            given.chip,
            given.positions,
            epochs=given.epochs,
            seed=given.seed,
        )
        pretrain(curriculum, given.output)
        for name in given.hold_out:
            gain = examine(given.output, name, given.budget, given.seed, given.chip)
            print(f"{name}: {gain.nominal:+.2%} after {given.budget} evaluations, modelled cycles")
    except CuasmrlError as error:
        print(f"error: {error}", file=sys.stderr)
        raise SystemExit(2) from None


if __name__ == "__main__":
    main()
