"""Streams of bulk copies on an H800 PCIe: what all SMs together get from DRAM, one copy in flight per block.

HPMLL NVIDIA-Hopper-Benchmark ded6f57, TMA/Throughput/tma_bw/log. No number of the chip was taken from it.
"""

from dataclasses import replace

import numpy as np
import pytest

from cuasmrl.binary.cubin import Cubin
from cuasmrl.gpu.chips import chip
from cuasmrl.gpu.launches.launch import Launch
from cuasmrl.gpu.timing import L2
from cuasmrl.gpu.traced import trace_launch
from tests.conftest import CompileCuda
from tests.gpu.emulator.conftest import SOURCES

STREAM = """
extern "C" __global__ void stream(const char *in, int *out, int rounds, int size) {
    extern __shared__ __align__(128) char s[];
    __shared__ long long full;
    unsigned bar = shared_address(&full);
    if (threadIdx.x == 0) {
        init(bar, 1);
        const char *from = in + (long long)blockIdx.x * size;
        for (int k = 0; k < rounds; k++) {
            expect(bar, size);
            copy(shared_address(s), from, size, bar);
            wait(bar, k & 1);
            from += (long long)gridDim.x * size;
        }
        out[blockIdx.x] = s[5];
    }
}
"""
# An L2 so small that nothing is found there: what is published read more than L2 holds, again and again.
H800 = replace(
    chip("h100"), sm_count=114, clock_khz=1_755_000, memory_clock_khz=1_593_000, l2_bytes=1 << 20
)  # fmt: skip


@pytest.mark.parametrize(
    ("kilobytes", "blocks", "published", "off"),
    [
        (1, 114, 223, 0.1),
        (8, 114, 1229, 0.1),
        (16, 114, 1708, 0.1),
        (4, 456, 1748, 0.15),
        (16, 456, 1826, 0.1),
        pytest.param(1, 456, 830, 0.15, marks=pytest.mark.slow),
        pytest.param(2, 456, 1380, 0.35, marks=pytest.mark.slow),
        pytest.param(8, 456, 1803, 0.1, marks=pytest.mark.slow),
        pytest.param(12, 456, 1806, 0.1, marks=pytest.mark.slow),
    ],
)
def test_streams_of_bulk_copies(
    kilobytes: int, blocks: int, published: float, off: float, compile_cuda: CompileCuda
) -> None:
    source = (SOURCES / "bulk.cu").read_text() + STREAM
    cubin = Cubin.parse(compile_cuda(source, "sm_90"), "stream.cubin")
    size, rounds = kilobytes << 10, 24
    data, out = np.zeros(size * blocks * rounds, np.int8), np.zeros(blocks, np.int32)
    launch = Launch((blocks, 1, 1), (32, 1, 1), size, (data, out, np.int32(rounds), np.int32(size)))
    kernel = trace_launch("stream", "", {}, cubin, "stream", launch, H800, L2.AGAIN)
    cycles = kernel.model.simulate(kernel.original).cycles
    rate = data.size / (cycles / H800.clock_khz * 1e-3) / 1e9
    assert rate == pytest.approx(published, rel=off)
