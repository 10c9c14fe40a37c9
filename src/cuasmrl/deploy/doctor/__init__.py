"""What is installed, what each framework compiles with, whether stored results are used, and what to do."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

from cuasmrl.deploy.doctor import compilers, hooks, installed, results, staleness
from cuasmrl.deploy.doctor.findings import Finding, Level, Surroundings
from cuasmrl.deploy.store import Store
from cuasmrl.errors import CuasmrlError
from cuasmrl.gpu.devices.loading import load

__all__ = ["Finding", "Level", "examine"]


def examine(store: Store, environment: Mapping[str, str] = os.environ) -> Iterator[Finding]:
    """Findings by topic, as each is made."""
    surroundings = Surroundings(environment)
    yield from installed.examine()
    yield from _gpus()
    yield from compilers.examine(surroundings)
    yield from results.examine(surroundings, store)
    yield from hooks.examine(surroundings, store)
    yield from staleness.examine(surroundings, store)


def _gpus() -> Iterator[Finding]:
    try:
        driver = load()
        gpus = [driver.gpu(number) for number in range(driver.devices())]
    except CuasmrlError as error:
        yield Finding(installed.TOPIC, "GPU", Level.NOTE, str(error))
        return
    for gpu in gpus:
        major, minor = divmod(gpu.driver_version // 10, 100)
        text = f"{gpu.name}, sm_{gpu.arch}, driver for CUDA {major}.{minor}"
        yield Finding(installed.TOPIC, f"cuda:{gpu.ordinal}", Level.OK, text)
