"""Launches of the traced kernels, with fresh buffers."""

from cuasmrl import workloads
from cuasmrl.gpu.launches.launch import Launch
from tests.traced_kernels import traced


def launch_of(name: str) -> Launch:
    kernel, workload = traced(name), workloads.get(name)
    built = workload.build(workload.config(kernel.config), kernel.chip.arch, kernel.sizes)
    return workload.launch(built, workload.inputs(kernel.sizes), kernel.sizes)
