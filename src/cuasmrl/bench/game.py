"""Speed of the environments: evaluated steps per second, and what a step is made of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from time import thread_time
from typing import Any

import numpy as np
from rich.table import Table

from cuasmrl import workloads
from cuasmrl.bench.evaluations import Stopwatch, WatchedGame
from cuasmrl.game import Clock, FreeGame, PublishedGame
from cuasmrl.gpu.chips import chip
from cuasmrl.workloads.tracing import trace_workload

_KERNELS = (("gemm_leaky_relu", "m64n64k32_w4_s3"), ("gemm_leaky_relu", "m128n128k32_w4_s3"))
_STEPS = 400
_MOST_STEPS = 2000
"""With small moves there may be few schedules within reach."""
_CHOICES = 50
_BUDGET = 1_000_000


@dataclass(frozen=True)
class GameFigures:
    """Milliseconds of processor time of a step, on one core, by what it went into."""

    game: str
    kernel: str
    conditions: int
    """Replays per evaluation."""
    rows: int
    actions: int
    steps: int
    evaluated: int
    """Steps that asked the device; the others led to schedules seen before."""
    replay: float
    """With the profile, where the observation shows it."""
    mask: float
    observation: float
    """Everything else in the environment: the move, the rules, the view."""
    policy: float | None
    """Choosing an action with the network of the PPO agent; None without torch."""

    @property
    def milliseconds(self) -> float:
        return self.replay + self.mask + self.observation

    @property
    def steps_per_second(self) -> float:
        """Evaluated steps without the policy."""
        return 1000 / self.milliseconds

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "evaluated_steps_per_second": self.steps_per_second}


def game(progress: Callable[[int, int], None]) -> list[GameFigures]:
    """Random play in both environments on the published matrix product."""
    jobs = [(kind, *kernel) for kernel in _KERNELS for kind in (PublishedGame, FreeGame)]
    figures = []
    for done, (kind, name, config) in enumerate(jobs, 1):
        figures.append(_measure(kind, name, config))
        progress(done, len(jobs))
    return figures


def _measure(kind: type[PublishedGame] | type[FreeGame], name: str, config: str) -> GameFigures:
    workload = workloads.get(name)
    kernel = trace_workload(workload, workload.config(config), chip("a100"))
    watch = Stopwatch(kernel, workers=1)
    clock = Clock(watch, kernel.original, _BUDGET)
    played = WatchedGame(kernel.listing, clock, kernel)
    environment = kind(lambda: played)
    observation, _ = environment.reset(seed=0)
    rng = np.random.default_rng(0)
    masking = stepping = watch.timing = played.profiling = 0.0
    steps, before = 0, clock.spent
    # Only steps that ask the device count: a schedule seen before would flatter the figure.
    while clock.spent - before < _STEPS and steps < _MOST_STEPS:
        steps += 1
        start = thread_time()
        mask = environment.action_masks()
        masked = thread_time()
        action = rng.choice(np.flatnonzero(mask[:-1]))
        chosen = thread_time()
        observation, _, terminated, truncated, _ = environment.step(action)
        stepping += thread_time() - chosen
        masking += masked - start
        if terminated or truncated:
            environment.reset()
    evaluated = clock.spent - before
    # An observation with waits in it takes its time from the replay that names them.
    replaying = watch.timing + played.profiling
    return GameFigures(
        game="AssemblyGame-v0" if kind is PublishedGame else "AssemblyGame-v1",
        kernel=f"{name} {config}",
        conditions=watch.effort.conditions,
        rows=observation.shape[0],
        actions=len(mask),
        steps=steps,
        evaluated=evaluated,
        replay=1000 * replaying / evaluated,
        mask=1000 * masking / steps,
        observation=1000 * (stepping - replaying) / steps,
        policy=_policy(environment),
    )


def _policy(environment: PublishedGame | FreeGame) -> float | None:
    """Milliseconds in which the network of the PPO agent chooses an action."""
    if isinstance(environment, PublishedGame) or not (find_spec("torch") and find_spec("sb3_contrib")):
        return None
    import torch

    from cuasmrl.agents.ppo import PPO

    torch.set_num_threads(1)
    model = PPO(weights=None).model([environment], seed=0)
    observation, _ = environment.reset()
    mask = environment.action_masks()
    model.predict(observation, action_masks=mask)
    start = thread_time()
    for _ in range(_CHOICES):
        model.predict(observation, action_masks=mask)
    return 1000 * (thread_time() - start) / _CHOICES


def game_table(figures: list[GameFigures]) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("game")
    table.add_column("kernel")
    columns = ("rows", "actions", "replay ms", "mask ms", "rest ms", "policy ms", "steps/s")
    for column in columns:
        table.add_column(column, justify="right")
    for f in figures:
        table.add_row(
            f.game, f.kernel, str(f.rows), str(f.actions), f"{f.replay:.2f} ({f.conditions} replays)",
            f"{f.mask:.2f}", f"{f.observation:.2f}", "" if f.policy is None else f"{f.policy:.2f}",
            f"{f.steps_per_second:.0f}",
        )  # fmt: skip
    return table
