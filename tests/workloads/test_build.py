"""Cubins, and launches that fit them."""

import numpy as np
import pytest

from cuasmrl.binary.cubin import Cubin
from cuasmrl.errors import CuasmrlError
from cuasmrl.gpu.launches.launch import Launch, argument_bytes
from cuasmrl.workloads import ARCHS, BuiltKernel, Workload, all, get, variants
from cuasmrl.workloads.build import specialise
from cuasmrl.workloads.model import Sizes

SAMPLE = [
    ("gemm_leaky_relu", 1, 80),
    ("gemm_leaky_relu", 1, 90),
    ("gemm_leaky_relu", 1, 120),
    ("fused_ff", 0, 100),
    ("flash_attention", 1, 75),
    ("flash_attention", 1, 80),
    ("rmsnorm", 0, 86),
    ("rmsnorm", 1, 86),
    ("gemm_fp8", 1, 89),
    ("moe_gemm", 1, 80),
    ("paged_attention", 1, 80),
    ("sgemm", 0, 80),
    ("histogram", 0, 75),
    ("int64_mix", 0, 90),
    ("half2_axpy", 0, 120),
    ("stencil", 0, 100),
]


def check_launch(workload: Workload, built: BuiltKernel, sizes: Sizes) -> Launch:
    """The launch's arguments are exactly the cubin's parameters, in number, order and size."""
    kernel = Cubin.parse(built.cubin).kernel(built.kernel)
    launch = workload.launch(built, workload.inputs(sizes), sizes)
    assert kernel.arch == built.arch
    assert [argument_bytes(argument) for argument in launch.arguments] == [p.size for p in kernel.parameters]
    assert [p.size for p in built.parameters] == [p.size for p in kernel.parameters]
    assert launch.block == built.block
    assert launch.shared_bytes == built.shared_bytes
    return launch


@pytest.mark.parametrize(("name", "index", "arch"), SAMPLE)
def test_launch_matches_the_cubin(name: str, index: int, arch: int) -> None:
    workload = get(name)
    sizes = workload.shapes[0]
    built = workload.build(workload.configs[index], arch, sizes)
    assert (built.workload, built.config, built.arch) == (name, workload.configs[index].name, arch)
    check_launch(workload, built, sizes)


def test_triton_scratch_pointers_are_null() -> None:
    workload = get("vector_add")
    sizes = workload.shapes[0]
    built = workload.build(workload.configs[0], 80, sizes)
    launch = workload.launch(built, workload.inputs(sizes), sizes)
    assert [p.name for p in built.parameters] == [
        "x_ptr",
        "y_ptr",
        "out_ptr",
        "n",
        "global_scratch",
        "profile_scratch",
    ]
    assert launch.arguments[4:] == (None, None)
    assert launch.arguments[3] == np.int32(1024)
    assert launch.grid == (1, 1, 1)
    assert launch.threads == 128


def test_specialisation_follows_the_launcher() -> None:
    workload = get("gemm_leaky_relu")
    round_, ragged = (specialise(workload, workload.configs[0], sizes) for sizes in workload.shapes[1:4:2])
    assert set(round_.fixed) == {"stride_ak", "stride_bn", "stride_cn"}
    assert set(round_.divisible) == {"M", "N", "K", "stride_am", "stride_bk", "stride_cm"}
    assert ragged.divisible == ()


def test_specialisation_is_the_one_of_triton() -> None:
    """Our rule for integers against the function Triton's own launcher calls."""
    jit = pytest.importorskip("triton.runtime.jit")
    from triton.backends.compiler import BaseBackend

    workload = get("bmm")
    for sizes in (workload.sizes, *workload.shapes):
        special = specialise(workload, workload.configs[0], sizes)
        for name, value in workload.scalars(sizes).items():
            type_, key = jit.native_specialize_impl(BaseBackend, value, False, True, True)
            assert (type_ == "constexpr") == (name in special.fixed)
            assert (type_ == "i32" and key == "D") == (name in special.divisible)


def test_ragged_sizes_get_a_kernel_of_their_own() -> None:
    workload = get("vector_add")
    config = workload.configs[0]
    round_, ragged = (workload.build(config, 80, sizes) for sizes in workload.shapes[:2])
    assert round_.cubin != ragged.cubin
    assert workload.build(config, 80, {"n": 2048}).cubin == round_.cubin


def test_launch_refuses_sizes_the_kernel_was_not_built_for() -> None:
    workload = get("vector_add")
    built = workload.build(workload.configs[0], 80, {"n": 1024})
    with pytest.raises(CuasmrlError, match=r"built for n a multiple of 16 but is launched with 1000"):
        workload.launch(built, workload.inputs({"n": 1000}), {"n": 1000})


def test_launch_refuses_another_value_of_a_folded_parameter() -> None:
    workload = get("rmsnorm")
    built = workload.build(workload.config("n32_w4_fixed"), 80, workload.shapes[0])
    assert "N" not in [parameter.name for parameter in built.parameters]
    with pytest.raises(CuasmrlError, match=r"rmsnorm was built for N = 256 but is launched with 60"):
        workload.launch(built, workload.inputs(workload.shapes[1]), workload.shapes[1])


def test_shared_memory_beyond_the_chip_is_refused() -> None:
    workload = get("paged_attention")
    config = workload.config("n128_w8_s2")
    from dataclasses import replace

    with pytest.raises(CuasmrlError, match=r"needs \d+ bytes of shared memory per block, sm_75 has 65536"):
        replace(workload, configs=(config := replace(config, unsupported={}),)).build(config, 75)


def test_compiler_errors_become_a_sentence() -> None:
    from dataclasses import replace

    workload = get("gemm_fp8")
    config = replace(workload.configs[1], unsupported={})
    with pytest.raises(CuasmrlError) as caught:
        workload.build(config, 80)
    assert "Triton cannot compile gemm_fp8 for sm_80" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_nvcc_errors_become_a_sentence() -> None:
    from dataclasses import replace

    workload = get("sgemm")
    config = replace(workload.configs[0], constants={"BM": "nonsense"})
    with pytest.raises(CuasmrlError, match=r"nvcc cannot compile sgemm.cu for sm_80: .*error") as caught:
        workload.build(config, 80)
    assert "\n" not in str(caught.value)


def test_launch_refuses_python_numbers() -> None:
    with pytest.raises(CuasmrlError, match="Argument 0 of a launch is a Python int"):
        Launch((1, 1, 1), (32, 1, 1), 0, (3,))  # type: ignore[arg-type]


def test_launch_refuses_an_empty_grid() -> None:
    with pytest.raises(CuasmrlError, match="at least one thread"):
        Launch((0, 1, 1), (32, 1, 1), 0, ())


@pytest.mark.slow
@pytest.mark.parametrize("arch", ARCHS)
def test_everything_builds(arch: int) -> None:
    for workload, config, _ in variants([arch]):
        for sizes in (workload.sizes, workload.shapes[-1]):
            built = workload.build(config, arch, sizes)
            if sizes is not workload.sizes:
                check_launch(workload, built, sizes)


@pytest.mark.slow
def test_large_problems_build() -> None:
    for workload in all():
        if workload.large is not None:
            config = workload.configs[0]
            oldest = next(arch for arch in ARCHS[1:] if workload.supports(config, arch) is None)
            workload.build(config, oldest, workload.large)
