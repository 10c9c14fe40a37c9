"""The speed of the model, on a small kernel."""

from cuasmrl import workloads
from cuasmrl.bench.speed import CHIP, speed_of
from cuasmrl.gpu.chips import chip
from cuasmrl.workloads.tracing import trace_workload


def test_figures_of_a_small_kernel() -> None:
    workload = workloads.get("softmax")
    kernel = trace_workload(workload, workload.configs[0], chip(CHIP), {"M": 216, "N": 256})
    found = speed_of(kernel)
    assert found.same
    assert found.instructions == kernel.model.simulate(kernel.original).instructions
    assert len(found.growth) == 4
    assert min(found.growth) > 0
    assert found.rate > 0
    assert found.state_bytes > 0
    assert found.trace_bytes > 0
