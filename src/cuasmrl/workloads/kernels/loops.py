"""Triton kernels of public benchmarks that no workload stands for."""

import triton


@triton.jit
def nothing():
    pass
