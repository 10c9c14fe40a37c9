"""The kernels of the figures compute what they are named after."""

import pytest

from cuasmrl.bench.kernels.products import SGEMM_STEPS, TENSOR_VARIANTS, sgemm, tensor_gemm, triton_gemm
from cuasmrl.bench.kernels.streams import OPERATIONS, copy, repeated_sum, softmax, stream, vector_add
from cuasmrl.bench.kernels.subjects import subject_of
from cuasmrl.errors import CuasmrlError
from cuasmrl.gpu.chips import chip
from cuasmrl.gpu.timing.model import occupancy
from cuasmrl.workloads import Workload
from cuasmrl.workloads.definitions.common import tile
from cuasmrl.workloads.emulation import emulate


def check(workload: Workload, arch: int, sizes: dict[str, int] | None = None) -> None:
    outcome = emulate(workload, workload.configs[0], arch, sizes or workload.shapes[0])
    assert outcome.passed, [output.failure for output in outcome.outputs]
    assert all(output.elements for output in outcome.outputs)


@pytest.mark.parametrize("operation", OPERATIONS)
def test_streams(operation: str) -> None:
    check(stream(operation, 128), 80)


@pytest.mark.parametrize("width", [1, 2, 4, 8, 16])
def test_copies(width: int) -> None:
    check(copy(width, 64), 89)


@pytest.mark.parametrize("arch", [80, 86, 89])
def test_streams_leave_room_for_two_blocks(arch: int) -> None:
    config = stream("scale", 64, arch).configs[0]
    fits = {80: "a100", 86: "a6000", 89: "l40"}[arch]
    assert occupancy(chip(fits), 64, 16, config.shared_bytes).blocks == 2


@pytest.mark.parametrize("dtype", ["fp16", "fp32"])
def test_sums_of_vectors(dtype: str) -> None:
    check(vector_add(dtype, 1024, 4), 80, {"n": 4099})


def test_softmax_of_floats() -> None:
    check(softmax(8), 80, {"M": 3, "N": 1000})


@pytest.mark.parametrize("dtype", ["fp16", "fp32", "i32"])
def test_repeated_sums(dtype: str) -> None:
    check(repeated_sum(dtype, 256, 4, 2), 80)


@pytest.mark.parametrize("step", SGEMM_STEPS)
def test_products_on_cuda_cores(step: str) -> None:
    check(sgemm(step), 86)


@pytest.mark.parametrize("variant", TENSOR_VARIANTS)
def test_products_on_tensor_cores(variant: str) -> None:
    check(tensor_gemm(variant), 80)


def test_products_with_a_side_stored_by_columns() -> None:
    workload = triton_gemm(tile(64, 64, 32, 4, 3, GROUP_M=8), columns=True)
    assert workload.scalars({"M": 64, "N": 128, "K": 32})["stride_bn"] == 32
    built = workload.build(workload.configs[0], 80, {"M": 64, "N": 128, "K": 32})
    # What is 1 is compiled in: the loads run along K.
    assert built.fixed["stride_bk"] == 1


@pytest.mark.parametrize(("kernel", "config"), [
    ("gemm", "m128"), ("attention", "m64n64k64_w4_s3"), ("mandelbrot", "w4"),
])  # fmt: skip
def test_what_is_not_known_is_refused(kernel: str, config: str) -> None:
    with pytest.raises(CuasmrlError):
        subject_of(kernel, config, {"M": 1, "N": 1, "K": 1}, 80)
