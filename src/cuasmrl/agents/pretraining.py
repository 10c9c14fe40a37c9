"""Pre-training: one policy from many kernels, for use on kernels that it has never seen.

    python -m cuasmrl.agents.pretraining --hold-out softmax --hold-out bmm --output FILE

trains a policy on all Triton workloads but two; `agents.transfer` plays those.

Every kernel is climbed by moves drawn fairly; from all that were tried the policy learns the odds that one
helps.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import torch
from torch.nn.functional import binary_cross_entropy_with_logits

from cuasmrl import workloads
from cuasmrl.agents import weights
from cuasmrl.agents.lessons import Lessons, Trials, fair_move, worth
from cuasmrl.agents.policies import RowNetwork
from cuasmrl.agents.ppo import PPO
from cuasmrl.errors import CuasmrlError
from cuasmrl.game import Clock, FreeGame, Game
from cuasmrl.game.free import KINDS
from cuasmrl.gpu.chips import chip
from cuasmrl.gpu.devices import VirtualTimer
from cuasmrl.gpu.traced import TracedKernel
from cuasmrl.schedule import Scoreboards
from cuasmrl.workloads.tracing import trace_workload

_RARE = -3.0
"""Log odds that a move helps, before anything is known."""
_MOST_STEPS = 4
"""For each evaluation: small kernels have been seen from all sides before the budget is spent."""


@dataclass(frozen=True)
class Curriculum:
    """What a policy is trained on, and how long."""

    hold_out: tuple[str, ...] = ()
    """Workloads that it never sees."""
    configs: int = 4
    """Kernels of each workload at most."""
    chip: str = "a100"
    """Whose virtual GPU they run on."""
    scoreboards: Scoreboards = Scoreboards.KEPT
    """What becomes of them while kernels are explored."""
    moves: int = 2000
    """Evaluated on each kernel."""
    patience: int = 200
    """Evaluations without a gain after which a climb goes on a few moves aside."""
    epochs: int = 6
    """Passes over all states."""
    batch: int = 8
    """Positions in one gradient step, all of one kernel."""
    learning_rate: float = 2e-3
    """Of AdamW; falls to zero."""
    weight_decay: float = 0.1
    """Pulls weights to zero: there are few kernels to learn from."""
    width: int = 32
    """Channels of the network."""
    seed: int = 0
    """Of all random choices."""


@dataclass(frozen=True, eq=False)
class Lesson:
    """All that was tried on one kernel."""

    kernel: str
    trials: Trials

    def part(self, chosen: Sequence[int]) -> Trials:
        """Some states of it."""
        whole = self.trials
        ends = np.searchsorted(whole.of, [[k, k + 1] for k in chosen])
        which = np.concatenate([np.arange(start, end) for start, end in ends])
        of = np.repeat(np.arange(len(chosen)), ends[:, 1] - ends[:, 0])
        return Trials(whole.seen[chosen], of, whole.actions[which], whole.gains[which])


def subjects(curriculum: Curriculum) -> list[tuple[str, str]]:
    """The Triton workloads that may be seen, each with some of its configs, by name."""
    on = chip(curriculum.chip)
    found = []
    for workload in workloads.all():
        if workload.name in curriculum.hold_out or workload.language != "triton":
            continue
        able = [config.name for config in workload.configs if on.arch not in config.unsupported]
        found += [(workload.name, config) for config in able[: curriculum.configs]]
    if not found:
        raise CuasmrlError("all workloads are held out; leave at least one to train on")
    return found


def study(name: str, config: str, curriculum: Curriculum, seed: int) -> Lesson | None:
    """Compile, trace and explore a workload; None if nothing in it can move."""
    workload = workloads.get(name)
    kernel = trace_workload(workload, workload.config(config), chip(curriculum.chip))
    try:
        return explore(kernel, curriculum, seed)
    except CuasmrlError:
        return None


def explore(kernel: TracedKernel, curriculum: Curriculum, seed: int) -> Lesson:
    """Climb by moves that are drawn fairly, and note what each of them brought."""
    clock = Clock(VirtualTimer(kernel), kernel.original, curriculum.moves)

    def new_game() -> Game:
        return Game(kernel.listing, clock, kernel, scoreboards=curriculum.scoreboards)

    game = FreeGame(new_game, horizon=curriculum.moves, keep_worse=False)
    env = Lessons(game, PPO.unit, curriculum.patience, PPO.aside, seed)
    rng = np.random.default_rng(seed)
    env.reset(seed=seed)
    for _ in range(_MOST_STEPS * curriculum.moves):
        if clock.is_over:
            break
        _, _, ended, truncated, _ = env.step(fair_move(game, rng))
        if ended or truncated:
            env.reset()
    return Lesson(f"{kernel.name} {kernel.config}", env.memory.take())


def fit(lessons: list[Lesson], curriculum: Curriculum) -> RowNetwork:
    """Train a network to tell what a move is worth."""
    torch.manual_seed(curriculum.seed)
    network = RowNetwork(1, KINDS, curriculum.width)
    torch.nn.init.constant_(network.scores.bias, _RARE)
    optimizer = torch.optim.AdamW(
        network.parameters(), curriculum.learning_rate, weight_decay=curriculum.weight_decay
    )
    rng = random.Random(curriculum.seed)
    steps = curriculum.epochs * sum(
        -(-len(np.unique(lesson.trials.of)) // curriculum.batch) for lesson in lessons
    )
    falling = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.0, max(1, steps))
    for _ in range(curriculum.epochs):
        for lesson, chosen in _batches(lessons, curriculum.batch, rng):
            loss = worth_loss(network, lesson.part(chosen))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            falling.step()
    return network


def worth_loss(network: RowNetwork, trials: Trials) -> torch.Tensor:
    """Cross entropy between the odds that a network gives to moves and what they were worth."""
    scores = network.odds(torch.from_numpy(trials.seen))[trials.of, trials.actions]
    return binary_cross_entropy_with_logits(scores, worth(torch.from_numpy(trials.gains)))


def _batches(lessons: list[Lesson], size: int, rng: random.Random) -> Iterator[tuple[Lesson, list[int]]]:
    """Batches of one kernel each, in random order; kernels differ in size."""
    found = []
    for lesson in lessons:
        states = np.unique(lesson.trials.of).tolist()
        order = rng.sample(states, len(states))
        found += [(lesson, order[k : k + size]) for k in range(0, len(order), size)]
    rng.shuffle(found)
    yield from found


def pretrain(curriculum: Curriculum, output: Path, jobs: int) -> None:
    """Train a policy and write its weights; so many kernels are explored at a time."""
    torch.set_num_threads(1)
    with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
        studies = [
            pool.submit(study, *subject, curriculum, curriculum.seed + number)
            for number, subject in enumerate(subjects(curriculum))
        ]
        lessons = [lesson for one in studies if (lesson := one.result()) is not None]
    network = fit(lessons, curriculum)
    about = {
        "chip": curriculum.chip,
        "hold_out": list(curriculum.hold_out),
        "kernels": [lesson.kernel for lesson in lessons],
        "moves": sum(len(lesson.trials.actions) for lesson in lessons),
        "scoreboards": curriculum.scoreboards.value,
        "seed": curriculum.seed,
    }
    weights.save(output, network, curriculum.width, about)


def main() -> None:
    """The command in the description of this module."""
    parser = argparse.ArgumentParser(description="Train a policy for AssemblyGame-v1 over many workloads.")
    parser.add_argument("--hold-out", action="append", default=[], metavar="WORKLOAD", help="never seen")
    parser.add_argument("--configs", type=int, default=Curriculum.configs, help="kernels per workload")
    parser.add_argument("--chip", default=Curriculum.chip, help="whose virtual GPU they run on")
    parser.add_argument("--moves", type=int, default=Curriculum.moves, help="evaluated on each kernel")
    parser.add_argument("--epochs", type=int, default=Curriculum.epochs, help="passes over all states")
    parser.add_argument(
        "--scoreboards", type=Scoreboards, default=Curriculum.scoreboards, choices=list(Scoreboards)
    )
    parser.add_argument("--seed", type=int, default=Curriculum.seed)
    parser.add_argument("--jobs", type=int, default=2, help="kernels explored at a time")
    parser.add_argument("--output", type=Path, required=True, metavar="FILE.safetensors")
    given = parser.parse_args()
    try:
        if given.jobs < 1:
            raise CuasmrlError(f"--jobs is {given.jobs}; at least one kernel is explored at a time")
        for name in given.hold_out:
            workloads.get(name)
        curriculum = Curriculum(
            tuple(given.hold_out),
            given.configs,
            given.chip,
            moves=given.moves,
            epochs=given.epochs,
            scoreboards=given.scoreboards,
            seed=given.seed,
        )
        pretrain(curriculum, given.output, given.jobs)
    except CuasmrlError as error:
        print(f"error: {error}", file=sys.stderr)
        raise SystemExit(2) from None


if __name__ == "__main__":
    main()
