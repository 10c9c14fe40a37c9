"""Run Triton workloads in Triton's interpreter; started by test_kernels.py in a process of its own.

The interpreter is chosen by an environment variable that Triton reads when a kernel is defined, so it
cannot share a process with tests that compile.
"""

from __future__ import annotations

import importlib
import json
import sys
from typing import Any

import numpy as np
import torch

from cuasmrl.workloads import Workload, get
from cuasmrl.workloads.model import Config, Sizes


def tensor(array: np.ndarray[Any, Any]) -> Any:
    if array.dtype.name == "float8_e4m3fn":
        return torch.from_numpy(array.view(np.uint8)).view(torch.float8_e4m3fn)
    return torch.from_numpy(array)


def failures(workload: Workload, sizes: Sizes, config: Config) -> dict[str, str]:
    inputs = workload.inputs(sizes, seed=1)
    expected = workload.reference(inputs, sizes)
    kernel = getattr(
        importlib.import_module(f"cuasmrl.workloads.kernels.{workload.source.stem}"), workload.symbol
    )
    arguments = {
        name: tensor(value) if isinstance(value, np.ndarray) else value.item()
        for name, value in inputs.items()
    }
    constants = workload.constants(sizes, config)
    kernel[workload.grid(sizes, config)](
        **arguments, **{k: v for k, v in constants.items() if k not in arguments}
    )
    found = {name: want.failure(np.asarray(inputs[name])) for name, want in expected.items()}
    return {name: failure for name, failure in found.items() if failure}


def main() -> None:
    report = {}
    for name in sys.argv[1:]:
        workload = get(name)
        # A small tile keeps the interpreter quick; the largest one on a ragged shape is mostly masked.
        cases = [(sizes, workload.configs[1]) for sizes in workload.shapes]
        for sizes, config in [*cases, (workload.shapes[-1], workload.configs[-1])]:
            report[f"{name} {config.name} {dict(sizes)}"] = failures(workload, sizes, config)
    print(json.dumps(report))


if __name__ == "__main__":
    main()
