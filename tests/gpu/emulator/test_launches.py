"""Launches and kernels that are refused before anything is executed."""

from typing import Any

import numpy as np
import pytest

from cuasmrl.binary.cubin import Cubin
from cuasmrl.errors import CuasmrlError
from cuasmrl.gpu.chips import chip
from cuasmrl.gpu.emulator import Emulator, Fault
from cuasmrl.gpu.launches.launch import Launch
from tests.conftest import CompileCuda
from tests.gpu.emulator.kernels import Kernels, Load, launch, numbers

CHIPS = ("sm_75", "sm_80", "sm_90", "sm_120")


@pytest.fixture(scope="module")
def sm_80(load: Load) -> Kernels:
    return load("memory", "sm_80")


def refuse(kernels: Kernels, match: str, *arguments: Any, **shape: Any) -> None:
    """copy(const int *, int *, int) must not start, and must not have touched its target."""
    out = np.full(32, -1, np.int32)
    given = tuple(out if argument is Ellipsis else argument for argument in arguments)
    with pytest.raises(CuasmrlError, match=match) as caught:
        kernels.run("copy", *given, **shape)
    assert not isinstance(caught.value, Fault)
    assert (out == -1).all()


def test_number_of_arguments(sm_80: Kernels) -> None:
    refuse(sm_80, "Kernel copy takes 3 arguments, got 2", numbers(32), ...)
    refuse(sm_80, "Kernel copy takes 3 arguments, got 4", numbers(32), ..., np.int32(3), np.int32(3))


def test_sizes_of_arguments(sm_80: Kernels) -> None:
    refuse(sm_80, "Argument 2 of kernel copy takes 4 bytes, got int64 of 8", numbers(32), ..., np.int64(3))
    refuse(sm_80, "Argument 2 of kernel copy takes 4 bytes, got a pointer of 8", numbers(32), ..., numbers(1))
    refuse(sm_80, "Argument 0 of kernel copy takes 8 bytes, got int32 of 4", np.int32(3), ..., np.int32(3))
    refuse(sm_80, "Argument 2 of kernel copy takes 4 bytes, got a pointer of 8", numbers(32), ..., None)


@pytest.mark.parametrize("argument", [3, 3.5, True, "text", [1, 2], b"bytes"])
def test_python_objects_as_arguments(sm_80: Kernels, argument: object) -> None:
    kind = type(argument).__name__
    refuse(
        sm_80,
        rf"Argument 2 of a launch is a Python {kind}; use .* np\.int32\(7\)",
        numbers(32),
        ...,
        argument,
    )


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ({"block": 2048}, "a block 2048 wide in x; NVIDIA A100.* allows 1024"),
        ({"block": (32, 64)}, "2048 threads per block; .* allows 1024"),
        ({"block": (1, 1, 65)}, "a block 65 wide in z; .* allows 64"),
        ({"grid": (1, 65536)}, "a grid 65536 wide in y; .* allows 65535"),
        ({"grid": 1 << 31}, "a grid 2147483648 wide in x; .* allows 2147483647"),
        ({"shared": 164 * 1024}, "167936 bytes of shared memory per block; .* allows 166912"),
        ({"grid": 0}, "at least one thread"),
        ({"block": (32, 0)}, "at least one thread"),
    ],
)
def test_shapes(sm_80: Kernels, shape: dict[str, Any], message: str) -> None:
    refuse(sm_80, message, numbers(32), ..., np.int32(32), **shape)


def test_static_and_dynamic_shared_memory_count_together(load: Load) -> None:
    """48 KiB and more on an A100, which the T4 does not have."""
    x, out = numbers(32), np.zeros(32, np.int32)
    arguments = (x, out, np.int32(32))
    for source, most in (("sm_75", 64), ("sm_80", 163), ("sm_90", 227), ("sm_120", 99)):
        kernels = load("memory", source)
        kernels.run("static_and_dynamic", *arguments, shared=most * 1024 - 128)
        with pytest.raises(CuasmrlError, match="bytes of shared memory per block"):
            kernels.run("static_and_dynamic", *arguments, shared=most * 1024 - 127)


