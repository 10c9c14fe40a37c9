"""What deploying costs at each launch: no cuasmrl code runs there, and here it is measured."""

from __future__ import annotations

import importlib
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from cuasmrl.deploy.triton.activation import install, installation, uninstall
from cuasmrl.gpu.virtual import Buffer, active, wrap

_ROUNDS = 21
_CALLS = 500


@dataclass(frozen=True)
class LaunchCost:
    """Microseconds of processor time for a launch in Triton's own Python, all but the call of the driver."""

    without: float
    installed: float

    @property
    def added(self) -> float:
        return self.installed - self.without


def measure_launches(rounds: int = _ROUNDS, calls: int = _CALLS) -> LaunchCost:
    """Medians over rounds in which both take turns; the store is an empty one."""
    kernel = importlib.import_module("cuasmrl.workloads.kernels.normalisation").softmax
    if installation() is not None:
        uninstall()
    buffer = wrap(np.zeros(128, np.float16))
    times: dict[bool, list[float]] = {False: [], True: []}
    with tempfile.TemporaryDirectory(prefix="cuasmrl-cost-") as place, active("a100"):
        _launch(kernel, buffer)
        for number in range(2 * rounds):
            is_in = bool(number % 2)
            if is_in:
                install(store=Path(place))
            # A round is as short as a turn of the scheduler, which would be measured instead.
            start = time.process_time()
            for _ in range(calls):
                _launch(kernel, buffer)
            times[is_in].append((time.process_time() - start) / calls)
            uninstall()
    return LaunchCost(1e6 * median(times[False]), 1e6 * median(times[True]))


def _launch(kernel: Any, buffer: Buffer) -> None:
    # A warm-up goes the way of a launch up to the driver, and that is where we could be in the way.
    kernel.run(buffer, buffer, 128, 128, 128, BLOCK_N=128, grid=(1,), warmup=True)
