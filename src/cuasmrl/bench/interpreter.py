"""Time one workload in Triton's interpreter; run as a program of its own.

The interpreter is chosen by an environment variable that Triton reads when a kernel is defined, so it
cannot share a process with code that compiles.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from dataclasses import asdict, dataclass
from time import perf_counter
from typing import Any

import numpy as np

from cuasmrl.errors import CuasmrlError
from cuasmrl.workloads import Config, Workload, get
from cuasmrl.workloads.model import Sizes


@dataclass(frozen=True)
class Interpreted:
    seconds: float
    failures: dict[str, str]
    """Outputs that differ from the reference, in words."""


def interpret(workload: Workload, config: Config, sizes: Sizes, seed: int = 0) -> Interpreted:
    """Run in a new process and wait."""
    request = json.dumps([workload.name, config.name, dict(sizes), seed])
    done = subprocess.run(
        [sys.executable, "-m", "cuasmrl.bench.interpreter", request],
        env={**os.environ, "TRITON_INTERPRET": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise CuasmrlError(f"Triton's interpreter failed on {workload.name}: {reason}")
    return Interpreted(**json.loads(done.stdout.splitlines()[-1]))


def run(workload: Workload, config: Config, sizes: Sizes, seed: int) -> Interpreted:
    """Run in this process, which must have been started with TRITON_INTERPRET=1."""
    inputs = workload.inputs(sizes, seed)
    expected = workload.reference(inputs, sizes)
    module = importlib.import_module(f"cuasmrl.workloads.kernels.{workload.source.stem}")
    kernel = getattr(module, workload.symbol)
    arguments = {
        name: tensor(value) if isinstance(value, np.ndarray) else value.item()
        for name, value in inputs.items()
    }
    constants = workload.constants(sizes, config)
    missing = {k: v for k, v in constants.items() if k not in arguments}
    start = perf_counter()
    kernel[workload.grid(sizes, config)](**arguments, **missing)
    seconds = perf_counter() - start
    found = {name: want.failure(np.asarray(inputs[name])) for name, want in expected.items()}
    return Interpreted(seconds, {name: failure for name, failure in found.items() if failure})


def tensor(array: np.ndarray[Any, Any]) -> Any:
    """A torch tensor over the same memory."""
    import torch

    if array.dtype.name == "float8_e4m3fn":
        return torch.from_numpy(array.view(np.uint8)).view(torch.float8_e4m3fn)
    return torch.from_numpy(array)


def main() -> None:
    name, config, sizes, seed = json.loads(sys.argv[1])
    workload = get(name)
    print(json.dumps(asdict(run(workload, workload.config(config), sizes, seed))))


if __name__ == "__main__":
    main()