def test_the_chip_decides(sm_80: Kernels) -> None:
    small = Emulator(sm_80.cubin, "copy", chip("a6000"), sm_80.listings["copy"])
    given = launch((numbers(32), np.zeros(32, np.int32), np.int32(32)), shared=100 * 1024)
    with pytest.raises(CuasmrlError, match="102400 bytes of shared memory per block; NVIDIA RTX A6000"):
        small.run(given)
    sm_80.emulator("copy").run(given)


@pytest.mark.parametrize("blocks", [[], [-1], [3], [0, 99]])
def test_blocks_that_do_not_exist(sm_80: Kernels, blocks: list[int]) -> None:
    refuse(sm_80, "numbered 0 to 2; choose some", numbers(32), ..., np.int32(32), grid=3, blocks=blocks)


def test_a_kernel_that_is_not_there(sm_80: Kernels) -> None:
    with pytest.raises(CuasmrlError, match="has no kernel nothing; it holds .*copy"):
        Emulator(sm_80.cubin, "nothing")
    with pytest.raises(CuasmrlError, match="holds several kernels"):
        Emulator(sm_80.cubin)


def test_the_budget(load: Load) -> None:
    """The limit is one of instructions of the slowest warp, so it does not depend on the number of blocks."""
    kernels = load("control", "sm_80")
    x, out = numbers(3200, 1, 1000), np.zeros(3200, np.int32)
    kernels.run("trips", x, out, grid=100, budget=20_000)
    with pytest.raises(
        Fault, match="Kernel trips at 0x.* does not end within 500 instructions; raise the budget"
    ):
        kernels.run("trips", x, out, grid=100, budget=500)


# kernels


@pytest.mark.parametrize("source", CHIPS)
@pytest.mark.parametrize(
    ("kernel", "what"),
    [
        ("texture", r"TLD\S* .* at 0x\w{4} \(no semantics for this opcode\)"),
        ("generic", r"at 0x\w{4} \((c\[0x0\]\[0x18\] is set by the driver|special register SR_SWINHI)"),
    ],
)
def test_unsupported_instructions(load: Load, source: str, kernel: str, what: str) -> None:
    start = rf"Kernel {kernel} for {source} cannot be emulated; \d+ of its instructions are not supported: "
    with pytest.raises(CuasmrlError, match=start + ".*" + what):
        load("refused", source).emulator(kernel)


WARPGROUP = """
extern "C" __global__ void warpgroup(float *out, unsigned long long a, unsigned long long b, int e) {
    float d[4] = {};
    asm volatile("wgmma.fence.sync.aligned;");
    asm volatile("{wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.f16.f16"
                 " {%0,%1,%2,%3}, %4, %5, %6, 0, 1, 1, 1, 0, 0;}"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "l"(a), "l"(b), "r"(e));
    asm volatile("wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;");
    out[threadIdx.x] = d[0];
}
"""


def test_products_of_sparse_matrices(compile_cuda: CompileCuda) -> None:
    cubin = Cubin.parse(compile_cuda(WARPGROUP, "sm_90a"))
    with pytest.raises(CuasmrlError, match=r"cannot be emulated.*HGMMA\.SP\S+ .* at 0x\w{4} \(HGMMA.*model"):
        Emulator(cubin)


ELSEWHERE = """
extern __device__ int elsewhere(int);
extern "C" __global__ void calls(int *out) { out[threadIdx.x] = elsewhere(threadIdx.x); }
"""


def test_relocations(compile_cuda: CompileCuda) -> None:
    cubin = Cubin.parse(compile_cuda(ELSEWHERE, "sm_80", "-rdc=true"))
    with pytest.raises(CuasmrlError, match="Kernel calls has relocations, .* link it with nvlink"):
        Emulator(cubin)


def test_a_launch_is_made_of_numpy_values() -> None:
    arguments: Any = (7,)
    with pytest.raises(CuasmrlError, match="Argument 0 of a launch is a Python int"):
        Launch((1, 1, 1), (1, 1, 1), 0, arguments)
