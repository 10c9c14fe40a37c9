"""Real cubins of the workloads that come with cuasmrl, compiled once per machine."""

from collections.abc import Callable

import pytest

from cuasmrl import workloads
from cuasmrl.binary.cubin import Cubin


@pytest.fixture(scope="session")
def built() -> Callable[[str, str, int], Cubin]:
    def build(name: str, config: str, arch: int) -> Cubin:
        workload = workloads.get(name)
        kernel = workload.build(workload.config(config), arch)
        return Cubin.parse(kernel.cubin, f"{name}-{config}-sm_{arch}")

    return build
