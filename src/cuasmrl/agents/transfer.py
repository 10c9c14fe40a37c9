"""Transfer: how far a policy gets on kernels that it has never seen, without learning, against annealing.

    python -m cuasmrl.agents.transfer gemm_leaky_relu:m64n64k32_w4_s3 softmax:w8

plays with the weights that come along; they must have been trained without these workloads.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from cuasmrl import workloads
from cuasmrl.agents import AGENTS, Agent, match, weights
from cuasmrl.agents.ppo import PPO
from cuasmrl.errors import CuasmrlError
from cuasmrl.gpu.chips import chip
from cuasmrl.gpu.devices import VirtualTimer
from cuasmrl.gpu.timing.uncertainty import Gain
from cuasmrl.gpu.traced import TracedKernel
from cuasmrl.schedule import Scoreboards
from cuasmrl.workloads.tracing import trace_workload

FEW = 200
MANY = 2000


@dataclass(frozen=True)
class Transfer:
    """Gains on one kernel, confirmed under conditions that no search saw."""

    kernel: str
    zero_shot: Gain
    """The policy as it is, with few evaluations."""
    anneal_few: Gain
    anneal_many: Gain


def transfers(
    kernels: list[TracedKernel],
    path: Path = weights.DEFAULT,
    few: int = FEW,
    many: int = MANY,
    seed: int = 0,
    scoreboards: Scoreboards = Scoreboards.KEPT,
) -> Iterator[Transfer]:
    """Of a policy to each kernel; refuses those whose workload it was trained on."""
    held_out = json.loads(path.with_suffix(".json").read_text(encoding="utf-8")).get("hold_out", [])
    for kernel in kernels:
        if kernel.name not in held_out:
            raise CuasmrlError(
                f"the weights {path} were trained on {kernel.name}; hold it out to see transfer"
            )
        anneal = AGENTS.named("anneal")
        yield Transfer(
            f"{kernel.name} {kernel.config}",
            _gain(PPO(weights=path, learns=False), kernel, few, seed, scoreboards),
            _gain(anneal, kernel, few, seed, scoreboards),
            _gain(anneal, kernel, many, seed, scoreboards),
        )


def _gain(agent: Agent, kernel: TracedKernel, budget: int, seed: int, scoreboards: Scoreboards) -> Gain:
    timer = VirtualTimer(kernel)
    clock = match(agent, kernel, timer, budget, seed, scoreboards=scoreboards)
    return timer.confirm(kernel.original, clock.best)


def _kernel(text: str, chip_name: str) -> TracedKernel:
    name, _, config = text.partition(":")
    workload = workloads.get(name)
    return trace_workload(
        workload, workload.config(config) if config else workload.configs[0], chip(chip_name)
    )


def main() -> None:
    """The command in the description of this module."""
    parser = argparse.ArgumentParser(description="Play unseen kernels with a policy that does not learn.")
    parser.add_argument("kernels", nargs="+", metavar="WORKLOAD[:CONFIG]")
    parser.add_argument("--weights", type=Path, default=weights.DEFAULT, metavar="FILE.safetensors")
    parser.add_argument("--chip", default="a100", help="whose virtual GPU they run on")
    parser.add_argument(
        "--scoreboards", type=Scoreboards, default=Scoreboards.KEPT, choices=list(Scoreboards)
    )
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    try:
        kernels = [_kernel(text, given.chip) for text in given.kernels]
        print(f"gain in modelled cycles: zero-shot {FEW}, anneal {FEW}, anneal {MANY} evaluations")
        for row in transfers(kernels, given.weights, seed=given.seed, scoreboards=given.scoreboards):
            gains = (row.zero_shot, row.anneal_few, row.anneal_many)
            print(row.kernel, *(f"{gain.nominal:+.2%}" for gain in gains), flush=True)
    except CuasmrlError as error:
        print(f"error: {error}", file=sys.stderr)
        raise SystemExit(2) from None


if __name__ == "__main__":
    main()
