"""Triton kernels of public benchmarks that no workload stands for."""

import triton
import triton.language as tl


@triton.jit
def repeated_sum(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr, TIMES: tl.constexpr):
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = index < n
    x = tl.load(x_ptr + index, mask=inside)
    y = tl.load(y_ptr + index, mask=inside)
    # Each sum needs the one before: the time is that of the reductions.
    for _ in range(TIMES):
        x = tl.sum(x, axis=0) + y
    tl.store(out_ptr + index, x, mask=inside)


@triton.jit
def nothing():
    pass
