"""Whole kernels end to end: what the emulator computes is what the reference expects."""

import pytest

from cuasmrl import workloads
from cuasmrl.binary.cubin import Cubin
from cuasmrl.binary.sass import Listing, disassemble_kernel
from cuasmrl.workloads import Config, Workload
from cuasmrl.workloads.emulation import Outcome, emulate

FIRST_RING = (80, 86, 89)
SECOND_RING = (75, 90, 120)
WARPGROUP_PRODUCTS = ("HGMMA", "IGMMA", "QGMMA")
TENSOR_MEMORY = ("UTCHMMA", "UTCIMMA", "UTCQMMA")


def listing_of(workload: Workload, config: Config, arch: int) -> Listing:
    return disassemble_kernel(Cubin.parse(workload.build(config, arch, workload.shapes[-1]).cubin))


def assert_matches(outcome: Outcome) -> None:
    for output in outcome.outputs:
        assert output.failure is None, f"{outcome.workload} {outcome.config} sm_{outcome.arch}: {output}"
        assert output.elements
        assert output.worst_share <= 1


@pytest.mark.parametrize("workload", workloads.all(), ids=lambda w: w.name)
def test_workload(workload: Workload) -> None:
    """One config on a ragged shape, on one chip of the first ring in turn, or on the first that has it."""
    number = workloads.names().index(workload.name)
    candidates = [*FIRST_RING[number % 3 :], *FIRST_RING, *SECOND_RING]
    arch = next(a for a in candidates if workload.supports(workload.configs[0], a) is None)
    assert_matches(emulate(workload, workload.configs[0], arch, workload.shapes[-1], seed=number))


@pytest.mark.parametrize("arch", SECOND_RING)
@pytest.mark.parametrize("name", ["softmax", "rmsnorm"])
def test_published_workloads_on_the_second_ring(name: str, arch: int) -> None:
    workload = workloads.get(name)
    assert_matches(emulate(workload, workload.configs[0], arch, workload.shapes[1]))


def test_tensor_cores_of_sm_120() -> None:
    workload = workloads.get("gemm_leaky_relu")
    assert_matches(emulate(workload, workload.configs[0], 120, workload.shapes[-1]))


def test_some_blocks_of_a_launch() -> None:
    workload = workloads.get("gemm_leaky_relu")
    sizes = {"M": 128, "N": 192, "K": 64}
    outcome = emulate(workload, workload.config("m64n64k32_w4_s3"), 80, sizes, blocks=[1, 4])
    assert_matches(outcome)
    assert outcome.blocks == 2
    assert outcome.outputs[0].elements == 2 * 64 * 64


@pytest.mark.parametrize(
    ("name", "config", "arch"),
    [
        ("gemm_leaky_relu", "m128n256k64_w8_s3", 90),
        ("bmm", "m128n128k64_w8_s3", 100),
        *(
            (name, config, arch)
            for arch in (90, 100)
            for name, config in (
                ("flash_attention", "m64n64_w4_s3"),
                ("gemm_int8", "m64n64k64_w4_s3"),
                ("gemm_fp8", "m64n64k64_w4_s3"),
            )
        ),
    ],
)
def test_products_beside_the_warps(name: str, config: str, arch: int) -> None:
    """By warpgroups on sm_90, in tensor memory on sm_100."""
    workload = workloads.get(name)
    chosen = workload.config(config)
    opcodes = {i.opcode for i in listing_of(workload, chosen, arch).instructions}
    assert not opcodes.isdisjoint({90: WARPGROUP_PRODUCTS, 100: TENSOR_MEMORY}[arch])
    assert_matches(emulate(workload, chosen, arch, workload.shapes[-1]))


@pytest.mark.slow
@pytest.mark.parametrize("arch", [*FIRST_RING, 100])
@pytest.mark.parametrize("workload", workloads.all(), ids=lambda w: w.name)
def test_every_config_and_shape(workload: Workload, arch: int) -> None:
    for config in workload.configs:
        if workload.supports(config, arch) is None:
            for sizes in workload.shapes:
                for seed in (0, 1):
                    assert_matches(emulate(workload, config, arch, sizes, seed))


@pytest.mark.slow
@pytest.mark.parametrize("arch", SECOND_RING)
@pytest.mark.parametrize("workload", workloads.all(), ids=lambda w: w.name)
def test_the_second_ring(workload: Workload, arch: int) -> None:
    for config in workload.configs:
        if workload.supports(config, arch) is None:
            for sizes in workload.shapes:
                assert_matches(emulate(workload, config, arch, sizes))
